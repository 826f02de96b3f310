"""Adding devices tick by tick."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from joulebook import ticks

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def frame(rows: list[tuple[str, float, float]]) -> pl.DataFrame:
    return pl.DataFrame(
        [(d, T0 + timedelta(seconds=s), w) for d, s, w in rows],
        schema={"device": pl.String, "ts_utc": pl.Datetime("us", "UTC"), "power_w": pl.Float64}, orient="row",
    )  # fmt: skip


def test_cards_a_few_milliseconds_apart_are_one_tick_across_a_full_second() -> None:
    rows = [(f"gpu:{i}", t - 0.001 + 0.002 * i, 100.0 * (i + 1)) for t in range(1, 6) for i in range(2)]
    total = ticks.total(frame(rows))
    assert total["power_w"].to_list() == [300.0] * 5
    assert total["ts_utc"][0] == T0 + timedelta(seconds=1)


def test_a_tick_without_one_device_has_no_total() -> None:
    rows = [("gpu:0", float(t), 50.0) for t in range(6)] + [("gpu:1", t + 0.01, 70.0) for t in range(6) if t != 3]
    total = ticks.total(frame(rows))
    assert total["power_w"].to_list() == [120.0] * 5
    assert T0 + timedelta(seconds=3) not in total["ts_utc"].to_list()


def test_evenly_spread_devices_are_added_by_period() -> None:
    rows = [(f"gpu:{i}", t + 0.25 * i, 10.0) for t in range(8) for i in range(4)]
    assert ticks.total(frame(rows))["power_w"].to_list() == [40.0] * 8


def test_one_device_is_left_as_it_is() -> None:
    rows = frame([("node", 0.0, 1.0), ("node", 1.0, 2.0)])
    assert ticks.total(rows)["power_w"].to_list() == [1.0, 2.0]


def test_missing_column() -> None:
    with pytest.raises(ValueError, match="device"):
        ticks.total(pl.DataFrame({"power_w": [1.0]}))
