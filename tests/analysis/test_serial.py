import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from joulebook import serial


def autoregressive(n, phi, seed, sd=1.0):
    noise = np.random.default_rng(seed).normal(size=n + 300)
    return lfilter([1.0], [1.0, -phi], noise)[300:] * math.sqrt(1.0 - phi**2) * sd


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_long_run_variance_of_a_known_process(phi):
    x = autoregressive(40_000, phi, 3)
    assert serial.long_run_variance(x) == pytest.approx((1 + phi) / (1 - phi), rel=0.15)
    assert serial.effective_n(x) == pytest.approx(x.size * (1 - phi) / (1 + phi), rel=0.15)
    assert serial.lag1(x) == pytest.approx(phi, abs=0.02)


def test_long_run_variance_is_the_same_from_blocks():
    x = autoregressive(250_000, 0.9, 4)
    assert serial.long_run_variance(x) == pytest.approx(19.0, rel=0.1)


@pytest.mark.parametrize("phi", [0.0, 0.7, 0.95])
def test_interval_covers_about_as_often_as_it_says(phi):
    hits = [(e.lo <= 0.0 <= e.hi) for e in (serial.mean_interval(autoregressive(3000, phi, s)) for s in range(200))]
    assert 0.90 <= np.mean(hits) <= 0.99


def test_too_little_information_is_refused_with_the_mean():
    estimate = serial.mean_interval(np.cumsum(np.random.default_rng(5).normal(size=300)) + 100.0)
    assert estimate.lo is None and estimate.hi is None
    assert estimate.value is not None
    assert "independent" in estimate.reason


def test_a_flat_sensor_gets_no_interval():
    estimate = serial.mean_interval([250.0] * 500)
    assert (estimate.value, estimate.lo, estimate.n_eff) == (250.0, None, 1.0)
    assert "flat" in estimate.reason


def test_few_readings_have_no_interval_and_few_independent_ones_a_doubt():
    assert serial.mean_interval([]).reason == "no readings"
    assert serial.mean_interval([1.0, 2.0, 3.0]).lo is None
    assert "approximate" in serial.mean_interval(np.random.default_rng(1).normal(size=20)).reason


@given(st.floats(1.0, 1e4), st.floats(0.01, 100.0), st.integers(0, 50))
@settings(max_examples=30, deadline=None)
def test_interval_moves_and_scales_with_the_unit(shift, scale, seed):
    x = autoregressive(200, 0.3, seed)
    plain, moved = serial.mean_interval(x), serial.mean_interval(shift + scale * x)
    assert moved.value == pytest.approx(shift + scale * plain.value, rel=1e-6, abs=1e-6)
    assert moved.half_width == pytest.approx(scale * plain.half_width, rel=1e-4)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
@settings(max_examples=20, deadline=None)
def test_nothing_raises_and_n_eff_stays_in_bounds(values):
    assert 0.0 <= serial.effective_n(values) <= len(values)
    estimate = serial.mean_interval(values)
    if estimate.lo is not None:
        assert estimate.lo <= estimate.value <= estimate.hi


def test_a_series_that_repeats_itself_exactly_has_an_interval():
    saw = np.tile([300.0, 310.0, 305.0, 290.0], 200)
    estimate = serial.mean_interval(saw)
    assert estimate.value == pytest.approx(301.25)
    assert serial.long_run_variance(saw) >= 0.0
