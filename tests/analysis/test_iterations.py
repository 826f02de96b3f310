import numpy as np
import pytest

from joulebook import iterations


def durations(levels, lengths, seed=0, sd=0.01):
    out = np.repeat(np.array(levels, dtype=float), lengths)
    return out * np.random.default_rng(seed).normal(1.0, sd, out.size)


def test_a_settled_start():
    found = iterations.steady(durations([3.0, 1.0], [120, 880]))
    assert found.start == pytest.approx(120, abs=2)
    assert found.frame["steady"].to_list()[-1]


def test_a_small_shift_is_still_steady():
    assert iterations.steady(durations([1.0, 1.02], [500, 500])).start == 0


def test_a_late_shift_is_not_steady():
    found = iterations.steady(durations([1.0, 1.3], [900, 100]))
    assert found.start is None and "900" in found.reason


def test_outliers_are_not_a_level():
    values = durations([1.0], [1000])
    values[300::97] = 9.0
    assert iterations.steady(values).start == 0


def test_same_seed_same_answer():
    values = durations([2.0, 1.0, 1.1], [50, 300, 650])
    assert iterations.steady(values, seed=1).frame.equals(iterations.steady(values, seed=1).frame)


@pytest.mark.parametrize("bad", [[1.0] * 5, [1.0] * 30 + [0.0], [1.0] * 30 + [np.nan]])
def test_bad_durations_are_the_callers_mistake(bad):
    with pytest.raises(ValueError, match="above 0"):
        iterations.steady(bad)
