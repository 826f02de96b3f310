from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulebook import pareto

points = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=12)


@given(points)
def test_front_is_what_nothing_beats(pairs: list[tuple[int, int]]) -> None:
    table = pl.DataFrame(pairs, schema=["e", "t"], orient="row").cast(pl.Float64)
    got = pareto.front(table, energy="e", time="t")["on_front"].to_list()
    want = [not any(a <= e and b <= t and (a, b) != (e, t) for a, b in pairs) for e, t in pairs]
    assert got == want


def test_unknown_time_is_no_claim() -> None:
    table = pl.DataFrame({"e": [1.0, 2.0, None], "t": [None, 2.0, 1.0]})
    assert pareto.front(table, energy="e", time="t")["on_front"].to_list() == [None, True, None]


def test_missing_column_is_named() -> None:
    with pytest.raises(ValueError, match="no column time_to_target_s"):
        pareto.front(pl.DataFrame({"energy_to_target_j": [1.0]}))
