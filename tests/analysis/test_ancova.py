from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from joulebook import ancova
from joulebook.ancova import Design


def runs(a: list[float], b: list[float]) -> pl.DataFrame:
    return pl.DataFrame({"variant": ["a"] * len(a) + ["b"] * len(b), "log_value": a + b})


def test_without_covariates_it_is_students_test() -> None:
    a, b = [0.01, 0.03, 0.02, 0.05], [0.11, 0.10, 0.14]
    contrast = ancova.contrast(runs(a, b), "a", "b", design=Design())
    assert contrast is not None
    want = stats.ttest_ind(b, a)
    assert contrast.p_value == pytest.approx(want.pvalue)
    assert contrast.log_ratio == pytest.approx(np.mean(b) - np.mean(a))
    lo, hi = want.confidence_interval(0.95)
    assert contrast.interval == pytest.approx((np.expm1(lo), np.expm1(hi)))


def test_blocks_make_it_the_paired_test() -> None:
    a, b = np.array([0.1, 0.5, 0.9, 1.4]), np.array([0.2, 0.55, 1.05, 1.45])
    table = runs(a.tolist(), b.tolist()).with_columns(block=pl.Series(["w", "x", "y", "z"] * 2))
    contrast = ancova.contrast(table, "a", "b", design=ancova.choose(table))
    assert contrast is not None
    assert contrast.p_value == pytest.approx(stats.ttest_rel(b, a).pvalue)


@given(st.floats(-0.05, 0.05), st.floats(-0.02, 0.02))
def test_effect_at_equal_inlet_is_exact_without_noise(effect: float, slope: float) -> None:
    inlet = [20.0, 21, 22, 23, 22.5, 24, 25, 26]
    log_value = [slope * t + effect * (i >= 4) for i, t in enumerate(inlet)]
    table = runs(log_value[:4], log_value[4:]).with_columns(inlet_c=pl.Series(inlet))
    contrast = ancova.contrast(table, "a", "b", design=Design(covariates=("inlet_c",)))
    assert contrast is not None
    assert contrast.log_ratio == pytest.approx(effect, abs=1e-9)


def test_inlet_enters_only_where_every_run_has_it_and_it_varies() -> None:
    table = runs([0.0, 0.1, 0.2], [0.3, 0.4, 0.5])
    logged = table.with_columns(inlet_c=pl.Series([20.0, 21, 22, 20, 21, 22]))
    assert ancova.choose(logged).covariates == ("inlet_c",)
    assert ancova.choose(logged.with_columns(inlet_c=pl.when(pl.col("inlet_c") > 20).then("inlet_c"))).covariates == ()
    assert ancova.choose(table.with_columns(inlet_c=pl.Series([20.0] * 3 + [25.0] * 3))).covariates == ()


def test_drift_within_variants_is_taken_out() -> None:
    rng = np.random.default_rng(0)
    hours = np.arange(24.0)
    arm = np.repeat(["a", "b", "c"], 8)
    log_value = 0.01 * hours + 0.001 * rng.standard_normal(24)
    table = pl.DataFrame({"variant": arm, "log_value": log_value, "hours": hours})
    design = ancova.choose(table)
    assert design.covariates == ("hours",) and design.drift_p is not None and design.drift_p < 1e-6
    contrast = ancova.contrast(table, "a", "b", design=design)
    assert contrast is not None and abs(contrast.log_ratio) < 0.01


def test_unequal_spread_compares_each_pair_on_its_own() -> None:
    rng = np.random.default_rng(1)
    values = np.concatenate(
        [0.001 * rng.standard_normal(8), 0.001 * rng.standard_normal(8), 0.2 * rng.standard_normal(8)]
    )
    table = pl.DataFrame({"variant": np.repeat(["a", "b", "c"], 8), "log_value": values})
    design = ancova.choose(table)
    assert not design.pooled
    contrast = ancova.contrast(table, "a", "b", design=design)
    assert contrast is not None and contrast.dof == 14 and contrast.se < 0.001


def test_detectable_effect_is_seen_in_four_of_five() -> None:
    rng = np.random.default_rng(2)
    contrast = ancova.contrast(runs(list(0.01 * rng.standard_normal(5)), [0.0] * 5), "a", "b", design=Design())
    assert contrast is not None
    ncp = np.log1p(contrast.detectable_ratio) / contrast.se
    assert stats.nct.sf(stats.t.ppf(0.975, 8), 8, ncp) == pytest.approx(0.8, abs=0.02)


def test_runs_that_repeat_to_the_digit() -> None:
    same = ancova.contrast(runs([0.1, 0.1], [0.1, 0.1]), "a", "b", design=Design())
    other = ancova.contrast(runs([0.1, 0.1], [0.2, 0.2]), "a", "b", design=Design())
    assert same is not None and same.p_value == 1
    assert other is not None and other.p_value == 0


@given(st.integers(0, 2**32), st.lists(st.integers(3, 9), min_size=3, max_size=6))
def test_variants_are_held_to_scatter_alike_as_bartlett_says(seed: int, sizes: list[int]) -> None:
    rng = np.random.default_rng(seed)
    groups = [rng.normal(0, rng.uniform(0.5, 3), n) for n in sizes]
    assert ancova._chance_of_spreads(groups) == pytest.approx(stats.bartlett(*groups).pvalue, rel=1e-9)


def test_no_degree_of_freedom_is_no_contrast() -> None:
    assert ancova.contrast(runs([0.1], [0.2]), "a", "b", design=Design()) is None
    assert ancova.contrast(runs([0.1, 0.2], []), "a", "b", design=Design()) is None
