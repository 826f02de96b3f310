"""The last fit of two logs of one pace: what smoothing leaves alone, and how near it comes to a known clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from joulebook import align, align_fine
from joulebook.align_signal import Signal

T0_US = round(datetime(2026, 3, 2, tzinfo=UTC).timestamp() * 1e6)


def signal(time_s: np.ndarray, value: np.ndarray) -> Signal:
    return Signal(time_s, value, "mean", 1.0, None, 0)


def test_a_straight_line_stays_as_it_is() -> None:
    t = np.arange(20.0)
    smooth = align_fine.smoothed(signal(t, 3 * t + 7))
    np.testing.assert_allclose(smooth.value, 3 * smooth.time_s + 7)
    assert smooth.time_s[0] == 2.0
    assert smooth.time_s[-1] == 17.0


def test_nothing_is_averaged_across_a_hole() -> None:
    t = np.concatenate([np.arange(10.0), np.arange(60.0, 70.0)])
    smooth = align_fine.smoothed(signal(t, np.where(t < 30, 100.0, 500.0)))
    assert set(smooth.value) == {100.0, 500.0}
    assert set(smooth.time_s) == {*range(2, 8), *range(62, 68)}


def test_the_fastest_wave_goes() -> None:
    t = np.arange(50.0)
    assert np.abs(align_fine.smoothed(signal(t, (-1.0) ** t)).value).max() < 1e-12


def log(power_w: np.ndarray, dt_s: float, *, late_s: float, ppm: float, phase_s: float) -> pl.DataFrame:
    """Means over the second before each stamp, on a clock that is late at the middle and drifts."""
    energy = np.concatenate([[0.0], np.cumsum(power_w) * dt_s])
    grid = np.arange(energy.size) * dt_s
    clock = np.arange(2.0 + phase_s, grid[-1] - 2.0)
    middle = grid[-1] / 2
    true = clock - ppm * 1e-6 * (clock - middle)
    mean = np.interp(true, grid, energy) - np.interp(true - 1.0, grid, energy)
    stamps = pl.Series(T0_US + np.rint((clock + late_s) * 1e6).astype(np.int64)).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"ts_utc": stamps, "power_w": mean, "span_s": 1.0})


@pytest.mark.parametrize("phase_s", [0.1, 0.35, 0.8])
def test_one_pace_is_known_far_below_its_samples(phase_s: float) -> None:
    """Steps of one to four seconds, with pauses: a fit to the logs as they are is off by up to 50 ms and 20 ppm."""
    rng, dt = np.random.default_rng(5), 0.01
    lengths = rng.uniform(1.2, 4.0, 5000)
    lengths[::40] = rng.uniform(5, 60, 125)
    ends = np.cumsum(lengths)
    levels = rng.choice([150.0, 330.0, 400.0], 5000)
    power = levels[np.searchsorted(ends, np.arange(0, 3000, dt))]
    board = log(power, dt, late_s=0.0, ppm=0.0, phase_s=0.0)
    node = log(1.1 * power + 200, dt, late_s=17.3, ppm=60.0, phase_s=phase_s)
    noisy = node.with_columns(pl.col("power_w") + pl.Series(rng.normal(0, 3, node.height)))
    found = align.estimate(noisy, board)
    assert found.offset_s == pytest.approx(17.3, abs=0.02)
    assert found.drift_ppm == pytest.approx(60.0, abs=10)


def test_other_paces_are_left_alone() -> None:
    t = np.arange(0.0, 300.0, 0.1)
    fast = replace(signal(t, np.sin(t / 7)), period_s=0.1)
    marker = object()
    assert align_fine.refit(fast, signal(np.arange(300.0), np.sin(np.arange(300.0) / 7)), marker) is marker  # type: ignore[arg-type]
