import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulebook import qn, stats


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


def test_resolution_is_the_smallest_step():
    assert stats.resolution([98.0, 112.0, 98.0, 126.0]) == 14.0
    assert stats.resolution([5.0, 5.0]) == 0.0
