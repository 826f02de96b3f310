"""Repeats of a phase: worked by hand, and against seeded truth."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from joulebook import phase_parts, phase_repeats, phases

T0 = datetime(2026, 11, 2, tzinfo=UTC)


def test_phases_that_differ_by_more_than_their_errors_stay_where_they_are():
    power = np.array([100.0, 200.0, 300.0, 400.0])
    drawn, share = phase_repeats.drawn([np.arange(4)], power, np.ones(4), np.full(4, 1.0))
    assert share.max() < 1e-4
    assert drawn == pytest.approx(power, rel=1e-3)


def test_drawing_together_keeps_the_energy_of_the_kind():
    rng = np.random.default_rng(1)
    power, seconds = rng.normal(300.0, 5.0, 9), rng.uniform(5.0, 50.0, 9)
    drawn, share = phase_repeats.drawn([np.arange(9)], power, seconds, (4.0 * seconds) ** 2)
    assert share[0] > 0.1
    assert float(drawn @ seconds) == pytest.approx(float(power @ seconds))


def test_one_that_stands_apart_is_no_repeat():
    odd = phase_repeats.without_odd_ones([np.arange(6)], np.array([50.0, 100.0, 101.0, 99.0, 100.0, 101.0]))
    assert [k.tolist() for k in odd] == [[1, 2, 3, 4, 5]]
    assert phase_repeats.without_odd_ones([np.arange(4)], np.array([50.0, 100.0, 101.0, 99.0])) == []


def blinking(seed, beat_s=0.101, repeats=8):
    """Phases of 3 s of a load that is on for a third of 0.101 s, seen for 25 ms of each 100 ms; truth is 160 W."""
    rng = np.random.default_rng(seed)
    t = np.arange(100, repeats * 40 + 100) * 0.1
    fine = t[:, None] - np.linspace(0.0, 0.025, 6)
    start = 10.0 + np.arange(repeats) * 4.0
    k = np.clip(((t - 10.0) // 4.0).astype(int), 0, repeats - 1)
    on = ((fine - rng.uniform(0, beat_s, repeats)[k][:, None]) / beat_s % 1.0) < 1 / 3
    inside = (t - start[k] >= 0) & (t - start[k] <= 3.0)
    power = np.where(inside, 100.0 + 180.0 * on.mean(axis=1), 60.0) + rng.normal(0, 0.5, t.size)
    head = pl.DataFrame({"t": np.arange(100) * 0.1, "power_w": 60.0 + rng.normal(0, 0.5, 100)})
    frame = pl.concat([head, pl.DataFrame({"t": t, "power_w": power})])
    stamps = [T0 + timedelta(seconds=s) for s in frame["t"].to_list()]
    marks = pl.DataFrame({
        "phase": [f"reply-{i}" for i in range(repeats)], "start_utc": [T0 + timedelta(seconds=s) for s in start],
        "end_utc": [T0 + timedelta(seconds=s + 3.0) for s in start],
    })  # fmt: skip
    return frame.select(device=pl.lit("gpu:0"), ts_utc=pl.Series(stamps), power_w="power_w"), marks


def test_a_load_that_keeps_step_with_the_sensor_has_intervals_that_hold_it():
    held, error = [], []
    for seed in range(3):
        power, marks = blinking(seed)
        split = phases.attribute(power, marks, start_utc=T0, end_utc=marks["end_utc"].max(), clock_error_s=0.0)
        rows = split.frame.filter(pl.col("phase").str.starts_with("reply"))
        assert float(split.frame["share_ratio"].sum()) == pytest.approx(1.0)
        held += rows.select((pl.col("lo") <= 480.0) & (pl.col("hi") >= 480.0)).to_series().to_list()
        error.append((rows["energy_j"] / 480.0 - 1.0).abs().max())
    assert np.mean(held) >= 0.9
    assert max(error) > 0.05


def test_what_is_missing_to_the_integral_is_not_put_on_a_phase_that_is_known_well():
    rng = np.random.default_rng(3)
    t = np.arange(0.0, 400.0, 1.0)
    wild = t >= 300.0
    power = np.where(wild, rng.choice([100.0, 600.0], t.size), 58.0 + rng.normal(0, 0.5, t.size))
    stamps = [T0 + timedelta(seconds=s) for s in t]
    edge = T0 + timedelta(seconds=299.5)
    marks = pl.DataFrame({
        "phase": ["load", "work"], "start_utc": [T0, edge], "end_utc": [edge, stamps[-1]],
    })  # fmt: skip
    frame = pl.DataFrame({"device": "gpu:0", "ts_utc": stamps, "power_w": power})
    total_j = 58.0 * 299.5 + 1.03 * float(power[wild].mean()) * 99.5
    split = phases.attribute(frame, marks, start_utc=T0, end_utc=stamps[-1], total_j=total_j)
    energy = dict(split.frame.select("phase", "energy_j").iter_rows())
    assert energy["load"] == pytest.approx(58.0 * 299.5, rel=0.003)
    assert sum(energy.values()) == pytest.approx(total_j)


def test_no_phase_is_given_less_than_nothing():
    part = phase_parts.Part(("a",), 10.0, 500.0, 1.0, 5, False, 0.0, "")
    parts = (part, replace(part, names=("b",), energy_j=1000.0, half_width_j=50.0))
    small, large = phases._reconciled(parts, -100.0)
    assert (small.energy_j, large.energy_j) == (pytest.approx(0.0), pytest.approx(910.0))
