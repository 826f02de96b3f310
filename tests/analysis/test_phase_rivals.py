import importlib.util
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from joulebook import phase_timeline, phases
from joulebook.occupancy import Series
from joulebook.phase_judge import Judge, View
from joulebook.phase_regression import Sensor
from joulebook.phase_rivals import Rivals, find, none

_spec = importlib.util.spec_from_file_location("phase_truth", Path(__file__).with_name("phase_truth.py"))
truth_of = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(truth_of)
T0, stamps = truth_of.T0, truth_of.stamps


def split_of(seed, **kind):
    power, marked, truth, end = truth_of.make(seed, **kind)
    split = phases.attribute(power, marked, start_utc=T0, end_utc=end, window_s=kind["window"])
    return {r["phase"]: r for r in split.frame.iter_rows(named=True)}, truth, split


def judge(readings=240):
    line = phase_timeline.Timeline(np.array([0.0, readings + 10.0]), np.array([1]), ("other", "a"))
    t = np.arange(5.0, readings + 5.0)
    return Judge([Series("gpu:0", t, np.ones(readings), np.ones(readings), 1.0)], line, widest_s=1.0, reach_s=0.0)


def test_what_one_stretch_of_the_log_says_excludes_no_sensor():
    even, one = np.full(24, 100 / 24), np.zeros(24)
    one[0] = 100.0
    none_s = np.zeros(24)
    # Student's 97.5 % of 23 degrees is 2.0687; all of the evidence in one of 24 stretches has a variance of 10000
    assert judge().excess(even, none_s) == pytest.approx(100 / 2.0687**2, rel=1e-3)
    assert judge().excess(one, none_s) == pytest.approx(100 / 25 / 2.0687**2, rel=1e-3)
    assert judge().excess(none_s, even) == 0


def test_an_interval_reaches_as_far_as_the_rivals():
    off = np.array([[10.0, -10.0, 0.0], [-30.0, 29.0, 0.0]])
    own = np.array([np.diag([4.0, 9.0, 0.0]), np.diag([16.0, 9.0, 0.0])])
    rivals = Rivals((Sensor(1.0), Sensor(1.0, 0.5)), off, own, np.array([1.0, 0.5]))
    # alone: 30 + 1.96 * 4 / 2; both together: 1 + 1.96 * 5 / 2 under the second, 0 + 1.96 * sqrt(13) under the first
    assert rivals.reach_j(np.array([[1.0], [0.0], [0.0]])).tolist() == pytest.approx([33.92])
    assert rivals.reach_j(np.array([[1.0], [1.0], [0.0]])).tolist() == pytest.approx([1.96 * np.sqrt(13)])
    assert np.sqrt(np.diag(rivals.spread_j2())).tolist() == pytest.approx([30 / 1.96, 29 / 1.96, 0])
    assert none(2).reach_j(np.ones((2, 1))).tolist() == [0]


WITH_STEP = {
    "a step meets three samples": {"window": 1.0, "period": 2.1, "jitter": 0.01, "minutes": 20},
    "seven steps and a bit between samples": {"window": 1.0, "period": 5.0, "jitter": 0.003, "minutes": 30},
    "a sensor that forgets in three steps": {"window": 0.1, "period": 1.0, "jitter": 0.05, "lag": 2.0},
    "clocks apart, one step between samples": {"window": 0.1, "period": 0.7, "jitter": 0.003, "shift": 0.3},
}


@pytest.mark.parametrize("case", WITH_STEP)
def test_a_pace_in_step_with_the_load_gives_no_confident_wrong_number(case):
    held, given = [], 0
    for seed in range(2):
        got, truth, _ = split_of(seed, **WITH_STEP[case])
        for name, row in got.items():
            parts = [p for p in name.split("+") if p in truth]
            if row["energy_j"] is not None and parts:
                true, given = sum(truth[p] for p in parts), given + 1
                held.append(
                    row["lo"] - 0.5 * (row["energy_j"] - row["lo"])
                    <= true
                    <= row["hi"] + 0.5 * (row["hi"] - row["energy_j"])
                )
    assert all(held)


def test_readings_that_meet_one_part_of_each_step_have_no_number():
    got, truth, split = split_of(1, window=0.02, period=2.1, jitter=0.0)
    assert all(got[name]["energy_j"] is None for name in truth)
    assert any("another lag or clock error" in got[n]["reason"] or "same mix" in got[n]["reason"] for n in truth)
    assert "phase-refused" in {f.code for f in split.findings}


