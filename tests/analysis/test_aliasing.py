from __future__ import annotations

import math

import numpy as np
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


def met(sample, step, *, jitter=0.0, n=600, coarse=False):
    rng = np.random.default_rng(5)
    ends = np.cumsum(step * (1 + jitter * rng.standard_normal(n)))
    stamps = np.arange(0.3, ends[-1], sample)
    ends = np.floor(ends) if coarse else np.round(ends, 3)
    return aliasing.met(stamps, np.full(stamps.size, 300.0), end_s=ends, number=np.arange(1.0, n + 1), sample_s=sample)


@pytest.mark.parametrize(
    ("sample", "step", "jitter", "locked"),
    [
        (2.0, 2.0, 0.0, True),
        (2.0, 1.0, 0.0, True),
        (1.0, 2.0, 0.0, True),  # two phases of each step
        (2.0, 2.0003, 0.0, True),  # slips by 0.18 s in 600 steps
        (2.0, 2.02, 0.0, False),  # slips by six steps
        (2.0, 2.0, 0.005, True),  # wanders by an eighth of a step in 600
        (2.0, 2.0, 0.2, False),  # wanders by five
        (1.0, 0.25, 0.1, False),
        (1.0, 9.0, 0.0, False),  # nine samples a step see all of it
    ],
)
def test_steps_and_samples_that_keep_time_meet_at_one_phase(sample, step, jitter, locked):
    assert met(sample, step, jitter=jitter).locked is locked


def test_stamps_of_whole_seconds_tell_phases_only_where_steps_are_even():
    assert met(2.0, 2.0, coarse=True).locked
    assert met(2.0, 2.0, jitter=0.1, coarse=True) == aliasing.Met()


def test_steps_of_chance_meet_at_all_phases():
    assert met(2.0, 2.0, jitter=0.5).share < 0.3
    five = np.arange(5.0)
    assert aliasing.met(five, five, end_s=five, number=five, sample_s=1.0) == aliasing.Met()
