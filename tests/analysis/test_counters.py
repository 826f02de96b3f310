from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from joulebook import counters, energy

T0 = datetime(2026, 3, 3, 9, tzinfo=UTC)


def frame(values, step=1.0, device="cpu:0", at=None):
    at = [i * step for i in range(len(values))] if at is None else at
    rows = [(device, T0 + timedelta(seconds=t), v) for t, v in zip(at, values, strict=True)]
    return pl.DataFrame(
        rows,
        schema={"device": pl.String, "ts_utc": pl.Datetime("us", "UTC"), "energy_counter_j": pl.Float64},
        orient="row",
    )


def kinds(values, **options):
    at = options.pop("at", None)
    return counters.deltas(frame(values, at=at), **options).frame["kind"].to_list()


def energies(values, **options):
    at = options.pop("at", None)
    return counters.deltas(frame(values, at=at), **options).frame["energy_j"].to_list()


def test_first_reading_has_no_energy():
    assert energies([1e6, 1e6 + 50]) == [None, 50.0]


def test_wrap_is_corrected_only_where_the_range_is_known():
    values = [262_000.0, 262_100.0, 50.0, 150.0]
    assert energies(values, range_j=262_144.0, max_power_w=300) == [None, 100.0, 94.0, 100.0]
    assert kinds(values)[2] == "reset"  # nearly zero, no range: not a wrap that anybody can size
    assert energies(values)[2] is None


def test_reset_loses_its_energy_and_is_never_negative():
    values = [100_000.0, 100_100.0, 20.0, 120.0]
    got = counters.deltas(frame(values), range_j=262_144.0, max_power_w=300)
    assert got.frame["kind"].to_list() == ["first", "difference", "reset", "difference"]
    assert got.frame["energy_j"].to_list() == [None, 100.0, None, 100.0]
    assert [f.code for f in got.findings] == ["counter-reset"]


def test_drop_to_near_zero_after_a_pause_is_not_called_a_wrap():
    values = [200_000.0, 200_100.0, 200_200.0, 5_000.0]
    assert kinds(values, at=[0, 1, 2, 302], range_j=262_144.0, max_power_w=400)[3] == "unknown"


def test_step_longer_than_half_the_range_is_refused():
    safe = counters.deltas(frame([260_000.0, 1_000.0], step=600), range_j=262_144.0, max_power_w=500)
    assert safe.frame["kind"][1] == "unknown" and safe.frame["energy_j"][1] is None
    assert safe.devices["safe_interval_s"][0] == pytest.approx(262_144 / 500)
    assert "counter-read-too-seldom" in [f.code for f in safe.findings]


def test_rise_that_may_hide_a_wrap_is_unknown():
    assert kinds([0.0, 1_000.0], at=[0, 1200], range_j=262_144.0, max_power_w=500)[1] == "unknown"
    assert kinds([0.0, 1_000.0], at=[0, 300], range_j=262_144.0, max_power_w=500)[1] == "difference"


@pytest.mark.parametrize("bad", [0.0, 9e15])
def test_single_impossible_reading_is_left_out(bad):
    got = counters.deltas(frame([5000.0, 5100, bad, 5300, 5400]), max_power_w=300)
    assert got.frame["kind"].to_list() == ["first", "difference", "glitch", "difference", "difference"]
    assert got.frame["energy_j"].sum() == 400
    result = energy.from_counter(
        frame([5000.0, 5100, bad, 5300, 5400]), start_utc=T0, end_utc=T0 + timedelta(seconds=4)
    )
    assert result.total.value == pytest.approx(400) and result.frame["coverage_ratio"][0] == 1


def test_repeated_float_reading_is_not_a_wrap():
    assert energies([3000.0, 3000.0, 3100.0], range_j=262_144.0) == [None, 0.0, 100.0]


def test_trembling_last_digit_does_not_invent_energy():
    got = counters.deltas(frame([100.0, 101.0, 100.0, 102.0, 103.0, 103.0]), max_power_w=300)
    assert got.frame["energy_j"].sum() == 3.0


def test_range_is_that_of_each_domain():
    both = pl.concat([frame([990.0, 10.0]), frame([90.0, 15.0], device="dram:0")])
    got = counters.deltas(
        both, range_j={"cpu:0": 1000.0, "dram:0": 100.0}, max_power_w={"cpu:0": 200.0, "dram:0": 40.0}
    )
    assert got.frame.filter(kind="wrap")["energy_j"].to_list() == [20.0, 25.0]


