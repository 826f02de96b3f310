import numpy as np
import pytest

from joulebook import phase_regression, phase_sensor, phase_timeline, phase_variance
from joulebook.occupancy import Series, share
from joulebook.phase_regression import Sensor


def steady(n=400, seed=0):
    """Two phases of random length, seen through 1 s windows."""
    rng = np.random.default_rng(seed)
    edges = np.concatenate([[0.0], np.cumsum(rng.uniform(0.1, 0.9, 2 * n))])
    line = phase_timeline.Timeline(edges, np.arange(2 * n) % 2 + 1, ("other", "a", "b"))
    return line, np.arange(2.0, edges[-1] - 2)


def test_powers_without_noise_are_exact():
    line, t = steady()
    x = share(line, t, window_s=1.0)
    y = x @ np.array([0.0, 300.0, 100.0])
    one = Series("gpu:0", t, y, np.ones(len(t)), 1.0)
    got = phase_regression.fit([one], line, Sensor(1.0), columns=np.array([1, 2]))
    assert got.power_w[0] == pytest.approx([300, 100], rel=1e-6)
    assert got.residual_w < 1e-3


def test_the_search_finds_window_shift_and_lag():
    line, t = steady(seed=1)
    truth = Sensor(1.0, 0.2, 0.23)
    x = share(line, t - truth.shift_s, window_s=truth.window_s, lag_s=truth.lag_s)
    noise = np.random.default_rng(2).standard_normal(len(t))
    one = Series("gpu:0", t, x @ np.array([0.0, 300.0, 100.0]) + noise, np.ones(len(t)), 1.0)
    found = phase_sensor.search([one], line, window_s=None, clock_error_s=0.8)
    got = found.sensor
    assert not found.at_edge
    assert got.window_s == 1.0
    assert got.shift_s == pytest.approx(0.23, abs=0.02)
    assert got.lag_s == pytest.approx(0.2, abs=0.02)


def test_a_shift_beyond_the_search_is_said():
    line, t = steady(seed=3)
    y = share(line, t - 0.45, window_s=1.0) @ np.array([0.0, 300.0, 100.0])
    one = Series("gpu:0", t, y, np.ones(len(t)), 1.0)
    assert phase_sensor.search([one], line, window_s=1.0, clock_error_s=0.3, fit_lag=False).at_edge


def test_covariance_covers_repeated_noise():
    line, t = steady(seed=4)
    x = share(line, t, window_s=1.0)
    rng, got = np.random.default_rng(5), []
    for _ in range(60):
        one = Series(
            "gpu:0", t, x @ np.array([0.0, 300.0, 100.0]) + 5 * rng.standard_normal(len(t)), np.ones(len(t)), 1.0
        )
        fit = phase_regression.fit([one], line, Sensor(1.0), columns=np.array([1, 2]))
        got.append((fit.power_w[0, 0] * line.seconds[1], np.sqrt(fit.covariance[0, 0])))
    energy, se = np.array(got).T
    assert se.mean() == pytest.approx(energy.std(ddof=1), rel=0.25)


def test_long_batches_see_slow_beats_that_lags_do_not():
    beat = 10 * np.sin(np.arange(60) / 12)[:, None]
    variance, freedom = phase_variance.batched(beat)
    assert variance[0] > phase_variance.hac(beat)[0, 0]
    assert freedom[0] == 4
