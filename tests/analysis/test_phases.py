import importlib.util
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulebook import phases

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
_spec = importlib.util.spec_from_file_location("phase_truth", Path(__file__).with_name("phase_truth.py"))
truth_of = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(truth_of)
T0, stamps = truth_of.T0, truth_of.stamps


def at(seconds):
    return T0 + timedelta(seconds=float(seconds))


def marks(*rows):
    return pl.DataFrame(
        {"phase": [r[0] for r in rows], "start_utc": [at(r[1]) for r in rows], "end_utc": [at(r[2]) for r in rows]}
    )


def log(seconds, watts, device="gpu:0"):
    return pl.DataFrame({"device": device, "ts_utc": stamps(seconds), "power_w": np.asarray(watts, dtype=float)})


def rows(split):
    return {r["phase"]: r for r in split.frame.iter_rows(named=True)}


def codes(split):
    return {f.code for f in split.findings}


def test_long_phases_of_the_worked_hour_have_the_published_shares():
    t = np.arange(0, 3600, 10.0)
    watts = 250 + 80 * np.sin(t / 300) + np.where(t < 600, 80 * (1 - t / 600), 0) + np.where(t >= 2400, 40, 0)
    split = phases.attribute(
        log(t, watts.round(1)),
        marks(("warmup", 0, 600), ("forward", 600, 2400), ("backward", 2400, 3600)),
        start_utc=T0,
        end_utc=at(3600),
    )
    got = rows(split)
    for phase, share in (("warmup", 0.213), ("forward", 0.454), ("backward", 0.333)):
        assert got[phase]["share_ratio"] == pytest.approx(share, abs=0.0015)
        assert got[phase]["method"] == "integration"


def test_a_trailing_second_is_corrected_and_named():
    seconds = np.arange(8, 16.01, 0.25)
    inside = np.clip(seconds - 10, 0, 4) - np.clip(seconds - 1 - 10, 0, 4)
    power = log(seconds - 8, 100 + 200 * inside)
    phase = marks(("idle", 0, 2), ("batch", 2, 6), ("cooldown", 6, 8))
    for window in (None, 1.0):
        split = phases.attribute(power, phase, start_utc=T0, end_utc=at(8), window_s=window)
        got = rows(split)
        assert [round(got[p]["energy_j"], 3) for p in ("idle", "batch", "cooldown")] == [200, 1200, 200]
        assert split.total.value == pytest.approx(1600)
        note = next(f for f in split.findings if f.code == "phase-trailing-mean")
        assert note.severity == "warning"
        assert "up to 100 J" in note.message
        assert split.sensor.window_s == 1.0


@pytest.mark.parametrize(("shift", "lag"), [(0.0, 0.0), (-0.5, 0.0), (0.2, 0.1)])
def test_short_phases_are_solved_for_with_clock_and_lag(shift, lag):
    power, phase, truth, end = truth_of.make(3, shift=shift, lag=lag, noise=1.0)
    split = phases.attribute(power, phase, start_utc=T0, end_utc=end, window_s=1.0)
    got = rows(split)
    for name, limit in (("backward", 0.005), ("forward", 0.01), ("grad_sync", 0.04), ("optimizer", 0.1)):
        assert got[name]["energy_j"] == pytest.approx(truth[name], rel=limit)
        assert got[name]["method"] == "regression"
    assert split.shift.value == pytest.approx(shift, abs=0.02)
    assert split.sensor.lag_s == pytest.approx(lag, abs=0.03)
    assert split.frame["share_ratio"].sum() == pytest.approx(1, abs=1e-9)


def test_devices_add_up():
    power, phase, truth, end = truth_of.make(4, noise=1.0)
    both = pl.concat([power, power.with_columns(pl.lit("gpu:1").alias("device"), pl.col("power_w") * 0.5)])
    one = rows(phases.attribute(power, phase, start_utc=T0, end_utc=end, window_s=1.0))
    two = rows(phases.attribute(both, phase, start_utc=T0, end_utc=end, window_s=1.0))
    for name in truth:
        assert two[name]["energy_j"] == pytest.approx(1.5 * one[name]["energy_j"], rel=1e-3)


def test_constant_occupancy_is_refused():
    even = np.array([0.2, 0.1, 0.15, 0.05])
    power, phase, _, end = truth_of.make(5, jitter=0.0, seconds=even)
    split = phases.attribute(power, phase, start_utc=T0, end_utc=end, window_s=1.0)
    got = rows(split)
    assert got["other"]["energy_j"] == pytest.approx(split.total.value)
    assert all(got[n]["energy_j"] is None and "same mix" in got[n]["reason"] for n in truth_of.NAMES)
    assert "phase-refused" in codes(split)