def test_unsigned_underflow():
    counts = [121300, 74200, 65100, 82400, 18446744073447458288, 99000]
    rows = [("cpu:0", T0 + timedelta(seconds=3 * (i + 1)), c) for i, c in enumerate(counts)]
    schema = {"device": pl.String, "ts_utc": pl.Datetime("us", "UTC"), "count": pl.UInt64}
    given = pl.DataFrame(rows, schema=schema, orient="row")
    without = counters.unsigned_differences(given, unit_j=1e-3)
    assert without.frame["energy_j"].sum() == pytest.approx(442.0, abs=1e-9)
    assert without.frame["kind"].to_list().count("glitch") == 1
    known = counters.unsigned_differences(given, unit_j=1e-3, range_counts=262143328)
    assert known.frame["energy_j"].sum() == pytest.approx(492.0, abs=1e-9)
    window = {"start_utc": T0, "end_utc": T0 + timedelta(seconds=18)}
    open_ = energy.integrate(without.frame.with_columns(power_w=None), **window, max_gap_s=0.1)
    assert open_.total.value == pytest.approx(442.0) and open_.frame["covered_s"][0] == 15
    assert round(open_.mean_power.value, 2) == 29.47
    full = energy.integrate(known.frame.with_columns(power_w=None), **window)
    assert full.total.value == pytest.approx(492.0) and round(full.mean_power.value, 2) == 27.33


def test_counter_needs_whole_counts():
    with pytest.raises(ValueError, match="whole numbers"):
        counters.unsigned_differences(pl.DataFrame({"device": ["a"], "ts_utc": [T0], "count": [1.0]}), unit_j=1.0)


def test_zones_of_a_package():
    zones = {"cpu:0": 1800.0, "cpu:0/core": 1200.0, "dram:0": 180.0, "psys": 2400.0}
    both = pl.concat([frame([0.0, v], step=60, device=d) for d, v in zones.items()])
    got = energy.from_counter(both, start_utc=T0, end_utc=T0 + timedelta(seconds=60))
    means = dict(got.frame.select("device", "mean_power_w").iter_rows())
    assert means["cpu:0"] == 30 and means["dram:0"] == 3 and means["psys"] == 40


def test_reset_leaves_its_span_open():
    got = energy.from_counter(
        frame([100_000.0, 100_200.0, 20.0, 220.0]), start_utc=T0, end_utc=T0 + timedelta(seconds=3), max_power_w=300
    )
    assert got.total.value == pytest.approx(400)
    assert got.frame["coverage_ratio"][0] == pytest.approx(2 / 3)
    assert got.total.hi >= 600
    assert {"counter-reset", "partial-coverage"} <= {f.code for f in got.findings}


def test_counter_knows_the_energy_of_its_gap():
    got = energy.from_counter(
        frame([0.0, 100, 200, 60_200, 60_300], at=[0, 1, 2, 602, 603]),
        start_utc=T0,
        end_utc=T0 + timedelta(seconds=603),
    )
    assert got.total.value == pytest.approx(60_300) and got.frame["coverage_ratio"][0] == pytest.approx(1)


def test_fuzz_of_wraps_and_resets():
    """A thousand counters with wraps, resets and steps of every length: energy is right or open, never wrong."""
    rng = np.random.default_rng(7)
    span, top = 65_536.0, 300.0
    frames, truth, was_reset = [], {}, {}
    for k in range(1000):
        n = int(rng.integers(3, 20))
        step = np.full(n - 1, float(rng.choice([1.0, 10.0, 60.0, 100.0])))
        true = (rng.uniform(20, top, n - 1) * step).round(2)
        value = float(rng.uniform(0, span))
        counter, device = [value], f"d{k:04}"
        for e in true:
            restarted = rng.random() < 0.03
            was_reset[device] = was_reset.get(device, False) or restarted
            value = float(rng.uniform(0, e)) if restarted else math.fmod(value + e, span)
            counter.append(value)
        truth[device] = float(true.sum())
        frames.append(frame(counter, at=[0.0, *np.cumsum(step)], device=device))
    got = counters.deltas(pl.concat(frames), range_j=span, max_power_w=top).frame
    known = got.filter(pl.col("kind").is_in(["difference", "wrap"]))
    assert (known["energy_j"] >= 0).all() and (known["energy_j"] <= top * known["span_s"] * 1.002).all()
    sums = got.group_by("device").agg(
        pl.col("energy_j").sum(), ok=pl.col("kind").is_in(["first", "difference", "wrap"]).all()
    )
    assert sums.height == 1000
    for device, joules, ok in sums.iter_rows():
        if not was_reset[device]:
            assert ok and joules == pytest.approx(truth[device], abs=1e-6)


