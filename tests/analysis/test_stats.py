import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from joulebook import qn, stats


def autoregressive(n, phi, seed, sd=1.0):
    noise = np.random.default_rng(seed).normal(size=n + 300)
    return lfilter([1.0], [1.0, -phi], noise)[300:] * math.sqrt(1.0 - phi**2) * sd


def test_scales_agree_with_the_normal_distribution():
    x = np.random.default_rng(1).normal(10.0, 3.0, 20_000)
    assert stats.mad(x) == pytest.approx(3.0, rel=0.03)
    assert qn.scale(x) == pytest.approx(3.0, rel=0.05)
    assert stats.difference_sd(x) == pytest.approx(3.0, rel=0.03)


def test_qn_of_a_worked_sample():
    # Distances of 1, 2, 3, 10: 1 1 2 7 8 9; h = 3, rank 3 -> 2; factor 4 / (4 + 3.8).
    assert qn.scale([1.0, 2.0, 3.0, 10.0]) == pytest.approx(2.2219 * 4 / 7.8 * 2.0)


@given(st.lists(st.integers(-50, 50).map(lambda k: k / 8), min_size=2, max_size=40))
@settings(max_examples=50, deadline=None)
def test_qn_is_that_of_all_pairs_written_down(values):
    x, n = np.array(values), len(values)
    distances = np.sort(np.abs(x[:, None] - x)[np.triu_indices(n, 1)])
    h = n // 2 + 1
    assert qn.scale(x) == 2.2219 * (n / (n + 1.4) if n % 2 else n / (n + 3.8)) * distances[h * (h - 1) // 2 - 1]


def test_scales_ignore_forty_percent_of_outliers():
    x = np.random.default_rng(2).normal(0.0, 1.0, 1000)
    x[:400] = 1e6
    assert qn.scale(x) < 10.0
    assert stats.mad(x) < 10.0


def test_missing_values_are_left_out():
    assert stats.median(pl.Series([1.0, None, 3.0])) == 2.0
    assert math.isnan(stats.median([]))
    assert stats.mean_interval([]).reason == "no readings"


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_long_run_variance_of_a_known_process(phi):
    x = autoregressive(40_000, phi, 3)
    assert stats.long_run_variance(x) == pytest.approx((1 + phi) / (1 - phi), rel=0.15)
    assert stats.effective_n(x) == pytest.approx(x.size * (1 - phi) / (1 + phi), rel=0.15)
    assert stats.lag1(x) == pytest.approx(phi, abs=0.02)


def test_long_run_variance_is_the_same_from_blocks():
    x = autoregressive(250_000, 0.9, 4)
    assert stats.long_run_variance(x) == pytest.approx(19.0, rel=0.1)


@pytest.mark.parametrize("phi", [0.0, 0.7, 0.95])
def test_interval_covers_about_as_often_as_it_says(phi):
    hits = [(e.lo <= 0.0 <= e.hi) for e in (stats.mean_interval(autoregressive(3000, phi, s)) for s in range(200))]
    assert 0.90 <= np.mean(hits) <= 0.99


def test_too_little_information_is_refused_with_the_mean():
    estimate = stats.mean_interval(np.cumsum(np.random.default_rng(5).normal(size=300)) + 100.0)
    assert estimate.lo is None and estimate.hi is None
    assert estimate.value is not None
    assert "independent" in estimate.reason


def test_a_flat_sensor_gets_no_interval():
    estimate = stats.mean_interval([250.0] * 500)
    assert (estimate.value, estimate.lo, estimate.n_eff) == (250.0, None, 1.0)
    assert "flat" in estimate.reason


def test_few_readings_have_no_interval_and_few_independent_ones_a_doubt():
    assert stats.mean_interval([1.0, 2.0, 3.0]).lo is None
    assert "approximate" in stats.mean_interval(np.random.default_rng(1).normal(size=20)).reason


@given(st.floats(1.0, 1e4), st.floats(0.01, 100.0), st.integers(0, 50))
@settings(max_examples=30, deadline=None)
def test_interval_moves_and_scales_with_the_unit(shift, scale, seed):
    x = autoregressive(200, 0.3, seed)
    plain, moved = stats.mean_interval(x), stats.mean_interval(shift + scale * x)
    assert moved.value == pytest.approx(shift + scale * plain.value, rel=1e-6, abs=1e-6)
    assert moved.half_width == pytest.approx(scale * plain.half_width, rel=1e-4)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
@settings(max_examples=20, deadline=None)
def test_nothing_raises_and_n_eff_stays_in_bounds(values):
    assert 0.0 <= stats.effective_n(values) <= len(values)
    estimate = stats.mean_interval(values)
    if estimate.lo is not None:
        assert estimate.lo <= estimate.value <= estimate.hi


def test_resolution_is_the_smallest_step():
    assert stats.resolution([98.0, 112.0, 98.0, 126.0]) == 14.0
    assert stats.resolution([5.0, 5.0]) == 0.0


def test_a_series_that_repeats_itself_exactly_has_an_interval():
    saw = np.tile([300.0, 310.0, 305.0, 290.0], 200)
    estimate = stats.mean_interval(saw)
    assert estimate.value == pytest.approx(301.25)
    assert stats.long_run_variance(saw) >= 0.0
