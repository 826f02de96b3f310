"""Which lines a log cannot have been written with; each answer is worked out by hand."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from joulebook import own_time


def days_of(*spans):
    """Return the days of lines told as ``(day, count)``, one line an hour from there, in file order."""
    stamps = [
        datetime.fromisoformat(day).replace(tzinfo=UTC) + timedelta(hours=h)
        for day, count in spans
        for h in range(count)
    ]
    return own_time.by_day(pl.DataFrame({"line": range(2, 2 + len(stamps)), "ts_utc": stamps}))


@pytest.mark.parametrize(
    ("spans", "stray"),
    [
        ([("1970-01-01", 2), ("2026-03-02", 5)], {"1970-01-01"}),
        ([("2026-03-02", 5), ("1980-01-06", 1), ("2026-03-02", 5)], {"1980-01-06"}),
        ([("2000-01-01", 50), ("2026-03-02", 5)], {"2000-01-01", "2000-01-02", "2000-01-03"}),
        ([("2026-03-02", 5), ("2106-02-07", 1)], {"2106-02-07"}),
        ([("2026-03-02", 5), ("2062-03-02", 2), ("2026-03-02", 5)], {"2062-03-02"}),
        ([("2026-03-02", 5), ("2018-01-28", 3), ("2026-03-02", 5)], {"2018-01-28"}),
        ([("2036-02-07", 1), ("2026-03-02", 99)], {"2036-02-07"}),
    ],
    ids=["boot", "reset", "boot of most lines", "all bits", "ahead for a while", "date of the firmware", "first line"],
)
def test_lines_under_a_clock_that_was_not_set_are_stray(spans, stray):
    assert {f"{d:%Y-%m-%d}" for d in own_time.stray_days(days_of(*spans))} == stray


@pytest.mark.parametrize(
    "spans",
    [
        [("1970-01-01", 50)],
        [("2000-05-01", 50)],
        [("2026-03-02", 50)],
        [("2019-03-02", 5), ("2026-03-02", 500)],
        [("2026-03-02", 500), ("2027-12-02", 2)],
        [("2026-03-02", 60), ("2023-03-02", 40)],
        [(f"{y}-0{m}-01", 1) for y in range(2021, 2027) for m in range(1, 10)] + [("2021-01-01", 1)],
    ],
    ids=[
        "never set",
        "of old times",
        "a day",
        "continued",
        "continued shortly",
        "newer log first",
        "years with a line twice",
    ],
)
def test_a_log_of_its_own_time_is_whole(spans):
    assert own_time.stray_days(days_of(*spans)).to_list() == []


def test_a_document_of_one_line_has_no_order():
    at = [datetime(2020, 1, 1, tzinfo=UTC)] + [datetime(2026, 1, d, tzinfo=UTC) for d in range(1, 9)]
    lines = pl.DataFrame({"line": [1] * 9, "ts_utc": at})
    assert own_time.stray_days(own_time.by_day(lines)).to_list() == []


def test_no_lines_have_no_stray_days():
    lines = pl.DataFrame(schema={"line": pl.Int64, "ts_utc": pl.Datetime("us", "UTC")})
    assert own_time.stray_days(own_time.by_day(lines)).to_list() == []
