import datetime as dt
from itertools import pairwise

import polars as pl
import pytest

from joulebook_pipelines.logs import local_time, stamps


def _utc(samples, zone=None, **options):
    form = stamps.detect(samples, **options)
    naive = pl.DataFrame({"t": samples}).select(stamps.parse(pl.col("t"), form)).to_series()
    return local_time.Localiser(None if form.aware else zone).to_utc(naive).to_list()


@pytest.mark.parametrize(
    "text",
    [
        "2026/11/02 09:01:17.250", "2026-11-02 09:01:17.250", "2026-11-02T09:01:17.250Z", "2026-11-02T17:01:17.250+08:00",
        "1793610077.25", "1793610077250", "02.11.2026 09:01:17.250", "2026-11-02T09:01:17.250000",
    ],
)  # fmt: skip
def test_every_form_of_one_instant_is_that_instant(text):
    assert _utc([text], "UTC") == [dt.datetime(2026, 11, 2, 9, 1, 17, 250_000, tzinfo=dt.UTC)]


def test_fractions_may_come_and_go_within_a_file():
    found = _utc(["2026-11-02 09:00:00", "2026-11-02 09:00:00.5", "2026-11-02 09:00:01.123456"], "UTC")
    assert [t.microsecond for t in found] == [0, 500_000, 123_456]


@pytest.mark.parametrize("noon", ["2026-11-02 12:59:59.5 PM", "2026/11/02 12:59:59 PM", "2026-11-02 12:59:59PM"])
def test_halves_of_the_day_are_read_whatever_the_fraction(noon):
    found = _utc(
        [noon, noon.replace("12:59:59", "01:00:01"), noon.replace("12:59:59", "12:00:01").replace("PM", "AM")], "UTC"
    )
    assert [t.hour for t in found] == [12, 13, 0]


def test_a_zone_shifts_and_none_is_invented():
    assert _utc(["2026-11-02 09:00:00"], "Asia/Shanghai")[0].hour == 1
    assert not stamps.detect(["2026-11-02 09:00:00"]).aware


def test_dates_that_do_not_exist_are_null_and_do_not_roll_over():
    assert _utc(["2026-04-29T08:00:00", "2026-04-31T08:00:00"], "UTC")[1] is None


def test_day_and_month_are_not_guessed():
    with pytest.raises(stamps.StampError, match="day_first"):
        stamps.detect(["03/04/2026 10:00:00"])
    assert _utc(["03/04/2026 10:00:00"], "UTC", day_first=True)[0].month == 4
    assert _utc(["13/04/2026 10:00:00", "02/04/2026 10:00:00"], "UTC")[1].day == 2
    assert _utc(["04/13/2026 10:00", "04/02/2026 10:00"], "UTC")[1].day == 2


def test_the_hour_that_comes_twice_is_told_apart_by_the_order_of_lines():
    local = ["01:30", "01:45", "02:00", "02:15", "02:30", "02:45", "02:00", "02:15", "02:30", "02:45", "03:00", "03:15"]
    found = _utc([f"2026-10-25 {t}" for t in local], "Europe/Berlin")
    assert found[0] == dt.datetime(2026, 10, 24, 23, 30, tzinfo=dt.UTC)
    assert found[-1] == dt.datetime(2026, 10, 25, 2, 15, tzinfo=dt.UTC)
    assert {b - a for a, b in pairwise(found)} == {dt.timedelta(minutes=15)}


def test_the_two_passes_are_told_apart_across_blocks_too():
    texts = [f"2026-10-25 02:{m:02d}:00" for m in range(60)] * 2 + ["2026-10-25 03:00:00"]
    form = stamps.detect(texts)
    clock, found = local_time.Localiser("Europe/Berlin"), []
    for first in range(0, len(texts), 7):
        part = pl.DataFrame({"t": texts[first : first + 7]}).select(stamps.parse(pl.col("t"), form)).to_series()
        found += clock.to_utc(part).to_list()
    assert {b - a for a, b in pairwise(found)} == {dt.timedelta(minutes=1)}


def test_the_hour_that_never_was_is_null():
    assert _utc(["2026-03-29 02:30:00"], "Europe/Berlin") == [None]


def test_digits_alone_are_date_and_time_where_all_of_them_are():
    found = _utc(["20261102235959", "20261103000001"], "UTC")
    assert found == [
        dt.datetime(2026, 11, 2, 23, 59, 59, tzinfo=dt.UTC),
        dt.datetime(2026, 11, 3, 0, 0, 1, tzinfo=dt.UTC),
    ]
    # The second has no such minute, so these are numbers.
    assert stamps.detect(["20261102235959", "20261102236000"]).pattern == "relative"


def test_a_zone_inside_of_what_date_prints_is_heard():
    assert _utc(["Mon Nov  2 09:01:17 UTC 2026"]) == [dt.datetime(2026, 11, 2, 9, 1, 17, tzinfo=dt.UTC)]
    with pytest.raises(stamps.StampError, match="others do not"):
        stamps.detect(["Mon Nov  2 09:01:17 UTC 2026", "Mon Nov  2 09:01:18 2026"])
