from __future__ import annotations

import numpy as np
import pytest

from joulebook import objectives

ENERGY = np.array([4.0, 3.0, 2.0, 2.5])
TIME = np.array([1.0, 1.05, 1.3, 2.0])


def test_least_energy_within_a_slowdown_keeps_the_fast() -> None:
    cost = objectives.energy_within(1.1).cost(ENERGY, TIME)
    assert np.argmin(cost) == 1
    assert np.isinf(cost[2:]).all()


@pytest.mark.parametrize(("eta", "best"), [(0.0, 0), (1.0, 2)])
def test_eta_goes_from_time_to_energy(eta: float, best: int) -> None:
    assert np.argmin(objectives.eta_cost(eta, max_power_w=10).cost(ENERGY, TIME)) == best


def test_eta_cost_is_that_of_zeus() -> None:
    cost = objectives.eta_cost(0.5, max_power_w=250).cost(np.array([1000.0]), np.array([8.0]))
    assert cost[0] == pytest.approx(0.5 * 1000 + 0.5 * 250 * 8)


def test_price_of_time_moves_the_choice_to_the_fast() -> None:
    joules, seconds = ENERGY * 3.6e6, TIME * 3600
    assert np.argmin(objectives.priced(price_per_kwh=1, price_per_hour=0).cost(joules, seconds)) == 2
    assert np.argmin(objectives.priced(price_per_kwh=1, price_per_hour=50).cost(joules, seconds)) == 0


def test_near_miss_is_suggested() -> None:
    with pytest.raises(ValueError, match="did you mean 'energy_to_target_j'"):
        objectives.named("energy_to_target")


@pytest.mark.parametrize(
    "make",
    [
        lambda: objectives.energy_within(0.9),
        lambda: objectives.eta_cost(1.5, max_power_w=1),
        lambda: objectives.eta_cost(0.5, max_power_w=0),
        lambda: objectives.priced(price_per_kwh=-1, price_per_hour=0),
    ],
)
def test_impossible_objectives_are_errors(make: object) -> None:
    with pytest.raises(ValueError, match="allowed"):
        make()  # type: ignore[operator]
