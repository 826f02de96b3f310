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


def test_counting_finds_what_medians_find():
    values = np.random.default_rng(2).standard_t(2, 4000)
    center = rolling.median(values, 21)
    far = np.flatnonzero(np.abs(values - center) > 3.0)
    inner = far[(far >= 10) & (far < 3990)]
    found = rolling.far_from_median(values, 21, distance=3.0)
    assert found[(found >= 10) & (found < 3990)].tolist() == inner.tolist()
    assert {0, 9, 3990, 3999} <= set(found.tolist())


def test_counting_by_a_share_of_the_median():
    values = np.random.default_rng(3).lognormal(5.0, 0.2, 2000)
    center = rolling.median(values, 11)
    far = np.flatnonzero(np.abs(values - center) > 0.3 * center)
    assert np.setdiff1d(far, rolling.far_from_median(values, 11, ratio=0.3)).size == 0
    assert rolling.far_from_median(values, 11, ratio=0.3).size <= far.size + 10
