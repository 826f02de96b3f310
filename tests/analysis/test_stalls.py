from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from joulebook import stall_levels, stalls

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def log(watts, step=1.0, **more):
    n = len(watts)
    t = pl.Series(np.arange(n) * step * 1e6).cast(pl.Int64) + int(T0.timestamp() * 1e6)
    stamps = t.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return pl.DataFrame({"device": "gpu:0", "ts_utc": stamps, "power_w": watts, **more})


def periodic(every=30, last=4, n=1800, seed=0, low=160.0, high=400.0):
    rng = np.random.default_rng(seed)
    return np.where(np.arange(n) % every < last, low, high) + 5 * rng.standard_normal(n)


def test_periodic_stalls_have_period_time_and_energy():
    got = stalls.find(log(periodic()), idle_w=60.0)
    assert got.frame.height == 60
    assert got.period.value == pytest.approx(30, rel=0.01)
    assert got.seconds.value == pytest.approx(240, rel=0.03)
    assert got.energy.value == pytest.approx(240 * 160, rel=0.03)
    assert got.above_idle.value == pytest.approx(240 * 100, rel=0.03)
    assert got.lost.value == pytest.approx(240 * 400, rel=0.03)
    assert [f.code for f in got.findings] == ["periodic-stalls"]


def test_a_shallow_dip_is_no_stall():
    got = stalls.find(log(periodic(low=320.0)))
    assert set(got.frame["kind"]) == {"dip"}
    assert got.energy.value == 0.0


def test_a_stall_is_one_at_the_node_too_whose_rest_never_dips():
    board = periodic()
    node = 300.0 + 1.15 * board  # 760 W at work, 484 W in a stall: 64 % of it
    assert stalls.find(log(node)).frame["kind"].unique().to_list() == ["dip"]
    got = stalls.find(log(node), idle_w=369.0)
    assert got.seconds.value == pytest.approx(stalls.find(log(board), idle_w=60.0).seconds.value, rel=0.02)
    assert got.stall_w.value == pytest.approx(484.0, abs=5.0)
    assert stalls.find(log(300.0 + 1.15 * periodic(low=320.0)), idle_w=369.0).seconds.value == 0.0


def test_a_dip_at_high_utilisation_is_no_stall():
    got = stalls.find(log(periodic(), utilization_ratio=np.full(1800, 0.99)))
    assert set(got.frame["kind"]) == {"dip"}


def test_random_stalls_have_no_period():
    rng = np.random.default_rng(3)
    watts = np.full(3600, 400.0) + 5 * rng.standard_normal(3600)
    for start in rng.choice(3500, 60, replace=False):
        watts[start : start + 4] = 150
    got = stalls.find(log(watts))
    assert got.period.value is None
    assert "at random" in got.period.reason


def test_one_level_is_refused():
    rng = np.random.default_rng(4)
    got = stalls.find(log(400 + 10 * rng.standard_normal(1000)))
    assert got.energy.value is None
    assert "one level" in got.energy.reason


def test_without_idle_level_there_is_no_waste_in_joules():
    assert stalls.find(log(periodic())).above_idle.value is None


def test_sampling_too_slow_for_the_stall_is_refused():
    got = stalls.find(log(periodic(), step=5.0), min_stall_s=3.0)
    assert "fall between" in got.energy.reason


def test_a_known_checkpoint_is_not_a_stall():
    watts = periodic(every=300, last=15, n=1500)
    begin = [T0 + timedelta(seconds=300 * k) for k in range(1, 5)]
    marks = pl.DataFrame(
        {"phase": "checkpoint", "start_utc": begin, "end_utc": [b + timedelta(seconds=15) for b in begin]}
    )
    got = stalls.find(log(watts), marks=marks)
    assert got.frame["kind"].to_list().count("checkpoint") == 4
    assert got.energy.n == 1


@pytest.mark.parametrize(("head", "tail"), [(400, 300), (400, 0), (0, 300)])
def test_low_power_before_and_after_the_work_is_no_stall(head, tail):
    watts = np.repeat([100.0, 300.0, 100.0, 300.0, 100.0], [head, 500, 20, 500, tail])
    got = stalls.find(log(watts + 2 * np.random.default_rng(6).standard_normal(watts.size)))
    assert got.frame["kind"].to_list() == ["idle"] * (head > 0) + ["stall"] + ["idle"] * (tail > 0)
    assert got.seconds.value == pytest.approx(20, abs=1.5)
    assert got.energy.value == pytest.approx(2000, rel=0.08)
    (found,) = got.findings
    assert (found.code, found.severity) == ("idle-at-edges", "note")
    assert found.evidence["energy_j"] == pytest.approx(100 * (head + tail), rel=0.02)


def test_a_log_that_begins_within_one_of_many_stalls_holds_a_part_of_it():
    got = stalls.find(log(np.roll(periodic(every=60, last=8, n=1200), -3)))
    assert set(got.frame["kind"]) == {"stall"}
    assert got.seconds.value == pytest.approx(160, rel=0.05)


def test_devices_are_summed_before_anything():
    one = log(periodic())
    two = pl.concat(
        [one, one.with_columns(device=pl.lit("gpu:1"), ts_utc=pl.col("ts_utc") + pl.duration(milliseconds=2))]
    )
    assert stalls.find(two).stall_w.value == pytest.approx(2 * stalls.find(one).stall_w.value, rel=1e-3)


def test_levels_by_hand():
    low, high, threshold, separation = stall_levels.levels(np.array([100.0, 102, 98] * 20 + [300.0, 301, 299] * 50))
    assert (low, high, threshold) == pytest.approx((100, 300, 200), abs=0.5)
    assert separation > 100


@pytest.mark.parametrize("seed", range(5))
def test_random_gaps_are_not_called_even(seed):
    starts = np.cumsum(np.random.default_rng(seed).exponential(30, 50))
    assert not stall_levels.regular(starts, starts)[0]


def test_stalls_that_fall_between_readings_have_no_energy():
    rng = np.random.default_rng(8)
    t = np.arange(0.0, 1800.0, 5.0)
    stalled = (t % 61.0) < 3.0
    power = pl.DataFrame({
        "device": "gpu:0", "ts_utc": [datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=s) for s in t],
        "power_w": np.where(stalled, 120.0, 400.0) + rng.normal(0.0, 3.0, t.size),
    })  # fmt: skip
    assert 10 < stalled.sum() < 30
    found = stalls.find(power)
    assert found.energy.value is None
    assert "single reading" in found.energy.reason
    assert found.seconds.value is None