def steps_with_stalls(shift, *, warm=0.0, every=1.652, pace=5.0, seed=0):
    """Two phases a step, a stall each 25 steps; a warm-up of slow and weak steps; means over 1 s, each ``pace``."""
    rng = np.random.default_rng(seed)
    edges, watts, names, t, n = [0.0], [], [], 0.0, 0
    while t < 1800:
        weak = 1 - 0.6 * np.exp(-t / (warm / 1.5)) if warm else 1.0
        step = every * (1 + 0.01 * rng.standard_normal()) * (1.4 if t < warm else 1.0)
        parts = [("forward", 0.4 * step, 500.0 * weak), ("backward", 0.6 * step, 300.0 * weak)]
        if n % 25 == 24:
            parts.insert(0, ("wait", rng.uniform(2, 6), 120.0))
        for name, lasts, power in parts:
            t += lasts
            edges.append(t)
            names.append(name)
            watts.append(power)
        n += 1
    edges = np.array(edges)
    joules = np.concatenate([[0.0], np.cumsum(np.diff(edges) * watts)])
    ends = np.arange(1.3, t, pace)
    mean = np.interp(ends, edges, joules) - np.interp(ends - 1, edges, joules)
    power = pl.DataFrame(
        {"device": "gpu:0", "ts_utc": stamps(ends + shift), "power_w": mean + rng.standard_normal(ends.size)}
    )
    marked = pl.DataFrame({"phase": names, "start_utc": stamps(edges[:-1]), "end_utc": stamps(edges[1:])})
    truth = {k: float(np.diff(joules)[np.array(names) == k].sum()) for k in ("forward", "backward", "wait")}
    return power, marked, truth, T0 + timedelta(seconds=float(t))


@pytest.mark.parametrize("window_s", [1.0, None])
def test_a_warm_up_does_not_choose_the_sensor(window_s):
    for seed in range(2):
        power, marked, truth, end = steps_with_stalls(0.1, warm=40.0, seed=seed)
        split = phases.attribute(power, marked, start_utc=T0, end_utc=end, window_s=window_s)
        assert split.sensor.shift_s == pytest.approx(0.1, abs=0.05)
        for row in split.frame.filter(pl.col("phase") != "other").iter_rows(named=True):
            assert row["energy_j"] == pytest.approx(truth[row["phase"]], rel=0.04)
            assert row["lo"] <= truth[row["phase"]] * 1.01
            assert truth[row["phase"]] * 0.99 <= row["hi"]


def test_a_clock_error_beyond_the_search_that_steps_hide_is_seen_by_the_stalls():
    """A clock error of one step more looks right in every step; the stalls tell."""
    power, marked, truth, end = steps_with_stalls(1.652 + 0.2)
    split = phases.attribute(power, marked, start_utc=T0, end_utc=end, window_s=1.0)
    assert "phase-clock-not-found" in {f.code for f in split.findings}
    got = {r["phase"]: r for r in split.frame.iter_rows(named=True)}
    assert all(got[n]["energy_j"] is None and "clock error that was not found" in got[n]["reason"] for n in truth)


def test_sensors_that_explain_as_well_are_said():
    got, truth, split = split_of(2, window=0.1, period=1.0, jitter=0.05, lag=2.0)
    told = [f for f in split.findings if f.code == "phase-sensor-open"]
    assert told or all(got[n]["energy_j"] is None for n in truth)


@pytest.mark.parametrize("factor", [0.98, 1.02])
def test_a_whole_that_errs_leaves_the_truth_inside(factor):
    """An integral of a log in step with the load errs; the parts add up to it, and their intervals hold what is true."""
    power, marked, truth, end = truth_of.make(5, noise=1.0)
    whole = sum(truth.values())
    split = phases.attribute(power, marked, start_utc=T0, end_utc=end, window_s=1.0, total_j=factor * whole)
    got = {r["phase"]: r for r in split.frame.iter_rows(named=True)}
    assert sum(r["energy_j"] for r in got.values()) == pytest.approx(factor * whole)
    assert all(got[n]["lo"] <= truth[n] <= got[n]["hi"] for n in truth)


def test_a_phase_outside_of_what_was_looked_at_is_no_wider_for_it():
    """A start that lies before the part of the log on which sensors are compared has no power there, so no doubt either."""
    met = np.array([True, False])
    view = View(np.array([1.0]), np.array([900.0, 4.0]), np.diag([4.0, 1e13]), met)

    class Looked:
        def look(self, _sensor):
            return view

        def excess(self, _cost, _top):
            return 0.0

    best = Sensor(1.0, 0.0, 0.0)
    found = find(Looked(), best, {best: np.array([1.0])})
    assert found.reach_j(np.eye(2)).tolist() == pytest.approx([1.96 * 2.0, 0.0])
