"""Tables of meters with clocks that were not set, ends of days, days of 23 hours and second headers; worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import Store, open_store

BERLIN = Options(scope="node", timezone="Europe/Berlin")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "study.duckdb", read_only=False) as opened:
        yield opened


def taken(
    store: Store, folder: Path, text: str, options: Options = BERLIN
) -> tuple[pl.DataFrame, pl.DataFrame, set[str]]:
    path = folder / "meter.csv"
    path.write_text(text)
    (outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "meter", options=options),), store)
    codes = {f.code for f in outcome.findings} | ({outcome.reason} if outcome.reason else set())
    return store.table("readings").sort("line"), store.table("rejects").sort("line"), codes


@pytest.mark.parametrize("start", ["1970-01-01T00:00", "2000-01-01T00:00"])
def test_rows_from_before_the_clock_was_set_are_set_aside(store: Store, tmp_path: Path, start: str) -> None:
    rows = [f"{start}:{10 * i:02d}Z,400" for i in range(2)] + [f"2026-03-02T10:00:{10 * i:02d}Z,410" for i in range(3)]
    readings, rejects, codes = taken(store, tmp_path, "timestamp,power_w\n" + "\n".join(rows) + "\n")
    assert readings["power_w"].to_list() == [410.0, 410.0, 410.0]
    assert rejects.filter(pl.col("rule") == "clock-not-set")["line"].to_list() == [2, 3]
    assert "clock-not-set" in codes


def test_a_log_that_is_of_old_times_as_a_whole_is_kept(store: Store, tmp_path: Path) -> None:
    rows = [f"2000-05-01T00:00:{10 * i:02d}Z,400" for i in range(3)]
    readings, rejects, _ = taken(store, tmp_path, "timestamp,power_w\n" + "\n".join(rows) + "\n")
    assert readings.height == 3
    assert rejects.height == 0


def test_the_end_of_a_day_is_the_beginning_of_the_next(store: Store, tmp_path: Path) -> None:
    text = "Datum;Uhrzeit;Leistung (W)\n02.03.2026;23:45;400\n02.03.2026;24:00;410\n03.03.2026;00:15;420\n"
    readings, rejects, _ = taken(store, tmp_path, text)
    assert [str(t) for t in readings["ts_utc"]] == [f"2026-03-02 {t}:00+00:00" for t in ("22:45", "23:00", "23:15")]
    assert rejects.height == 0


def test_hours_numbered_1_to_24_are_named_by_their_end(store: Store, tmp_path: Path) -> None:
    text = "Date,Hour,kWh\n" + "".join(f"2026-05-05,{h},{h / 10}\n" for h in range(1, 25))
    readings, _, codes = taken(store, tmp_path, text, Options(scope="node", timezone="UTC"))
    assert readings["energy_j"].sum() == pytest.approx(30 * 3.6e6)
    assert str(readings["ts_utc"][0]) == "2026-05-05 01:00:00+00:00"
    assert str(readings["ts_utc"][-1]) == "2026-05-06 00:00:00+00:00"
    assert "interval-label-assumed" not in codes


def test_a_day_of_23_hours_is_that_long(store: Store, tmp_path: Path) -> None:
    days = ("27", "28", "29", "30", "31")
    text = "Tag;Verbrauch (kWh)\n" + "".join(f"{d}.03.2026;{23 if d == '29' else 24},0\n" for d in days)
    readings, rejects, _ = taken(store, tmp_path, text)
    assert rejects.height == 0
    assert readings["span_s"].to_list() == [86400.0, 86400.0, 82800.0, 86400.0, 86400.0]
    assert (readings["energy_j"] / readings["span_s"]).to_list() == pytest.approx([1000.0] * 5)


def test_a_power_beside_the_end_of_an_interval_is_its_mean(store: Store, tmp_path: Path) -> None:
    text = "interval_end,avg_power_w\n" + "".join(
        f"2026-03-02T1{h}:00:00Z,{w}\n" for h, w in ((1, 900), (2, 1000), (3, 1100), (4, 900))
    )
    readings, _, _ = taken(store, tmp_path, text)
    assert readings["span_s"].to_list() == [3600.0] * 4
    assert (readings["power_w"] * readings["span_s"]).sum() == pytest.approx(3900 * 3600)


def test_rows_under_another_header_are_not_read_by_the_first(store: Store, tmp_path: Path) -> None:
    stamps = [f"2026-03-02T10:0{i}:00Z" for i in range(6)]
    text = (
        f"timestamp,power_w\n{stamps[0]},950\n{stamps[1]},998\ntimestamp,power_kw\n{stamps[2]},1.02\n{stamps[3]},0.99\n"
        f"timestamp,power_w\n{stamps[4]},960\n{stamps[5]},970\n"
    )
    readings, rejects, codes = taken(store, tmp_path, text)
    assert readings["power_w"].to_list() == [950.0, 998.0, 960.0, 970.0]
    assert rejects.select("line", "rule").rows() == [(5, "under-another-header"), (6, "under-another-header")]
    assert "another-header" in codes


def test_unix_time_may_change_its_unit(store: Store, tmp_path: Path) -> None:
    text = "time,power_w\n1772445600,400\n1772445660,410\n1772445720000,420\n1772445780000,430\n"
    readings, rejects, _ = taken(store, tmp_path, text)
    assert readings["ts_utc"].diff().drop_nulls().dt.total_seconds().to_list() == [60, 60, 60]
    assert rejects.height == 0


def test_seconds_that_start_again_are_refused_with_their_place(store: Store, tmp_path: Path) -> None:
    text = "time_s,power_w\n" + "".join(f"{i},400\n" for i in range(5)) + "".join(f"{i},500\n" for i in range(5))
    readings, _, codes = taken(store, tmp_path, text)
    assert readings.height == 0
    assert any("after 4 comes 0 (row 6)" in c for c in codes)
