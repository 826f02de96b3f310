"""The means that counters tell are those of the load that drove them, whatever unit and pace they count in."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulebook.counter_power import with_power

START_US = 1_772_528_400_000_000


def load_w(seconds: int, seed: int = 1) -> np.ndarray:
    """A machine of 60 W that works at 180 W in the middle third, with a little noise."""
    at = np.arange(seconds)
    watts = np.where((at >= seconds // 3) & (at < 2 * seconds // 3), 180.0, 60.0)
    return watts + np.random.default_rng(seed).normal(0.0, 2.0, seconds)


def counted(counter_j: np.ndarray, *, device: str = "cpu:0", step_s: float = 1.0) -> pl.DataFrame:
    stamps = START_US + (np.arange(counter_j.size) * step_s * 1e6).astype(np.int64)
    return pl.DataFrame({
        "device": device, "ts_utc": pl.Series(stamps).cast(pl.Datetime("us", "UTC")),
        "power_w": pl.Series([None] * counter_j.size, dtype=pl.Float64), "energy_counter_j": counter_j,
    })  # fmt: skip


def register(watts: np.ndarray, unit_j: float) -> np.ndarray:
    """What a register shows after each second: whole units only."""
    return np.floor((1000.0 + np.cumsum(watts)) / unit_j) * unit_j


def test_a_fine_counter_tells_the_power_of_each_second():
    watts = load_w(900)
    told = with_power(counted(register(watts, 61e-6)))
    assert told["power_w"].to_list() == pytest.approx(watts[1:].tolist(), abs=1e-3)
    assert told.columns == ["device", "ts_utc", "power_w", "energy_counter_j"]


def test_a_wrap_of_known_range_is_no_break_and_one_of_unknown_range_leaves_its_second_out():
    watts = load_w(900)
    wrapped = register(watts, 61e-6) % 65536.0
    assert with_power(counted(wrapped), range_j={"cpu:0": 65536.0})["power_w"].to_list() == pytest.approx(
        watts[1:].tolist(), abs=1e-3
    )
    left = with_power(counted(wrapped))
    assert 895 <= left.height < 899
    assert left["power_w"].min() > 50


@pytest.mark.parametrize("unit_j", [1.0, 10.0, 360.0, 3600.0])
def test_a_coarse_register_tells_longer_means_that_are_right_on_both_levels(unit_j):
    watts = load_w(7200)
    told = with_power(counted(register(watts, unit_j)))
    at = (told["ts_utc"].dt.epoch("us").to_numpy() - START_US) / 1e6
    for level, first, last in ((60.0, 0, 2400), (180.0, 2400, 4800), (60.0, 4800, 7200)):
        inside = told["power_w"].to_numpy()[(at > first + 150) & (at < last)]
        assert inside.size > 5
        assert inside.mean() == pytest.approx(level, rel=0.02)
        assert abs(inside - level).max() < 0.1 * level + 5


def test_a_counter_that_is_asked_more_often_than_it_counts_never_stands_at_nothing():
    watts = load_w(3600)
    exact = np.concatenate([[0.0], np.cumsum(watts)])
    asked = np.interp(np.floor(np.arange(3600) / 1.7) * 1.7, np.arange(3601), exact)
    told = with_power(counted(asked))["power_w"]
    assert told.min() > 50
    assert told.max() < 190


def test_a_restart_and_a_gap_have_no_power_and_what_follows_has():
    watts = load_w(900)
    register_j = register(watts, 61e-6)
    register_j[400:] -= register_j[400]
    frame = pl.concat([counted(register_j)[:700], counted(register_j)[800:]])
    told = with_power(frame)
    seconds = ((told["ts_utc"].dt.epoch("us").to_numpy() - START_US) / 1e6).astype(int).tolist()
    assert sorted(set(range(1, 900)) - set(seconds)) == [400, *range(700, 801)]


def test_who_tells_a_power_keeps_it_and_its_rows():
    both = counted(register(load_w(60), 1.0), device="gpu:0").with_columns(power_w=pl.lit(99.0))
    frame = pl.concat([counted(register(load_w(60), 61e-6), device="cpu:0"), both])
    told = with_power(frame)
    assert told.filter(pl.col("device") == "gpu:0").equals(both)
    assert told.filter(pl.col("device") == "cpu:0").height == 59
    assert with_power(both).equals(both)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(1.0, 500.0), min_size=3, max_size=200),
    st.sampled_from([1e-3, 1.0, 50.0, 3600.0]),
    st.floats(0.1, 10.0),
)
def test_no_energy_is_made_or_lost_between_the_first_and_the_last_mean(watts, unit_j, step_s):
    frame = counted(register(np.asarray(watts) * step_s, unit_j), step_s=step_s)
    told = with_power(frame)
    if told.height < 2:
        return
    at = told["ts_utc"].dt.epoch("us").to_numpy() / 1e6
    energy_j = float((told["power_w"].to_numpy()[1:] * np.diff(at)).sum())
    assert energy_j == pytest.approx(told["energy_counter_j"][-1] - told["energy_counter_j"][0], rel=1e-6, abs=1e-3)
