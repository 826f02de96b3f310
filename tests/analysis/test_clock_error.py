from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from joulebook import clock_error, counter_power

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def _at(second):
    return T0 + timedelta(seconds=second)


def _step(devices=1):
    rows = [(f"gpu:{d}", _at(s), 100.0 if s < 50 else 400.0) for s in range(101) for d in range(devices)]
    return pl.DataFrame(rows, schema=["device", "ts_utc", "power_w"], orient="row")


@pytest.mark.parametrize("devices", [1, 3])
def test_a_window_from_low_to_high_gains_or_loses_the_difference(devices):
    found = clock_error.shift_j(_step(devices), start_utc=_at(20), end_utc=_at(80), half_s=0.5)
    assert found == pytest.approx(0.5 * 300 * devices)


def test_equal_ends_and_certain_clocks_cost_nothing():
    assert clock_error.shift_j(_step(), start_utc=_at(60), end_utc=_at(90), half_s=5.0) == 0
    assert clock_error.shift_j(_step(), start_utc=_at(20), end_utc=_at(80), half_s=0.0) == 0


def test_a_window_that_may_lie_anywhere_reaches_from_the_least_to_the_most():
    # 40 s of 100 W at the least, 40 s of 400 W at the most, whatever the stamps say
    assert clock_error.anywhere_j(_step(2), length_s=40.0) == pytest.approx((8_000.0, 32_000.0))
    assert clock_error.anywhere_j(_step(), length_s=100.0) is None
    flat = _step().with_columns(power_w=pl.lit(250.0))
    assert clock_error.anywhere_j(flat, length_s=40.0) == pytest.approx((10_000.0, 10_000.0))


def test_a_counter_tells_the_power_that_a_wrong_clock_moves():
    """A register of 1 kJ under 100 W, then 400 W: 10 s a step, then 2.5 s."""
    at = [*range(0, 200), *range(200, 401)]
    drawn = [100.0 * min(s, 200) + 400.0 * max(s - 200, 0) for s in at]
    nothing = pl.lit(None, pl.Float64).alias("power_w")
    register = pl.DataFrame(
        {"device": "node", "ts_utc": [_at(s) for s in at], "energy_counter_j": [1000.0 * (j // 1000) for j in drawn]}
    )
    power = counter_power.with_power(register.with_columns(nothing))
    moved_j = clock_error.shift_j(power, start_utc=_at(100), end_utc=_at(300), half_s=30.0)
    assert moved_j == pytest.approx(30.0 * 300.0, rel=0.1)
    least, most = clock_error.anywhere_j(power, length_s=100.0)
    assert (least, most) == pytest.approx((10_000.0, 40_000.0), rel=0.05)  # of whole seconds a step lasts two or three
