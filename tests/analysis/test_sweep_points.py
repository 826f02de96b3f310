from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from joulebook import sweep_points


def of(runs: pl.DataFrame, name: str = "mean_power_w") -> sweep_points.Points:
    return sweep_points.of(sweep_points.check(runs), pl.col(name), sweep_points.noise_of(name))


def test_mean_is_arithmetic_and_settings_rise() -> None:
    points = of(pl.DataFrame({"x": [4, 2, 2], "mean_power_w": [9.0, 1.0, 3.0]}))
    assert points.x.tolist() == [2, 4]
    assert np.exp(points.mean).tolist() == pytest.approx([2, 9])
    assert points.n.tolist() == [2, 1]


def test_single_runs_have_no_spread() -> None:
    assert np.isnan(of(pl.DataFrame({"x": [1, 2], "mean_power_w": [1.0, 2.0]})).se).all()


def test_many_repeats_speak_for_themselves_and_few_are_led_by_the_others() -> None:
    rng = np.random.default_rng(0)
    loud, quiet = np.exp(0.1 * rng.standard_normal(200)), np.exp(0.01 * rng.standard_normal(200))
    runs = pl.DataFrame({"x": [1] * 200 + [2] * 200, "mean_power_w": np.concatenate([loud, quiet])})
    se = of(runs).se * np.sqrt(200)
    assert se == pytest.approx([0.1, 0.014], rel=0.15)


def test_measurement_interval_stands_in_for_a_spread() -> None:
    runs = pl.DataFrame({"x": [1], "mean_power_w": [100.0], "mean_power_w_lo": [98.04], "mean_power_w_hi": [101.96]})
    assert of(runs).se[0] == pytest.approx(0.01)


def test_draws_have_the_stated_spread() -> None:
    runs = pl.DataFrame({"x": [1] * 30, "mean_power_w": np.exp(0.05 * np.random.default_rng(1).standard_normal(30))})
    points = of(runs)
    draws = points.draws(20000, np.random.default_rng(2))
    assert draws.std() == pytest.approx(points.se[0], rel=0.05)


def test_values_that_cannot_be_are_errors() -> None:
    with pytest.raises(ValueError, match="mean_power_w = -1 at x = 3"):
        sweep_points.check(pl.DataFrame({"x": [3], "mean_power_w": [-1.0]}))
    with pytest.raises(ValueError, match="no column x"):
        sweep_points.check(pl.DataFrame({"batch": [3]}))
