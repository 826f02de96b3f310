"""Clocks where a sensor is polled faster or slower than it averages: the middle of each window is what is known."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from joulebook import align

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
