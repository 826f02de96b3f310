from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from joulebook import objectives, sweet_spot
from joulebook.schema import conform


def sweep(costs: list[float], *, repeats: int = 3, noise: float = 0.003, seed: int = 0) -> pl.DataFrame:
    """Return runs with these costs per token at 1, 2, 4, …, at 300 W."""
    rng = np.random.default_rng(seed)
    x = np.tile(2.0 ** np.arange(len(costs)), repeats)
    energy = np.tile(costs, repeats) * np.exp(noise * rng.standard_normal(x.size))
    return pl.DataFrame({"x": x, "energy_per_token_j": energy, "mean_power_w": 300.0})


def per_token(runs: pl.DataFrame) -> sweet_spot.SweetSpot:
    return sweet_spot.find(runs, objective="energy_per_token_j")


VALLEY = [4.25, 2.5, 2.0, 2.5, 4.25]


def test_smooth_valley_is_found() -> None:
    spot = per_token(sweep(VALLEY))
    row = spot.row.row(0, named=True)
    assert row["status"] == "found"
    assert row["x"] == pytest.approx(4, rel=0.05)
    assert row["x_lo"] <= 4 <= row["x_hi"] < 4 * row["x_lo"]
    assert row["value"] == pytest.approx(2, rel=0.02)
    assert spot.findings == ()
    assert conform(spot.row.with_columns(sweep=pl.lit("s")), "sweet_spots").height == 1


@pytest.mark.parametrize(("costs", "x", "word"), [([5.0, 4, 3, 2], 8, "at least 8"), ([2.0, 3, 4, 5], 1, "at most 1")])
def test_edge_minimum_is_named(costs: list[float], x: float, word: str) -> None:
    spot = per_token(sweep(costs))
    assert spot.status == "edge" and spot.row["x"][0] == x
    assert word in spot.row["reason"][0] and "extend the sweep" in spot.row["reason"][0]
    assert spot.findings[0].code == "sweet-spot-edge"


def test_minimum_that_may_be_at_the_edge_is_named() -> None:
    spot = per_token(sweep([2.005, 2.0, 4, 8, 16, 32], noise=0.02))
    assert spot.status == "edge" and spot.row["x_lo"][0] is None


def test_flat_curve_is_named() -> None:
    spot = per_token(sweep([2.02, 2.01, 2.0, 2.01, 2.02], noise=0.001))
    row = spot.row.row(0, named=True)
    assert row["status"] == "flat" and "any of 1, 2, 4, 8, 16 is as good" in row["reason"]
    assert (row["x_lo"], row["x_hi"]) == (1, 16)


def test_noisy_curve_is_flat() -> None:
    spot = per_token(sweep([2.5, 2.1, 2.05, 2.0, 2.05, 2.1, 2.5], noise=0.2, repeats=4, seed=3))
    assert spot.status in {"flat", "edge"}


def test_too_few_settings_and_repeats_are_named() -> None:
    assert "too few settings: 3" in per_token(sweep([3.0, 2, 3])).row["reason"][0]
    for repeats in (1, 2):
        spot = per_token(sweep(VALLEY, repeats=repeats))
        assert spot.status == "too-few" and f"too few repeats: {repeats} at 4" in spot.row["reason"][0]
        assert spot.row["x"][0] == 4 and spot.row["x_lo"][0] is None


def test_nothing_to_go_by_is_refused() -> None:
    spot = sweet_spot.find(sweep(VALLEY))
    assert spot.status == "refused" and "tokens_to_target" in spot.row["reason"][0]
    assert spot.row["x"][0] is None and spot.settings.height == 0


def test_setting_that_never_reached_the_target_is_left_out() -> None:
    reached = pl.when(pl.col("x") < 16).then(1e6)
    spot = sweet_spot.find(sweep([*VALLEY, 0.1]).with_columns(tokens_to_target=reached))
    assert spot.settings["x"].to_list() == [1, 2, 4, 8]


def test_objectives_choose_differently() -> None:
    x = np.tile([100.0, 150, 200, 250, 300], 3)
    energy = np.tile([2.0, 1.8, 2.0, 2.3, 2.7], 3) * np.repeat([0.998, 1, 1.002], 5)
    time = np.tile([4.0, 2.0, 1.5, 1.3, 1.25], 3)
    runs = pl.DataFrame({"x": x, "energy_per_token_j": energy, "mean_power_w": energy / time})
    grid = [
        (objectives.ENERGY_PER_TOKEN, 150),
        (objectives.TIME_PER_TOKEN, 300),
        (objectives.energy_within(1.1, basis="token"), 250),
        (objectives.eta_cost(0.0, max_power_w=300, basis="token"), 300),
    ]
    for goal, best in grid:
        settings = sweet_spot.find(runs, objective=goal).settings
        assert settings.sort("value")["x"][0] == best, goal.name
    assert sweet_spot.find(runs, objective="energy_per_token_j").settings["on_front"].to_list() == [
        False,
        True,
        True,
        True,
        True,
    ]


def test_same_seed_same_result() -> None:
    runs = sweep(VALLEY)
    assert per_token(runs).row.equals(per_token(runs).row)


def test_second_valley_widens_the_interval() -> None:
    spot = per_token(sweep([4.0, 3, 2.0, 3, 4, 3, 2.005, 3, 4], noise=0.01))
    row = spot.row.row(0, named=True)
    assert row["x_lo"] <= 4 and row["x_hi"] >= 64


def test_error_of_the_instrument_does_not_blur_which_is_best() -> None:
    runs = sweep(VALLEY)
    energy = pl.col("energy_per_token_j")
    told = runs.with_columns(energy_per_token_j_lo=energy * 0.9, energy_per_token_j_hi=energy * 1.1)
    assert per_token(told).row.equals(per_token(runs).row)
