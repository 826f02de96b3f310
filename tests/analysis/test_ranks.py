import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joulebook import ranks

VALUES = st.lists(st.floats(-1e6, 1e6) | st.integers(-5, 5).map(float), min_size=1, max_size=40).map(np.array)


@given(VALUES)
def test_the_median_is_numpys_to_the_last_digit(values):
    assert ranks.median(values) == np.median(values)
    assert ranks.median(values.astype(np.int64)) == np.median(values.astype(np.int64))


@given(VALUES, st.floats(0, 1))
def test_a_quantile_is_numpys_to_the_last_digit(values, ratio):
    assert ranks.quantile(values, ratio) == np.quantile(values, ratio)


def test_the_values_stay_as_they_are():
    values = np.array([3.0, 1.0, 2.0])
    assert (ranks.median(values), ranks.quantile(values, 0.9), values.tolist()) == (2.0, 2.8, [3.0, 1.0, 2.0])
