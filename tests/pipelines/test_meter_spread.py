"""Times that are spread over columns: parts of a calendar, milliseconds beside a time of day; worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import Store


def taken(store: Store, folder: Path, text: str) -> tuple[pl.DataFrame, list[str], str]:
    path = folder / "meter.csv"
    path.write_text(text)
    options = Options(scope="node", timezone="UTC")
    (outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "h", options=options),), store)
    return store.table("readings").sort("line"), store.table("rejects")["rule"].to_list(), outcome.reason or ""


@pytest.mark.parametrize(
    ("titles", "row", "step_s"),
    [
        ("year,month,day,hour,minute,power_w", "2026,3,2,{h},{m},71.5", 60),
        ("Day,Month,Year,Hour,Minute,Second,Power (W)", "2,3,2026,{h},{m},30.0,71.5", 60),
        ("power_w,year,month,day,hour,minute,second", "71.5,2026,03,02,{h},{m},5.25", 60),
    ],
)
def test_parts_of_a_calendar_are_one_stamp(store: Store, tmp_path: Path, titles: str, row: str, step_s: int) -> None:
    rows = [row.format(h=9 + i // 60, m=i % 60) for i in range(55, 65)]
    readings, rejects, reason = taken(store, tmp_path, "\n".join([titles, *rows]) + "\n")
    assert (reason, rejects, readings.height) == ("", [], 10)
    second = {"30.0": 30.0, "5.25": 5.25}.get(next((c for c in row.split(",") if c in {"30.0", "5.25"}), ""), 0.0)
    first = datetime(2026, 3, 2, 9, 55, int(second), round(second % 1 * 1e6), tzinfo=UTC)
    assert readings["ts_utc"][0] == first
    assert set(readings["ts_utc"].diff().drop_nulls().dt.total_seconds()) == {step_s}


def test_a_day_that_does_not_exist_is_no_stamp(store: Store, tmp_path: Path) -> None:
    rows = [f"2026,2,{d},10,0,71.5" for d in (26, 27, 28, 29)]
    readings, rejects, _ = taken(store, tmp_path, "\n".join(["year,month,day,hour,minute,power_w", *rows]) + "\n")
    assert readings.height == 3
    assert rejects != []


def test_parts_beside_a_stamp_do_not_replace_it(store: Store, tmp_path: Path) -> None:
    rows = [f"2026-03-02 10:00:{i:02d},2026,3,2,10,71.5" for i in range(10)]
    readings, _, _ = taken(store, tmp_path, "\n".join(["timestamp,year,month,day,hour,power_w", *rows]) + "\n")
    assert readings["ts_utc"][9] - readings["ts_utc"][0] == pl.Series([9_000_000], dtype=pl.Duration("us"))[0]


def test_milliseconds_in_a_column_of_their_own(store: Store, tmp_path: Path) -> None:
    rows = [f"2026/03/02,10:00:{i // 4:02d},{i % 4 * 250},230.1,{70 + i}" for i in range(12)]
    readings, rejects, _ = taken(store, tmp_path, "\n".join(["Date,Time,Millisecond,U1 (V),P1 (W)", *rows]) + "\n")
    assert rejects == []
    assert set(readings["ts_utc"].diff().drop_nulls().dt.total_milliseconds()) == {250}


def test_milliseconds_since_a_start_are_none_of_a_time_of_day(store: Store, tmp_path: Path) -> None:
    rows = [f"2026-03-02,10:00:{i:02d},{i * 1000 + 7},71.5" for i in range(10)]
    readings, rejects, _ = taken(store, tmp_path, "\n".join(["Date,Time,ms,Power (W)", *rows]) + "\n")
    assert rejects == []
    assert set(readings["ts_utc"].diff().drop_nulls().dt.total_milliseconds()) == {1000}
