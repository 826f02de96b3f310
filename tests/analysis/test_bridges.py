import numpy as np
import pytest

from joulebook import bridges


def test_limit_is_three_seconds_or_three_periods():
    assert [bridges.limit_s(p) for p in (None, 0.1, 1.0, 15.0)] == [3.0, 3.0, 3.0, 45.0]


def test_equal_stamps_are_no_step_and_one_stamp_has_none():
    assert bridges.median_step_s(np.array([0.0, 2, 2, 4, 9])) == 2.0
    assert bridges.median_step_s(np.array([7.0, 7.0])) is None


def test_the_limit_follows_a_logger_that_was_started_again_and_not_a_gap():
    slower = bridges.paced_limits_s(np.array([1.0] * 20 + [10.0] * 20), 3.0)
    assert (slower[5], slower[35]) == (3.0, 30.0)
    assert bridges.paced_limits_s(np.array([1.0] * 20 + [600.0] + [1.0] * 20), 3.0) == 3.0


@pytest.mark.parametrize("grain_s", [0.0, 1e-3, 1.0])
def test_the_median_step_of_many_stamps_is_that_of_an_array_of_their_steps(grain_s):
    steps = np.random.default_rng(3).exponential(1.0, bridges.MANY_STAMPS + 50_001)
    stamps = np.cumsum(np.round(steps / grain_s) * grain_s if grain_s else steps)
    apart = np.diff(stamps)
    assert bridges.median_step_s(stamps) == float(np.median(apart[apart > 0]))


def test_the_median_step_of_many_stamps_is_found_where_the_pace_changes_after_the_first_of_them():
    stamps = np.concatenate([np.arange(300_000.0), 300_000.0 + 5.0 * np.arange(900_000)])
    assert bridges.median_step_s(stamps) == 5.0
