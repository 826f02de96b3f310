"""Lines of several cards, told apart by the order within a round."""

import numpy as np
import pytest

from joulebook_pipelines.logs import ticks


@pytest.mark.parametrize("cards", [2, 3, 8])
def test_the_lines_of_a_round_are_counted(cards):
    rng = np.random.default_rng(cards)
    rounds = np.arange(60)[:, None] * 100_000 + np.arange(cards)[None, :] * 4_000
    stamps = (rounds + rng.integers(0, 900, rounds.shape)).ravel()
    assert ticks.lines_per_tick(stamps.tolist()) == cards


def test_a_round_that_lacks_a_line_now_and_then_does_not_hide_the_cards():
    stamps = [r * 100_000 + c * 4_000 for r in range(60) for c in range(3) if not (r % 10 == 5 and c == 1)]
    assert ticks.lines_per_tick(stamps) == 3


def test_one_card_whose_logger_stalls_is_one_card():
    rng = np.random.default_rng(7)
    steps = np.full(200, 110_000)
    steps[rng.choice(200, 18, replace=False)] = 700_000
    assert ticks.lines_per_tick(np.cumsum(steps).tolist()) == 1


def test_one_card_in_regular_bursts_is_one_card():
    slow = [burst * 1_040_000 + line * 110_000 for burst in range(40) for line in range(5)]
    assert ticks.lines_per_tick(slow) == 1
    many = [burst * 400_000 + line * 12_000 for burst in range(10) for line in range(26)]
    assert ticks.lines_per_tick(many) == 1
