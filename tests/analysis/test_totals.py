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
