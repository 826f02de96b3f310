from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from joulebook import totals

START = datetime(2026, 11, 2, tzinfo=UTC)


def test_a_sum_without_a_part_is_no_sum():
    a = pl.DataFrame({"device": "a", "ts_utc": [START + timedelta(seconds=k) for k in range(5)], "power_w": [1.0] * 5})
    b = a.with_columns(device=pl.lit("b"), power_w=pl.Series([2.0, None, 2.0, 2.0, 2.0]))
    out = totals.series(pl.concat([a, b]))
    assert out["power_w"].to_list() == [3.0] * 4


def test_one_device_keeps_its_stamps():
    a = pl.DataFrame(
        {"device": "a", "ts_utc": [START + timedelta(seconds=1.3 * k) for k in range(5)], "power_w": [1.0] * 5}
    )
    assert totals.series(a)["ts_utc"].to_list() == a["ts_utc"].to_list()
    assert totals.period_s(a) == pytest.approx(1.3)


def test_devices_slightly_apart_are_one_tick():
    a = pl.DataFrame({"device": "a", "ts_utc": [START + timedelta(seconds=k) for k in range(5)], "power_w": [1.0] * 5})
    b = a.with_columns(device=pl.lit("b"), ts_utc=pl.col("ts_utc") + timedelta(milliseconds=2))
    assert totals.series(pl.concat([a, b]))["power_w"].to_list() == [2.0] * 5


def test_a_device_that_is_read_twice_in_a_tick_counts_with_its_mean():
    a = pl.DataFrame({"device": "a", "ts_utc": [START + timedelta(seconds=k) for k in range(6)], "power_w": [1.0] * 6})
    again = a.slice(2, 1).with_columns(pl.col("ts_utc") + timedelta(milliseconds=1), power_w=pl.lit(4.0))
    b = a.with_columns(device=pl.lit("b"), utilization_ratio=pl.lit(0.5))
    power = pl.concat([a, again, b.drop("utilization_ratio")]).sort("device", "ts_utc")
    assert totals.series(power)["power_w"].to_list() == [2.0, 2.0, 3.5, 2.0, 2.0, 2.0]


def test_windows_hold_the_same_readings_as_a_filter():
    a = pl.DataFrame({"device": "a", "ts_utc": [START + timedelta(seconds=k // 2) for k in range(20)]})
    power = pl.concat([a, a.slice(5).with_columns(device=pl.lit("b"))]).with_row_index("row")
    for first, last in ((2, 6), (-3, 2), (7, 90), (20, 30), (6, 2)):
        start, end = START + timedelta(seconds=first), START + timedelta(seconds=last)
        kept = pl.col("ts_utc").is_between(start, end)
        assert totals.between(power, start, end).equals(power.filter(kept))
        windows = pl.DataFrame({"start_utc": [start], "end_utc": [end]})
        assert totals.inside(a["ts_utc"], windows).tolist() == a.select(kept).to_series().to_list()
        assert totals.inside(a["ts_utc"], windows, ends=False).sum() == a.filter(kept, pl.col("ts_utc") < end).height
