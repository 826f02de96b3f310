from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from joulebook import waste

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds):
    return T0 + timedelta(seconds=seconds)


def log(watts, n=601, device="node", **more):
    return pl.DataFrame({"device": device, "ts_utc": [at(s) for s in range(n)], "power_w": float(watts), **more})


def test_gaps_between_runs_by_hand():
    runs = pl.DataFrame({
        "run_id": ["a", "b", "inside", "c"], "start_utc": [at(0), at(200), at(250), at(500)],
        "end_utc": [at(100), at(400), at(300), at(600)],
    })  # fmt: skip
    got = waste.gaps(log(120), runs)
    assert got.metric == "gap_idle_energy_j"
    assert got.frame.select("before", "after", "energy_j").rows() == [("a", "b", 12000.0), ("b", "c", 12000.0)]
    assert got.energy.value == 24000.0


def test_one_run_has_no_gap():
    runs = pl.DataFrame({"run_id": ["a"], "start_utc": [at(0)], "end_utc": [at(100)]})
    assert waste.gaps(log(120), runs).energy.value is None


def test_steps_done_twice_are_rework():
    steps = pl.DataFrame({
        "step": [1, 2, 3, 4, 2, 3, 4, 5, 4, 5, 6], "start_utc": [at(10 * k) for k in range(11)],
        "end_utc": [at(10 * k + 10) for k in range(11)],
    })  # fmt: skip
    got = waste.rework(log(50), steps)
    assert got.metric == "rework_energy_j"
    assert got.energy.value == pytest.approx(50 * 50)
    assert got.frame.select("first_step", "last_step").rows() == [(2, 4), (4, 5)]
    assert got.findings[0].evidence == {"steps": 5, "restarts": 2}


def test_micro_steps_are_no_rework_and_those_of_a_repeated_step_are_all():
    steps = pl.DataFrame(
        {"step": [1, 1, 2, 2, 3, 3, 2, 2, 3, 3, 4, 4], "end_utc": [at(3 * (i + 1)) for i in range(12)]}
    )
    steps = steps.with_columns(start_utc=pl.col("end_utc") - timedelta(seconds=3))
    got = waste.rework(log(50), steps)
    # Steps 2 and 3 are done again between 18 s and 30 s.
    assert got.energy.value == pytest.approx(50 * 12)
    assert [f.evidence["steps"] for f in got.findings] == [2]


def test_without_restart_there_is_no_rework():
    steps = pl.DataFrame({"step": [1, 2, 3], "start_utc": [None] * 3, "end_utc": [at(10), at(20), at(30)]},
                         schema_overrides={"start_utc": pl.Datetime("us", "UTC")})  # fmt: skip
    assert waste.rework(log(50), steps).energy.value == 0.0


def test_unused_needs_half_a_minute_and_power():
    busy = [0.0] * 20 + [0.9] * 20 + [0.0] * 61
    frame = log(100, n=101, device="gpu:0", utilization_ratio=pl.Series(busy))
    got = waste.unused(frame, idle_w=60.0)
    assert got.frame.height == 1
    assert got.energy.value == pytest.approx(60 * 40)
    assert waste.unused(frame, idle_w=90.0).energy.value == 0.0
    with pytest.raises(ValueError, match="utilization_ratio"):
        waste.unused(log(100), idle_w=60.0)


def test_the_energy_of_a_gap_has_an_interval_that_holds_what_the_log_leaves_open():
    runs = pl.DataFrame({"run_id": ["a", "b"], "start_utc": [at(0), at(300)], "end_utc": [at(200), at(600)]})
    whole = waste.gaps(log(120), runs).frame.row(0, named=True)
    # Whole watts that never change may all be wrong by half a watt.
    assert (whole["energy_j"], whole["lo"], whole["hi"]) == (120 * 100.0, 119.5 * 100, 120.5 * 100)
    holed = log(120).filter(~pl.col("ts_utc").is_between(at(221), at(259)))
    row = waste.gaps(holed, runs).frame.row(0, named=True)
    assert row["energy_j"] == 120 * 60.0
    assert row["hi"] == 120.5 * 60 + 120 * 40
    assert "40 s of 100 s not covered" in row["reason"]


def test_of_a_gap_that_the_log_hardly_covers_nothing_is_known():
    runs = pl.DataFrame({"run_id": ["a", "b"], "start_utc": [at(0), at(300)], "end_utc": [at(200), at(600)]})
    # 21 s after the one run and 20 s before the other are logged, of 100 s between them
    got = waste.gaps(log(120).filter(~pl.col("ts_utc").is_between(at(222), at(279))), runs)
    row = got.frame.row(0, named=True)
    assert (row["energy_j"], row["lo"], row["hi"]) == (None, None, None)
    assert row["reason"].startswith("the log covers 0.41 of the 100 s between the runs")
    assert got.energy.value is None


def test_low_load_of_supplies():
    frame = pl.concat([log(400), log(2000).with_columns(pl.col("ts_utc") + pl.duration(seconds=601))])
    got = waste.low_load(frame, rated_w=3000.0)
    assert got.seconds.value == pytest.approx(600, abs=61)
    assert not got.findings
    assert waste.low_load(log(400), rated_w=3000.0).findings[0].code == "supplies-at-low-load"
    assert waste.low_load(log(2000), rated_w=3000.0).energy.value == 0.0
    with pytest.raises(ValueError, match="rated_w"):
        waste.low_load(frame, rated_w=0.0)
