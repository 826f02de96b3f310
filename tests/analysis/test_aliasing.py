from __future__ import annotations

import math

import pytest

from joulebook import aliasing


def beat(step, sample, window=0.0):
    return aliasing.beat(step_s=step, sample_s=sample, window_s=window, spread_w=200.0)


def test_same_period_never_passes_over_the_phases():
    assert (
        beat(0.1, 0.1).beat_s == math.inf and beat(0.05, 1.0).beat_s == math.inf and beat(2.0, 1.0).beat_s == math.inf
    )


def test_beat_of_nearly_equal_periods():
    got = beat(0.097, 0.1)
    assert got.beat_s == pytest.approx(0.097 * 0.1 / 0.003)
    assert got.half_j(1000.0) == pytest.approx(100 * got.beat_s / 2) and got.half_j(0.5) == 50.0


def test_window_that_sees_everything_hides_nothing():
    assert beat(0.1, 0.1, window=0.1).amplitude_w == 0 and beat(0.1, 0.1, window=0.025).amplitude_w == 75


def test_many_samples_in_a_step_resolve_it():
    assert beat(10.0, 1.0).half_j(1000.0) == 0
    assert beat(3.0, 1.0).amplitude_w == pytest.approx(100 / 3)


def test_periods_are_positive():
    with pytest.raises(ValueError, match="both must be positive"):
        beat(0.0, 1.0)
