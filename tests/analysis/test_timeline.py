"""A thinned course of power keeps what a picture of it must show."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulebook import timeline

T0 = datetime(2026, 3, 2, tzinfo=UTC)


@settings(max_examples=30, deadline=None)
@given(watts=st.lists(st.floats(0, 1e5), min_size=1, max_size=60), points=st.integers(1, 20), cut=st.integers(0, 60))
def test_no_spike_is_lost_and_pieces_are_one(watts: list[float], points: int, cut: int) -> None:
    stamps = pl.Series([T0 + timedelta(seconds=3 * i) for i in range(len(watts))]).cast(pl.Datetime("us", "UTC"))
    course = pl.DataFrame({"ts_utc": stamps, "power_w": watts})
    found = timeline.thinned([course], points)
    assert found.height <= points
    assert found["hi_w"].max() == max(watts)
    assert found["lo_w"].min() == min(watts)
    assert found["ts_utc"][0] == stamps[0]
    assert timeline.thinned([course.head(cut), course.slice(cut)], points).equals(found)


def test_nothing_is_nothing() -> None:
    assert timeline.thinned([], 10).is_empty()


def test_equal_stretches_have_their_own_means() -> None:
    stamps = [T0 + timedelta(seconds=s) for s in (0, 1, 50, 99, 100)]
    found = timeline.thinned([pl.DataFrame({"ts_utc": stamps, "power_w": [10.0, 20.0, 30.0, 40.0, 60.0]})], 2)
    assert found["mean_w"].to_list() == pytest.approx([15.0, 130 / 3])
