"""Stamps as scripts and microcontrollers write them: without dashes, with the month first, without zeros; worked out by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import Store


def taken(store: Store, folder: Path, text: str, options: Options) -> tuple[pl.DataFrame, pl.DataFrame, set[str]]:
    path = folder / "meter.csv"
    path.write_text(text)
    (outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "meter", options=options),), store)
    codes = {f.code for f in outcome.findings} | ({outcome.reason} if outcome.reason else set())
    return store.table("readings").sort("line"), store.table("rejects").sort("line"), codes


def at(store: Store) -> list[str]:
    return [f"{t:%m-%d %H:%M:%S}" for t in store.table("readings").sort("line")["ts_utc"]]


def test_clocks_without_zeros_beside_their_dates(store: Store, tmp_path: Path) -> None:
    rows = ["2026/3/2,9:59:58,45.20,4912", "2026/3/2,10:0:3,45.25,4922", "2026/3/2,10:0:8,45.10,6112"]
    text = "YEAR/MONTH/DAY,HOUR:MINUTE:SECOND,humidity,power_mW\n" + "\n".join(rows) + "\n"
    readings, rejects, codes = taken(store, tmp_path, text, Options(scope="node", timezone="UTC"))
    assert at(store) == ["03-02 09:59:58", "03-02 10:00:03", "03-02 10:00:08"]
    assert readings["power_w"].to_list() == pytest.approx([4.912, 4.922, 6.112])
    assert rejects.height == 0
    assert "coarse-stamps" not in codes


@pytest.mark.parametrize(
    "stamps",
    [
        ["20260302T09:59:58", "20260302T10:00:03", "20260302T10:00:08"],
        ["20260302 09:59:58.0", "20260302 10:00:03.0", "20260302 10:00:08.0"],
        ["Mar-02-2026 09:59:58", "Mar-02-2026 10:00:03", "Mar-02-2026 10:00:08"],
        ["2026/3/2 9:59:58", "2026/3/2 10:0:3", "2026/3/2 10:0:8"],
        ["3/2/2026 9:59:58 AM", "3/2/2026 10:0:3 AM", "3/2/2026 10:0:8 AM"],
    ],
)
def test_stamps_as_scripts_and_microcontrollers_write_them(store: Store, tmp_path: Path, stamps: list[str]) -> None:
    text = "timestamp,power_w\n" + "".join(f"{s},{85 + i}\n" for i, s in enumerate(stamps))
    options = Options(scope="node", timezone="UTC", day_first=False)
    readings, rejects, _ = taken(store, tmp_path, text, options)
    assert at(store) == ["03-02 09:59:58", "03-02 10:00:03", "03-02 10:00:08"]
    assert readings["power_w"].to_list() == [85.0, 86.0, 87.0]
    assert rejects.height == 0
