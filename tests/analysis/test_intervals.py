from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulebook import intervals

T0 = datetime(2026, 1, 1, tzinfo=UTC)
pairs = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12)


def made(some):
    return intervals.of(*((T0 + timedelta(seconds=a), T0 + timedelta(seconds=a + n)) for a, n in some))


def whole(frame):
    """The set as whole seconds."""
    return {
        s for a, b in frame.iter_rows() for s in range(int((a - T0).total_seconds()), int((b - T0).total_seconds()))
    }


def seconds_of(some):
    return {s for a, n in some for s in range(a, a + n)}


@settings(max_examples=25, deadline=None)
@given(pairs, pairs)
def test_sets_of_intervals_are_sets_of_seconds(a, b):
    x, y = made(a), made(b)
    one, two = seconds_of(a), seconds_of(b)
    assert whole(x) == one and intervals.seconds(x) == len(one)
    assert whole(intervals.union(x, y)) == one | two
    assert whole(intervals.intersect(x, y)) == one & two
    assert whole(intervals.subtract(x, y)) == one - two
    window = {"start_utc": T0 + timedelta(seconds=10), "end_utc": T0 + timedelta(seconds=50)}
    assert whole(intervals.clip(x, **window)) == one & set(range(10, 50))
    assert whole(intervals.gaps(x, **window)) == set(range(10, 50)) - one


@settings(max_examples=25, deadline=None)
@given(pairs)
def test_union_is_in_order_apart_and_not_empty(a):
    x = made(a)
    assert (x["end_utc"] > x["start_utc"]).all()
    assert (x["start_utc"].shift(-1).drop_nulls() > x["end_utc"].head(max(0, x.height - 1))).all()
    assert intervals.union(x).equals(x)


def test_nothing_at_all():
    assert intervals.union().height == 0 and intervals.seconds(made([])) == 0.0
    assert intervals.intersect(made([]), made([(0, 1)])).height == 0


def test_missing_column_is_named():
    with pytest.raises(ValueError, match="no column end_utc"):
        intervals.union(pl.DataFrame({"start_utc": [T0]}))
