"""Repeats and excursions of readings, worked by hand, and the same whatever the block they fall into."""

import numpy as np
import pytest

from joulebook import spikes


def test_excursions_are_found_on_both_sides_and_across_blocks(monkeypatch):
    watts = 300.0 + np.random.default_rng(0).normal(0.0, 2.0, 1000)
    watts[[100, 101, 255, 256, 700]] = [900.0, 900.0, 20.0, 500.0, 0.5]
    whole = spikes.excursions(watts, scales=8.0, floor_ratio=0.01)
    assert np.flatnonzero(whole).tolist() == [100, 101, 255, 256, 700]
    assert whole[[100, 101, 255, 256, 700]].tolist() == [1, 1, -1, 1, -1]
    monkeypatch.setattr(spikes, "BLOCK", 256)
    assert spikes.excursions(watts, scales=8.0, floor_ratio=0.01).tolist() == whole.tolist()


def test_a_noisy_log_has_no_excursions_that_are_not_far_for_it():
    watts = 300.0 + np.random.default_rng(1).normal(0.0, 60.0, 5000)
    assert np.count_nonzero(spikes.excursions(watts, scales=8.0, floor_ratio=0.01)) == 0


@pytest.mark.parametrize(
    ("watts", "least", "found", "tie"),
    [
        ([1, 2, 2, 2, 3], 3, [(1, 4)], 1 / 4),
        ([5, 5, 5, 5], 3, [(0, 4)], 1 / 2),
        ([1, 1, 2, 2, 3], 3, [], 3 / 7),
    ],
)
def test_repeats(watts, least, found, tie):
    first, end, chance = spikes.repeats(np.array(watts, dtype=float), least=least)
    assert list(zip(first.tolist(), end.tolist(), strict=True)) == found
    assert chance == pytest.approx(tie)
