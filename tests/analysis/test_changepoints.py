import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import lfilter

from joulebook import changepoints, changepoints_partition


def cost(values, starts, penalty):
    ends = [*starts[1:], values.size]
    squares = sum(((values[a:b] - values[a:b].mean()) ** 2).sum() for a, b in zip(starts, ends, strict=True))
    return squares + penalty * (len(starts) - 1)


def cheapest(values, penalty):
    """The textbook recursion, quadratic in the length."""
    n = values.size
    best, last = [-penalty], []
    for t in range(1, n + 1):
        options = [best[s] + penalty + ((values[s:t] - values[s:t].mean()) ** 2).sum() for s in range(t)]
        last.append(int(np.argmin(options)))
        best.append(min(options))
    return best[n]


@given(st.lists(st.integers(-20, 20), min_size=2, max_size=40), st.sampled_from([0.5, 3.0, 20.0]))
@settings(max_examples=25, deadline=None)
def test_the_partition_is_the_cheapest_one(numbers, penalty):
    values = np.array(numbers, dtype=float)
    if np.ptp(values) == 0.0:
        return
    starts = changepoints_partition.optimal(values, penalty).tolist()
    assert starts[0] == 0
    assert cost(values, starts, penalty) == pytest.approx(cheapest(values, penalty), abs=1e-6)


def steps(levels, length, phi, seed, sd=6.0):
    rng = np.random.default_rng(seed)
    n = length * len(levels)
    noise = lfilter([1.0], [1.0, -phi], rng.normal(size=n + 200))[200:] * np.sqrt(1 - phi**2) * sd
    return np.repeat(levels, length) + noise


@pytest.mark.parametrize("phi", [0.0, 0.7])
def test_shifts_are_found_where_they_are(phi):
    found = changepoints.find(steps([300.0, 360.0, 200.0, 260.0], 400, phi, 1))
    assert found.indices.size == 3
    assert np.abs(found.indices - [400, 800, 1200]).max() <= 3
    assert found.frame["n"].sum() == 1600
    assert found.frame["mean"].to_list() == pytest.approx([300.0, 360.0, 200.0, 260.0], abs=3.0)


def test_autocorrelated_noise_has_no_shifts():
    quiet = [changepoints.find(steps([300.0], 3000, 0.8, seed)).indices.size for seed in range(10)]
    assert sum(quiet) <= 1


def test_the_noise_scale_is_the_long_run_one():
    found = changepoints.find(steps([300.0, 400.0], 3000, 0.7, 2))
    assert found.noise_sd == pytest.approx(6.0 * np.sqrt(1.7 / 0.3), rel=0.1)


def test_an_edge_that_a_reading_covers_is_one_shift():
    values = np.concatenate((np.full(50, 100.0), [230.0], np.full(50, 300.0))) + np.random.default_rng(0).normal(
        0, 1, 101
    )
    assert changepoints.find(values).indices.tolist() == [50]


def test_equal_values_are_one_level():
    assert changepoints.find(np.full(100, 7.0)).frame.height == 1


def test_two_exact_levels_are_two():
    assert changepoints.find(np.repeat([1.0, 2.0], 100)).indices.tolist() == [100]


def test_long_series_are_binned_and_refined(monkeypatch):
    values = steps([300.0, 360.0, 200.0, 260.0], 5000, 0.5, 3)
    monkeypatch.setattr(changepoints, "FULL_RATE_LIMIT", 1000)
    monkeypatch.setattr(changepoints, "BINS", 500)
    found = changepoints.find(values)
    assert np.abs(found.indices - [5000, 10_000, 15_000]).max() <= 5


@pytest.mark.parametrize("bad", [[1.0], [1.0, np.nan, 2.0], [1.0, np.inf]])
def test_missing_values_are_the_callers_mistake(bad):
    with pytest.raises(ValueError, match="finite"):
        changepoints.find(bad)


def test_same_input_same_output():
    values = steps([300.0, 330.0], 500, 0.3, 9)
    first, second = (changepoints.find(values).frame for _ in range(2))
    assert first.equals(second)
    assert list(itertools.pairwise(first["end"].to_list()))
