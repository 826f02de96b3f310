from __future__ import annotations

import itertools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulebook import order_effects


def lattice(names: str, rng: np.random.Generator) -> dict[frozenset[str], float]:
    subsets = (c for k in range(len(names) + 1) for c in itertools.combinations(names, k))
    return {frozenset(s): float(rng.uniform(1, 10)) for s in subsets}


def frame(states: dict[frozenset[str], float]) -> pl.DataFrame:
    rows = {"changes": [sorted(s) for s in states], "value": list(states.values())}
    return pl.DataFrame(rows, schema={"changes": pl.List(pl.String), "value": pl.Float64})


def by_orders(states: dict[frozenset[str], float]) -> tuple[dict[str, float], int]:
    """Return the mean over every order that runs through the states, by walking each."""
    names = sorted(frozenset().union(*states))
    walks = []
    for order in itertools.permutations(names):
        seen = [frozenset(order[:k]) for k in range(len(order) + 1)]
        if all(s in states for s in seen):
            walks.append({c: states[b] - states[a] for c, a, b in zip(order, seen, seen[1:], strict=False)})
    return {c: math.fsum(w[c] for w in walks) / len(walks) for c in names} if walks else {}, len(walks)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 5), st.floats(0, 0.6))
def test_it_is_the_mean_over_orders(seed: int, n: int, gone: float) -> None:
    rng = np.random.default_rng(seed)
    names = "abcde"[:n]
    states = {s: v for s, v in lattice(names, rng).items() if len(s) in (0, n) or rng.uniform() > gone}
    want, orders = by_orders(states)
    got = order_effects.average(frame(states))
    assert got.orders == orders
    assert dict(got.effects.select("change", "effect").iter_rows()) == pytest.approx(want, abs=1e-12)
    assert got.complete == (orders == math.factorial(n))


def test_effects_add_up_and_ratios_multiply_up() -> None:
    states = lattice("abcd", np.random.default_rng(0))
    got = order_effects.average(frame(states)).effects
    first, last = states[frozenset()], states[frozenset("abcd")]
    assert got["effect"].sum() == pytest.approx(last - first)
    assert np.prod(1 + got["effect_ratio"].to_numpy()) == pytest.approx(last / first)
    assert (got["effect_lo"] <= got["effect_hi"]).all()


def test_one_order_says_so() -> None:
    got = order_effects.average(pl.DataFrame({"changes": [[], ["a"], ["a", "b"]], "value": [10.0, 8.0, 4.0]}))
    assert got.orders == 1 and not got.complete
    assert got.effects["effect"].to_list() == [-2.0, -4.0]
    assert "this order" in got.findings[0].message


def test_repeats_of_a_state_are_averaged() -> None:
    got = order_effects.average(pl.DataFrame({"changes": [[], [], ["a"]], "value": [9.0, 11.0, 8.0]}))
    assert got.effects["effect"].to_list() == [-2.0]


def test_without_baseline_or_path_it_is_refused() -> None:
    for changes in ([["a"], ["a", "b"]], [[], ["a", "b"]]):
        got = order_effects.average(pl.DataFrame({"changes": changes, "value": [1.0, 2.0]}))
        assert got.effects.height == 0 and got.findings[0].code == "order-average-refused"


def test_wrong_calls_are_errors() -> None:
    with pytest.raises(ValueError, match="positive values"):
        order_effects.average(pl.DataFrame({"changes": [["a"]], "value": [0.0]}))
    with pytest.raises(ValueError, match="no column value"):
        order_effects.average(pl.DataFrame({"changes": [["a"]]}))
