"""The same run in several files is counted once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from joulebook import duplicates

NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)


def record(
    source_id: int, run_id: str, path: str, *, start_s: float = 0.0, length_s: float = 3600.0
) -> dict[str, object]:
    start = NOON + timedelta(seconds=start_s)
    return {
        "source_id": source_id, "run_id": run_id, "path": path, "start_utc": start,
        "end_utc": start + timedelta(seconds=length_s),
    }  # fmt: skip


def kept(*records: dict[str, object]) -> list[bool]:
    return duplicates.runs(pl.DataFrame(list(records)))["kept"].to_list()


def test_history_in_a_backup_counts_once() -> None:
    energies_kwh = [0.1, 0.2, 0.3, 0.3, 0.4, 0.5]
    frame = pl.DataFrame([
        *(record(1, f"r{i}", "emissions.csv_1.bak", start_s=86_400 * i) for i in (1, 2, 3)),
        *(record(2, f"r{i}", "emissions.csv", start_s=86_400 * i) for i in (3, 4, 5)),
    ])  # fmt: skip
    judged = duplicates.runs(frame).with_columns(kwh=pl.Series(energies_kwh))
    assert judged["kept"].to_list() == [True, True, False, True, True, True]
    assert abs(judged.filter("kept")["kwh"].sum() - 1.5) < 1e-12
    assert judged["reason"][2] == "the same run is in emissions.csv, which is used"


def test_the_record_that_goes_furthest_is_kept() -> None:
    assert kept(record(1, "a", "emissions.csv", length_s=600), record(2, "a", "old.csv", length_s=1200)) == [
        False,
        True,
    ]


def test_a_name_used_again_later_is_another_run() -> None:
    assert kept(record(1, "a", "x.csv"), record(2, "a", "y.csv", start_s=86_400)) == [True, True]


def test_a_start_within_whole_seconds_is_the_same_run() -> None:
    assert kept(record(1, "a", "x.csv", start_s=0.9), record(2, "a", "y.csv")) == [True, False]


def test_records_of_one_source_are_not_judged_against_each_other() -> None:
    assert kept(record(1, "a", "x.csv"), record(1, "a", "x.csv")) == [True, True]


def test_nothing_gives_nothing() -> None:
    empty = pl.DataFrame([record(1, "a", "x.csv")]).clear()
    assert duplicates.runs(empty).is_empty()


@given(st.lists(st.tuples(st.integers(1, 4), st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=20))
def test_each_execution_keeps_exactly_one_source(rows: list[tuple[int, str, int]]) -> None:
    frame = pl.DataFrame([record(s, r, f"{s}.csv", start_s=100_000 * day) for s, r, day in rows])
    judged = duplicates.runs(frame).with_columns(start=frame["start_utc"])
    sources = judged.filter("kept").group_by("run_id", "start").agg(pl.col("source_id").n_unique())
    assert set(sources["source_id"]) == {1}
    assert sources.height == judged.select("run_id", "start").unique().height
