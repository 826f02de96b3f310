"""Clocks where a sensor is polled faster or slower than it averages: the middle of each window is what is known."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest
from scipy.signal import lfilter

from joulebook import align, align_curve
from joulebook.align_signal import Signal

T0_US = round(datetime(2026, 3, 2, tzinfo=UTC).timestamp() * 1e6)
DT_S = 0.01


def log(power_w: np.ndarray, period_s: float, window_s: float, late_s: float) -> pl.DataFrame:
    """Means over a window before each stamp, polled at a pace that is not quite the clock's."""
    energy = np.concatenate([[0.0], np.cumsum(power_w) * DT_S])
    grid = np.arange(energy.size) * DT_S
    true = np.arange(3.137, grid[-1] - 1, period_s * 1.0007)
    mean = (np.interp(true, grid, energy) - np.interp(true - window_s, grid, energy)) / window_s
    stamps = pl.Series(T0_US + np.rint((true + late_s) * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts_utc": stamps, "power_w": mean})


@pytest.fixture(scope="module")
def power() -> np.ndarray:
    rng = np.random.default_rng(8)
    lengths = rng.uniform(2, 30, 400)
    return rng.uniform(100, 700, 400)[np.searchsorted(np.cumsum(lengths), np.arange(0, 3600, DT_S))]


@pytest.mark.parametrize(
    ("period_s", "window_s", "meter_s"), [(0.5, 1.0, 2.0), (0.1, 1.0, 1.0), (0.5, 1.0, 1.0), (1.0, 0.1, 10.0)]
)
def test_a_window_other_than_the_pace_moves_no_clock(
    power: np.ndarray, period_s: float, window_s: float, meter_s: float
) -> None:
    board, node = log(power, period_s, window_s, 0.0), log(1.1 * power + 250, meter_s, meter_s, 41.7)
    found = align.estimate(node, board, reference_window_s=window_s)
    assert found.offset_s == pytest.approx(41.7, abs=0.05)
    assert found.offset_lo <= 41.7 <= found.offset_hi


@pytest.mark.parametrize(("pace_s", "lag_s"), [(1.0, 8.0), (2.0, 5.0)])
def test_a_controller_that_is_asked_may_creep_at_any_pace(power: np.ndarray, pace_s: float, lag_s: float) -> None:
    keep = np.exp(-DT_S / lag_s)
    wall = 1.1 * power + 250
    crept = lfilter([1 - keep], [1, -keep], wall, zi=[keep * wall[0]])[0]
    asked, board = log(crept, pace_s, DT_S, 41.7), log(power, 1.0, 1.0, 0.0)
    found = align.estimate(asked, board, reference_window_s=1.0, reading_age_s=pace_s)
    assert found.lag_s == pytest.approx(lag_s, rel=0.1)
    assert found.offset_s == pytest.approx(41.7, abs=0.3)
    assert found.offset_lo < 41.7 < found.offset_hi
    # Of a meter that is not known to be one, the same is not believed.
    assert align.estimate(asked, board, reference_window_s=1.0).lag_s in (None, 0.0)


@pytest.mark.parametrize("held", [True, False])
def test_a_lag_follows_a_ramp_by_its_time_constant(held: bool) -> None:
    # Long after its start a first-order lag shows a ramp as it was one time constant ago.
    at, window_s = np.arange(200.0), 1.0 if held else 0.0
    ramp = Signal(at, 3.0 * (at - window_s / 2), "mean", 1.0, window_s, 0)
    lagged = align_curve.curve(ramp, align_curve.Sensor(0.0, 6.0, held))
    assert lagged.power(np.array([150.0, 160.5])) == pytest.approx([3.0 * 144.0, 3.0 * 154.5], rel=1e-3)
