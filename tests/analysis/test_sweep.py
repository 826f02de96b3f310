from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from joulebook import sweep
from joulebook.schema import conform, table


def test_curves_have_the_columns_of_the_table() -> None:
    runs = pl.DataFrame({"x": [1.0, 2.0], "step_time_s": [1.0, 2.0]})
    curves = sweep.curves(runs)
    assert curves.columns == [c for c in table("sweeps").schema if c not in ("sweep", "knob")]
    assert conform(curves.with_columns(sweep=pl.lit("s"), knob=pl.lit("k")), "sweeps").height == 2
    assert curves["energy_to_target_j"].null_count() == 2


def test_product_takes_energy_and_tokens_from_different_runs() -> None:
    runs = pl.DataFrame(
        {"x": [8, 8, 8, 8], "energy_per_token_j": [2.0, 4.0, None, None], "tokens_to_target": [None, None, 10.0, 30.0]}
    )
    assert sweep.curves(runs)["energy_to_target_j"][0] == pytest.approx(60)


def test_interval_of_one_setting_is_that_of_student() -> None:
    values = np.array([100.0, 101.0, 99.0, 100.5, 99.5])
    row = sweep.curves(pl.DataFrame({"x": [1] * 5, "mean_power_w": values})).row(0, named=True)
    logs = np.log(values)
    # Alone, a setting shares its spread with itself: same spread, and the shared weight adds its degrees of freedom.
    half = stats.t.ppf(0.975, 8) * logs.std(ddof=1) / np.sqrt(5)
    assert row["mean_power_w_hi"] / row["mean_power_w"] == pytest.approx(np.exp(half), rel=1e-9)
    assert row["mean_power_w_lo"] < row["mean_power_w"] < row["mean_power_w_hi"]


def test_single_runs_give_values_without_intervals() -> None:
    row = sweep.curves(pl.DataFrame({"x": [1.0], "mean_power_w": [100.0]})).row(0, named=True)
    assert row["mean_power_w"] == pytest.approx(100) and row["mean_power_w_lo"] is None


def test_argument_is_not_changed() -> None:
    runs = pl.DataFrame({"x": [2, 1], "mean_power_w": [1.0, float("nan")]})
    before = runs.clone()
    sweep.curves(runs)
    assert runs.equals(before)


def test_entry_points_are_at_hand() -> None:
    assert callable(sweep.sweet_spot) and callable(sweep.tokens_to_target)