def test_phases_that_always_go_together_are_merged_by_name():
    rng = np.random.default_rng(1)
    length, seconds, names, t = 6000.0, [], [], 0.0
    while t < length:
        for name, last in zip("abc", (0.2 * (u := rng.uniform(0.5, 1.5)), 0.2 * u, rng.uniform(0.5, 2)), strict=True):
            seconds.append((t, t + last))
            names.append(name)
            t += last
    edges = np.array(seconds)
    energy = np.concatenate(
        [[0], np.cumsum(np.diff(edges, axis=1)[:, 0] * [{"a": 300, "b": 200, "c": 100}[n] for n in names])]
    )
    ends = np.arange(20.0, length, 20.0)
    at_edges = np.append(edges[:, 0], edges[-1, 1])
    watts = (np.interp(ends, at_edges, energy) - np.interp(ends - 20, at_edges, energy)) / 20
    watts = watts + 40 * rng.standard_normal(len(ends))
    marked = pl.DataFrame({"phase": names, "start_utc": stamps(edges[:, 0]), "end_utc": stamps(edges[:, 1])})
    split = phases.attribute(log(ends, watts), marked, start_utc=T0, end_utc=at(length), window_s=20.0)
    got = rows(split)
    assert got["a"]["energy_j"] is None
    assert "cannot be told apart" in got["a"]["reason"]
    assert any("+" in name for name in got) or got["other"]["energy_j"] > 0
    assert split.frame["energy_j"].sum() == pytest.approx(split.total.value, rel=1e-9)


def test_a_phase_with_one_reading_has_no_number():
    t = np.arange(0, 100.0)
    split = phases.attribute(
        log(t, np.full(100, 200.0)),
        marks(("a", 0, 50), ("blip", 50, 50.4), ("b", 50.4, 100)),
        start_utc=T0,
        end_utc=at(100),
    )
    got = rows(split)
    assert got["blip"]["energy_j"] is None
    assert "too few" in got["blip"]["reason"]
    assert got["other"]["energy_j"] == pytest.approx(80.0, rel=0.01)


def test_nested_and_overlapping_phases_are_named():
    t = np.arange(0, 101.0)
    split = phases.attribute(
        log(t, np.full(101, 100.0)),
        marks(("epoch", 0, 95), ("evaluation", 40, 60), ("copy", 90, 99)),
        start_utc=T0,
        end_utc=at(100),
    )
    got = rows(split)
    assert got["epoch"]["seconds"] == pytest.approx(70)
    assert got["evaluation"]["energy_j"] == pytest.approx(2000, rel=1e-6)
    assert got["copy & epoch"]["seconds"] == pytest.approx(5)
    assert {"phases-nested", "phases-overlap"} <= codes(split)


def test_energy_from_elsewhere_is_what_parts_add_up_to():
    t = np.arange(0, 101.0)
    split = phases.attribute(
        log(t, np.full(101, 100.0)), marks(("a", 0, 40)), start_utc=T0, end_utc=at(100), total_j=10100.0
    )
    got = rows(split)
    assert got["a"]["energy_j"] == pytest.approx(4040)
    assert got["a"]["hi"] >= 4040 + 40 - 1e-6
    assert got["other"]["energy_j"] == pytest.approx(6060)


def test_a_fit_that_does_not_describe_the_integral_is_refused():
    t = np.arange(0, 101.0)
    split = phases.attribute(
        log(t, np.full(101, 100.0)), marks(("a", 0, 40)), start_utc=T0, end_utc=at(100), total_j=20000.0
    )
    assert rows(split)["a"]["energy_j"] is None
    assert rows(split)["other"]["energy_j"] == 20000.0


def test_a_gap_is_said():
    t = np.concatenate([np.arange(0, 40.0), np.arange(70, 101.0)])
    split = phases.attribute(
        log(t, np.full(len(t), 100.0)), marks(("a", 0, 50), ("b", 50, 100)), start_utc=T0, end_utc=at(100)
    )
    assert "phase-gaps" in codes(split)


def test_readings_whose_means_reach_out_of_the_window_give_no_number():
    power = log(np.arange(0, 300, 60.0), [300.0, 900.0, 900.0, 900.0, 300.0])
    told = marks(("a", 0, 90), ("b", 90, 200))
    split = phases.attribute(power, told, start_utc=T0, end_utc=at(200), window_s=120.0)
    assert split.frame["energy_j"].null_count() == split.frame.height
    assert "lies in the window" in split.frame["reason"][0]


def test_without_readings_there_is_no_number():
    split = phases.attribute(log([], []), marks(("a", 0, 40)), start_utc=T0, end_utc=at(100))
    assert split.total.value is None
    assert split.frame["energy_j"].null_count() == 2
    assert codes(split) == {"phases-refused"}


