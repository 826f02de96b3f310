"""Moving medians against another implementation of them."""

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from joulebook import rolling


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=80), st.sampled_from([3, 11, 21, 61]))
def test_medians_are_those_of_the_windows(values, window):
    values = np.array(values, dtype=float)
    expected = pl.Series(values).rolling_median(window, min_samples=1, center=True).to_numpy()
    assert rolling.median(values, window).tolist() == expected.tolist()
    assert rolling.median_at(values, np.arange(values.size), window).tolist() == expected.tolist()


def test_medians_of_a_series_longer_than_what_is_handled_together():
    values = np.random.default_rng(1).normal(size=5 * rolling.LANES + 17)
    expected = pl.Series(values).rolling_median(21, min_samples=1, center=True).to_numpy()
    assert rolling.median(values, 21).tolist() == expected.tolist()