def test_a_step_that_may_hide_a_wrap_is_not_known_though_nobody_says_the_highest_power() -> None:
    # 150 W read every two hours goes 4.1 times through 262143.32885 J: what shows is 31427 J, a power of 4.4 W.
    range_j = 262143.32885
    rows = [("cpu:0", T0 + timedelta(hours=2 * i), (1000 + 150.0 * 7200 * i) % range_j) for i in range(4)]
    frame = pl.DataFrame(rows, schema=["device", "ts_utc", "energy_counter_j"], orient="row")
    found = counters.deltas(frame, range_j=range_j)
    assert found.frame["kind"].to_list() == ["first", "unknown", "unknown", "unknown"]
    assert found.frame["energy_j"].null_count() == 4
    assert found.devices["safe_interval_s"][0] == pytest.approx(524.29, abs=0.01)
    assert {"counter-read-too-seldom", "counter-unknown"} <= {f.code for f in found.findings}


def test_a_counter_of_known_range_that_is_read_often_enough_is_what_it_shows() -> None:
    rows = [("cpu:0", T0 + timedelta(minutes=8 * i), 1000 + 20.0 * 480 * i) for i in range(4)]
    frame = pl.DataFrame(rows, schema=["device", "ts_utc", "energy_counter_j"], orient="row")
    found = counters.deltas(frame, range_j=262143.32885)
    assert found.frame["energy_j"].to_list()[1:] == [9600.0, 9600.0, 9600.0]
    assert found.findings == ()


def test_a_counter_that_is_never_sure_is_told_from_one_that_was_not_read() -> None:
    # 380 W through a range of 65 kJ, read each five minutes: any step may hide several turns of the counter.
    start = datetime(2026, 3, 2, 8, tzinfo=UTC)
    rows = [("cpu:0", start + timedelta(seconds=300 * i), 380.0 * 300 * i % 65712.999613) for i in range(8)]
    counter = pl.DataFrame(rows, schema=["device", "ts_utc", "energy_counter_j"], orient="row")
    got = energy.from_counter(counter, start_utc=start, end_utc=start + timedelta(seconds=2100), range_j=65712.999613)
    assert got.total.value is None
    assert "never sure" in got.total.reason
    assert any("findings of its counter" in f.message for f in got.findings if f.code == "no-readings")


def counted_watts(watts: float, every: float, range_j: float, n: int = 100) -> pl.DataFrame:
    start = datetime(2026, 3, 2, 8, tzinfo=UTC)
    rows = [("cpu:0", start + timedelta(seconds=every * i), (watts * every * i + 3000.0) % range_j) for i in range(n)]
    return pl.DataFrame(rows, schema=["device", "ts_utc", "energy_counter_j"], orient="row")


def test_steps_that_may_hide_a_wrap_do_not_bound_the_power_of_the_time_that_is_open() -> None:
    # 380 W draws 3040 J in 8 s, more than half of the range: only the idle second half is sure, at 90 W.
    busy, idle = counted_watts(380.0, 8.0, 4294.967296), counted_watts(90.0, 8.0, 4294.967296)
    start, end = busy["ts_utc"][0], busy["ts_utc"][-1]
    log = pl.concat([busy, idle.with_columns(pl.col("ts_utc") + timedelta(seconds=800))])
    got = energy.from_counter(log, start_utc=start, end_utc=end + timedelta(seconds=200), range_j=4294.967296)
    truth = 380.0 * 792
    assert got.total.hi is not None and got.total.hi >= truth
    gap = next(f.message for f in got.findings if f.code == "gap-not-bridged" or f.code == "log-starts-late")
    assert "500 W" in gap or "open" in gap


def test_resets_at_the_height_of_a_usual_range_name_what_to_write() -> None:
    found = counters.deltas(counted_watts(380.0, 1.0, 4294.967296, 200)).findings
    (reset,) = [f for f in found if f.code == "counter-reset"]
    assert "range_j = 4294.967296" in reset.message
    assert all(
        "range_j" not in f.message
        for f in counters.deltas(counted_watts(380.0, 1.0, 3500.0, 40)).findings
        if f.code == "counter-reset"
    )