def test_wrong_calls_are_errors():
    for bad in ({"end_utc": T0}, {"end_utc": at(1), "window_s": -1.0}, {"end_utc": at(1), "clock_error_s": -1.0}):
        with pytest.raises(ValueError, match=r"must be"):
            phases.attribute(log([0], [1]), marks(("a", 0, 1)), start_utc=T0, **bad)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 60), st.floats(0.1, 20)), max_size=25),
    st.integers(0, 1000),
    st.sampled_from([None, 1.0]),
)
def test_parts_equal_the_whole(pieces, seed, window):
    rng = np.random.default_rng(seed)
    power = log(np.arange(-2, 65.0), rng.uniform(50, 400, 67))
    split = phases.attribute(
        power,
        marks(*[(n, a, a + d) for n, a, d in pieces]),
        start_utc=T0,
        end_utc=at(60),
        window_s=window,
        clock_error_s=0.2,
    )
    assert split.frame["share_ratio"].sum() == pytest.approx(1, abs=1e-9)
    assert split.frame["energy_j"].sum() == pytest.approx(split.total.value, rel=1e-9)
    kept = split.frame.filter(pl.col("energy_j").is_not_null(), pl.col("phase") != "other")
    assert (kept["lo"] <= kept["energy_j"]).all() and (kept["energy_j"] <= kept["hi"]).all()
    assert (split.frame.filter(pl.col("energy_j").is_null())["reason"].str.len_chars() > 0).all()


NODE = SHARED / "studies" / "node"


def node_power():
    raw = pl.read_csv(NODE / "gpu.csv")
    raw.columns = [c.strip() for c in raw.columns]
    watts = pl.col("power.draw [W]").str.strip_chars(" W").cast(pl.Float64, strict=False)
    return raw.select(
        device="gpu:" + pl.col("index").cast(pl.String).str.strip_chars(),
        ts_utc=pl.col("timestamp")
        .str.strptime(pl.Datetime("us"), "%Y/%m/%d %H:%M:%S%.f")
        .dt.replace_time_zone("Asia/Shanghai")
        .dt.convert_time_zone("UTC"),
        power_w=watts,
    ).filter(pl.col("power_w") < 2000)


@pytest.mark.skipif(not NODE.exists(), reason="no node study")
@pytest.mark.parametrize("window", [None, 1.0])
def test_the_node_study_has_every_share(window):
    truth = json.loads((NODE / "truth.json").read_text())
    marked = pl.read_csv(NODE / "phases.csv", try_parse_dates=True).rename({"start": "start_utc", "end": "end_utc"})
    split = phases.attribute(
        node_power(),
        marked,
        start_utc=datetime(2026, 11, 2, 1, 11, 17, tzinfo=UTC),
        end_utc=datetime(2026, 11, 2, 1, 51, 16, 186000, tzinfo=UTC),
        window_s=window,
    )
    got = rows(split)
    for phase, energy in truth["phases"].items():
        assert got[phase]["energy_j"] / truth["phase_total"] == pytest.approx(energy / truth["phase_total"], abs=0.003)
        assert got[phase]["lo"] <= energy <= got[phase]["hi"]
    for phase in ("data_wait", "checkpoint"):
        assert got[phase]["energy_j"] == pytest.approx(truth["phases"][phase], rel=0.02)
    assert split.sensor.window_s == 1.0


@pytest.mark.parametrize("told", [True, False])
def test_phases_in_a_gap_have_the_energy_of_the_time_that_was_seen(told):
    """Phases of 10 s at 100 W and 300 W in turn; 60 s of 400 s are lost, 30 s of each: 170 s of each were seen."""
    t = np.arange(0, 401.0, 0.5)
    watts = np.where(((t - 0.25) % 20) < 10, 100.0, 300.0)  # what was drawn in the half second before
    kept = (t <= 200) | (t >= 260)
    turns = [("ab"[k % 2], 10 * k, 10 * k + 10) for k in range(40)]
    split = phases.attribute(
        log(t[kept], watts[kept]), marks(*turns), start_utc=T0, end_utc=at(400),
        total_j=170 * 100.0 + 170 * 300.0 if told else None, clock_error_s=0.0,
    )  # fmt: skip
    got = rows(split)
    assert sum(r["energy_j"] for r in got.values()) == pytest.approx(split.total.value)
    assert split.total.value == pytest.approx(170 * 400.0, rel=0.01)
    for phase, watt in (("a", 100.0), ("b", 300.0)):
        assert got[phase]["energy_j"] == pytest.approx(170 * watt, rel=0.04)
        assert got[phase]["power_w"] == pytest.approx(watt, rel=0.04)
        assert got[phase]["lo"] <= 200 * watt <= got[phase]["hi"]
        # beyond what the fit leaves open, the lost time may have drawn as much as the highest reading
        up, down = got[phase]["hi"] - got[phase]["energy_j"], got[phase]["energy_j"] - got[phase]["lo"]
        assert up - down == pytest.approx(30 * 300.0, rel=0.03)
    assert "phase-gaps" in codes(split)
