"""Exports of utilities: columns of words beside numbers, and notes that no row has; worked out by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import Store

UTC = Options(scope="facility", timezone="UTC")


def taken(store: Store, folder: Path, text: str) -> tuple[pl.DataFrame, str, list[str]]:
    path = folder / "export.csv"
    path.write_text(text)
    (outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "meter", options=UTC),), store)
    told = [f.message for f in outcome.findings if f.code == "columns-not-read"]
    return store.table("readings").sort("line"), outcome.reason or "", told


def test_a_column_of_words_is_no_energy_without_a_unit(store: Store, tmp_path: Path) -> None:
    text = "METER,START,END,USAGE_KWH,CONSUMPTION_TYPE,Power source\n" + "".join(
        f"'77,2026-03-02 {h:02d}:00,2026-03-02 {h + 1:02d}:00,.{h + 2},Consumption,Grid supply\n" for h in range(4)
    )
    readings, reason, told = taken(store, tmp_path, text)
    assert reason == ""
    assert readings["energy_j"].to_list() == pytest.approx([0.2 * 3.6e6, 0.3 * 3.6e6, 0.4 * 3.6e6, 0.5 * 3.6e6])
    assert "'CONSUMPTION_TYPE', 'Power source'" in told[0]


@pytest.mark.parametrize("cell", ["7.5", "unavailable"])
def test_a_column_of_numbers_still_needs_its_unit(store: Store, tmp_path: Path, cell: str) -> None:
    text = "time,usage_kwh,power\n" + "".join(f"2026-03-02 {h:02d}:00,0.{h},{cell}\n" for h in range(1, 5))
    readings, reason, _ = taken(store, tmp_path, text)
    assert readings.is_empty()
    assert "'power' does not say its unit" in reason


def test_rows_without_a_cell_for_notes_are_read(store: Store, tmp_path: Path) -> None:
    text = "Name,A B\n\nTYPE,DATE,START TIME,END TIME,USAGE (kWh),NOTES\n" + "".join(
        f"Electric usage,2026-03-02,{h:02d}:00,{h:02d}:59,0.{h + 2}\n" for h in range(4)
    )
    readings, reason, _ = taken(store, tmp_path, text)
    assert reason == ""
    assert readings["energy_j"].to_list() == pytest.approx([0.2 * 3.6e6, 0.3 * 3.6e6, 0.4 * 3.6e6, 0.5 * 3.6e6])
    assert [t.hour for t in readings["ts_utc"]] == [1, 2, 3, 4]
    assert readings["span_s"].to_list() == [3600.0] * 4


def test_rows_that_lack_another_cell_are_not_guessed_at(store: Store, tmp_path: Path) -> None:
    text = "time,power_w,current_a\n" + "".join(f"2026-03-02 {h:02d}:00,{h}\n" for h in range(4))
    readings, reason, _ = taken(store, tmp_path, text)
    assert readings.is_empty()
    assert "no row has the 3 cells of the header" in reason
