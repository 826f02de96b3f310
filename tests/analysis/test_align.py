"""Alignment: known shifts come back, what cannot be known is refused, the arguments stay as they are."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from joulebook import align, align_checks, align_model, align_signal, align_stamps, ticks
from joulebook.align_curve import Sensor
from joulebook.align_search import Candidates

T0 = datetime(2026, 3, 2, 9, 0, 0, tzinfo=UTC)
STUDIES = Path(__file__).resolve().parents[2].parent / "shared" / "studies"
needs_studies = pytest.mark.skipif(not STUDIES.exists(), reason="the shared studies are not here")


def levels(seed: int, seconds: int = 2400) -> np.ndarray:
    """Power every 0.1 s: random levels of random length."""
    rng = np.random.default_rng(seed)
    n = seconds * 10
    watts = np.repeat(rng.uniform(100, 400, n // 20), rng.integers(8, 200, n // 20))
    return watts[:n]


def log(watts: np.ndarray, *, every: int = 10, late_s: float = 0.0, drift: float = 0.0, noise_w: float = 0.5,
        seed: int = 0, phase: int = 0) -> pl.DataFrame:  # fmt: skip
    """Means over ``every`` tenths of a second, stamped at their ends on a clock that is late."""
    ends = np.arange(every + phase, watts.size + 1, every)
    total = np.concatenate([[0.0], np.cumsum(watts)])
    mean = (total[ends] - total[ends - every]) / every + np.random.default_rng(seed + 99).normal(0, noise_w, ends.size)
    true = ends / 10
    stamps = true + late_s + drift * (true - watts.size / 20)
    return pl.DataFrame(
        {"ts_utc": [T0 + timedelta(microseconds=round(s * 1e6) + 13_700) for s in stamps], "power_w": mean},
        schema={"ts_utc": pl.Datetime("us", "UTC"), "power_w": pl.Float64},
    )


@settings(max_examples=3, deadline=None, derandomize=True, phases=[Phase.generate])
@given(late=st.floats(-250, 250), seed=st.integers(0, 50))
def test_known_offset_comes_back_within_its_interval_widened_a_little(late: float, seed: int) -> None:
    watts = levels(seed)
    found = align.estimate(log(watts * 1.1 + 50, late_s=late, seed=seed, phase=3), log(watts, seed=seed + 1))
    assert found.status == "aligned"
    assert found.offset_s == pytest.approx(late, abs=0.1)
    assert found.gain == pytest.approx(1.1, abs=0.05)


def test_the_two_directions_are_opposite() -> None:
    watts = levels(3)
    a, b = log(watts * 1.2 + 80, late_s=12.3, phase=4), log(watts)
    there, back = align.estimate(a, b), align.estimate(b, a)
    assert there.offset_s is not None
    assert back.offset_s is not None
    assert there.offset_s == pytest.approx(-back.offset_s, abs=1e-6)


def test_drift_comes_back() -> None:
    watts = levels(5, 9000)
    found = align.estimate(log(watts + 90, late_s=3.0, drift=80e-6, phase=5), log(watts))
    assert found.drift_ppm == pytest.approx(80, abs=15)
    assert found.drift_lo is not None
    assert found.drift_hi is not None
    assert found.drift_lo < 80 < found.drift_hi
    assert found.anchor_utc is not None
    assert abs((found.anchor_utc - T0).total_seconds() - 4503) < 5


@pytest.mark.parametrize(
    ("late", "code"), [(3600.0, "clock-zone-slip"), (-28800.2, "clock-zone-slip"), (900.0, "clock-zone-slip")]
)
def test_whole_quarter_hours_are_named(late: float, code: str) -> None:
    watts = levels(7)
    found = align.estimate(log(watts + 60, late_s=late), log(watts))
    assert found.offset_s == pytest.approx(late, abs=0.1)
    slip = next(f for f in found.findings if f.code == code)
    assert slip.evidence["slip_s"] == round(late / 900) * 900


@pytest.mark.parametrize(("late", "codes"), [(0.1, []), (0.6, ["clock-off-04s"]), (1.5, ["clock-off-08s"])])
def test_flags_at_400_and_800_ms(late: float, codes: list[str]) -> None:
    watts = levels(11)
    found = align.estimate(log(watts + 60, late_s=late), log(watts))
    assert [f.code for f in found.findings] == codes


def test_minute_means_against_a_fine_log() -> None:
    watts = levels(13, 12000)
    found = align.estimate(log(watts + 100, every=600, late_s=-17.0), log(watts, every=2))
    assert found.status == "aligned"
    assert found.offset_s == pytest.approx(-17.0, abs=0.5)
    assert found.window_s == pytest.approx(60)


def test_counter_with_coarse_steps() -> None:
    watts = levels(17, 7200)
    mean = log(watts + 300, every=100, late_s=21.0, noise_w=0.0)
    energy = np.floor(np.cumsum(mean["power_w"].to_numpy()) * 10 / 360) * 360
    found = align.estimate(mean.select("ts_utc", pl.Series("energy_counter_j", energy)), log(watts))
    assert found.status == "aligned"
    assert found.offset_s == pytest.approx(21.0, abs=0.6)


def test_whole_second_stamps_leave_a_second_open_to_both_sides() -> None:
    watts = levels(19)
    fine = log(watts + 50, late_s=5.7)
    coarse = fine.with_columns(pl.col("ts_utc").dt.truncate("1s"))
    found = align.estimate(coarse, log(watts, phase=4))
    assert found.offset_lo is not None
    assert found.offset_hi is not None
    assert found.offset_lo < 5.7 < found.offset_hi
    assert 0.9 < found.offset_hi - found.offset_lo < 2.2


def test_flat_is_refused() -> None:
    n = 9000
    found = align.estimate(log(np.full(n, 300.0), seed=1), log(np.full(n, 200.0), seed=2))
    assert found.status == "refused"
    assert found.offset_s is None
    assert found.findings[0].code == "clock-not-aligned"


def test_unrelated_is_refused() -> None:
    assert align.estimate(log(levels(0)), log(levels(1000))).status == "refused"


def test_periodic_is_refused() -> None:
    watts = np.tile(np.repeat([320.0, 380.0, 150.0], [13, 22, 7]), 600)
    found = align.estimate(log(watts + 200, late_s=40, noise_w=3, seed=1), log(watts, every=2, noise_w=3, seed=2))
    assert found.status == "refused"
    assert "periodic" in found.reason or "ambiguous" in found.reason


def test_shifts_of_a_load_that_repeats_itself_are_compared_without_its_own_past() -> None:
    # Its past foretells such a load, so beside it no shift tells much: little is left of a likelihood, and a lead is luck.
    watts = levels(3)
    fast, slow = (align_signal.build(log(w, seed=s))[0] for w, s in ((watts, 1), (watts * 1.2 + 80, 2)))
    fit = align_model.fit(fast, slow, Sensor(1.0, 0.0, True), shift_s=0.0, drift=0.0, anchor_s=1200.0)
    assert fit is not None
    best = replace(fit, llr=60.0, r2=0.984)
    other = replace(fit, shift_s=fit.shift_s + 3.0, llr=10.0, r2=0.984)
    found = Candidates(np.array([0.0, 3.0]), np.ones(2), 40, np.ones(2))
    assert "a shift of +3.0 s fits as well" in align_checks.doubt(best, [best, other], found, fast, slow)
    alone = replace(found, rivals=0)
    assert align_checks.doubt(best, [best, other], alone, fast, slow) == ""
    assert align_checks.doubt(best, [best, replace(other, r2=0.6)], found, fast, slow) == ""


def test_one_edge_is_not_enough() -> None:
    watts = np.repeat([100.0, 400.0], [9000, 9000])
    found = align.estimate(log(watts + 50, late_s=2, seed=1), log(watts, seed=2))
    assert found.status == "refused"


def test_few_samples_are_refused() -> None:
    short = log(levels(1))[:10]
    assert "fewer than" in align.estimate(short, short).reason


def test_a_step_of_the_clock_is_found_and_the_single_offset_refused() -> None:
    watts = levels(23, 6000)
    whole = log(watts + 70, phase=3)
    cut = T0 + timedelta(seconds=2500)
    stepped = whole.with_columns(
        pl.when(pl.col("ts_utc") > cut).then(pl.col("ts_utc") + pl.duration(seconds=40)).otherwise("ts_utc")
    )
    found = align.estimate(stepped, log(watts))
    assert found.status == "refused"
    assert found.steps["step_s"].to_list() == pytest.approx([40.0], abs=0.2)
    assert abs((found.steps["ts_utc"][0] - cut).total_seconds()) < 120
    assert "clock-stepped" in [f.code for f in found.findings]


def test_arguments_stay_and_repeat_gives_the_same() -> None:
    watts = levels(29)
    a, b = log(watts + 10, late_s=1.0), log(watts)
    before = a.clone(), b.clone()
    one, two = align.estimate(a, b), align.estimate(a, b)
    assert a.equals(before[0])
    assert b.equals(before[1])
    assert one.offset_s == two.offset_s
    assert one.frame.equals(two.frame)
    assert set(one.frame.columns) == {"ts_utc", "measured_w", "before_w", "after_w", "residual_w"}


def test_missing_columns_are_the_callers_error() -> None:
    with pytest.raises(ValueError, match="ts_utc"):
        align.estimate(pl.DataFrame({"power_w": [1.0]}), log(levels(1)))


def boards(study: str, zone: str) -> pl.DataFrame:
    """Total power of the boards of a study."""
    raw = pl.read_csv(STUDIES / study / "gpu.csv", infer_schema=False)
    raw = raw.rename({c: c.strip() for c in raw.columns})
    stamp = pl.col("timestamp").str.strip_chars().str.to_datetime("%Y/%m/%d %H:%M:%S%.3f", time_unit="us", strict=False)
    watts = pl.col("power.draw [W]").str.strip_chars().str.strip_suffix(" W").cast(pl.Float64, strict=False)
    return ticks.total(
        raw.select(
            pl.col("index").alias("device"),
            stamp.dt.replace_time_zone(zone).dt.convert_time_zone("UTC").alias("ts_utc"),
            watts.alias("power_w"),
        )
    )


def meter(study: str) -> pl.DataFrame:
    """The meter of a study."""
    raw = pl.read_csv(STUDIES / study / "meter.csv", infer_schema=False)
    stamp = pl.col("time").str.to_datetime("%Y-%m-%d %H:%M:%S%.3f", time_unit="us").dt.replace_time_zone("UTC")
    return raw.select(stamp.alias("ts_utc"), pl.col("power_w").cast(pl.Float64))


@needs_studies
def test_node_study_meter() -> None:
    found = align.estimate(meter("node"), boards("node", "Asia/Shanghai"))
    assert found.offset_s == pytest.approx(-68.1673, abs=0.1)
    assert found.offset_lo is not None
    assert found.offset_hi is not None
    assert found.offset_lo < -68.1673 < found.offset_hi
    assert found.drift_ppm == pytest.approx(9.04, abs=40)


@needs_studies
def test_node_study_controller() -> None:
    text = (STUDIES / "node" / "ipmi.txt").read_text()
    watts = [float(w) for w in re.findall(r"Instantaneous power reading:\s+(\d+)", text)]
    stamps = [
        datetime.strptime(s.strip(), "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        for s in re.findall(r"IPMI timestamp:\s+(.*)", text)
    ]
    found = align.estimate(pl.DataFrame({"ts_utc": stamps, "power_w": watts}), boards("node", "Asia/Shanghai"))
    assert found.offset_s == pytest.approx(-37.25, abs=6.0)


@needs_studies
def test_campaign_study_meter() -> None:
    found = align.estimate(meter("campaign"), boards("campaign", "UTC"))
    assert found.offset_s == pytest.approx(-31.4757, abs=0.1)


def free_sampler(watts: np.ndarray, *, pace_s: float, late_s: float, lost: int = 0) -> pl.DataFrame:
    """One-second means of a sampler of its own pace, stamps cut to whole seconds; some samples lost if asked."""
    total = np.concatenate([[0.0], np.cumsum(watts)]) / 10
    true = np.arange(2.0, watts.size / 10 - 1, pace_s)
    grid = np.arange(total.size) / 10
    mean = np.interp(true, grid, total) - np.interp(true - 1, grid, total)
    stamps = np.floor(true + late_s)
    rows = pl.DataFrame({"s": stamps, "power_w": mean})
    keep = np.random.default_rng(1).permutation(len(rows))[lost:]
    return rows[np.sort(keep)].select(
        (pl.lit(T0) + pl.duration(seconds=pl.col("s").cast(pl.Int64))).cast(pl.Datetime("us", "UTC")).alias("ts_utc"),
        "power_w",
    )


@pytest.mark.parametrize("pace_s", [1.002, 0.998])
def test_slips_of_whole_seconds_tell_where_in_a_second_a_sampler_was(pace_s: float) -> None:
    watts = levels(31, 1500)
    found = align.estimate(free_sampler(watts + 60, pace_s=pace_s, late_s=8.43), log(watts), reference_window_s=1.0)
    assert found.offset_s == pytest.approx(8.43 - 0.0137, abs=0.03)
    assert found.offset_lo is not None
    assert found.offset_hi is not None
    # whether stamps were cut or rounded stays open: half a second to one side
    assert 0.5 < found.offset_hi - found.offset_lo < 0.8


def test_lost_samples_are_not_taken_for_slips() -> None:
    watts = levels(37, 1500)
    found = align.estimate(
        free_sampler(watts + 60, pace_s=1.0, late_s=8.43, lost=6), log(watts), reference_window_s=1.0
    )
    assert found.offset_lo is not None
    assert found.offset_hi is not None
    assert found.offset_lo <= 8.43 <= found.offset_hi
    assert found.offset_hi - found.offset_lo > 1.9


def test_two_machines_that_share_a_start_and_an_end_are_refused() -> None:
    rng = np.random.default_rng(41)
    load = np.repeat([200.0, 900.0, 200.0], [1500, 6000, 1500])
    one, two = (load * scale + rng.normal(0, sd, 9000) for scale, sd in ((1.0, 20), (1.4, 30)))
    ramp = np.where(load > 500, np.repeat(rng.normal(0, 25, 90), 100), 0.0)
    other = np.where(load > 500, np.repeat(rng.normal(0, 25, 90), 100), 0.0)
    found = align.estimate(log(two + ramp, late_s=31.0), log(one + other))
    assert found.status == "refused"


def test_values_that_waited_widen_the_interval_to_earlier_clocks() -> None:
    watts = levels(43)
    plain, aged = (align.estimate(log(watts + 90, late_s=6.0), log(watts), reading_age_s=s) for s in (0.0, 5.0))
    assert plain.offset_lo is not None
    assert aged.offset_lo == pytest.approx(plain.offset_lo - 5.0)
    assert aged.offset_hi == plain.offset_hi


def fast_steps(seed: int, seconds: int = 3000) -> np.ndarray:
    """Power every 0.1 s: steps hardly longer than a second, with a pause now and then."""
    rng = np.random.default_rng(seed)
    n = seconds * 10
    lengths = rng.normal([3.0, 5.5, 1.6], 0.3, (n // 8, 3)).clip(1)
    lengths[::60, 2] = rng.uniform(20, 300, lengths[::60, 2].size)
    ends = np.cumsum(lengths.ravel())
    watts = np.tile([330.0, 380.0, 150.0], n // 8)
    return np.asarray(watts[np.searchsorted(ends, np.arange(n) + 0.5)])


@pytest.mark.parametrize("pace_s", [1.0002, 0.9999])
def test_steps_faster_than_both_logs_neither_pull_their_samples_together_nor_look_like_a_step_of_the_clock(
    pace_s: float,
) -> None:
    watts = fast_steps(53)
    total = np.concatenate([[0.0], np.cumsum(watts)]) / 10
    true = np.arange(2.0, watts.size / 10 - 1, pace_s)
    grid = np.arange(total.size) / 10
    mean = np.interp(true, grid, total) - np.interp(true - 1, grid, total)
    stamps = [T0 + timedelta(microseconds=round((s + 4.37) * 1e6) + 13_700) for s in true]
    noisy = mean + 60 + np.random.default_rng(3).normal(0, 2, mean.size)
    reading = pl.DataFrame({"ts_utc": stamps, "power_w": noisy})
    found = align.estimate(reading, log(watts), reading_window_s=1.0, reference_window_s=1.0)
    assert found.status == "aligned"
    assert found.offset_s == pytest.approx(4.37, abs=0.05)
    assert found.drift_lo is not None
    assert found.drift_hi is not None
    assert found.drift_lo < 0 < found.drift_hi


def test_stamps_that_slip_once_leave_the_rate_open() -> None:
    rng = np.random.default_rng(59)
    true = 0.63 + 1.00012 * np.arange(4000) + rng.normal(0, 0.003, 4000)
    cut = np.floor(true)
    found = align_stamps.slipping(cut, (cut * 1e6).astype(np.int64))
    assert found is not None
    pace = np.polyfit(np.arange(4000), found.time_s, 1)[0]
    assert abs(pace - 1.00012) < found.rate < 3e-4
    assert np.abs(found.time_s - true).max() < found.half_s + found.rate * 2000 + 0.02


def test_points_and_means_of_one_pace_that_nobody_declared_leave_half_a_period_open_or_are_told_apart() -> None:
    watts = levels(61)
    points = log(np.repeat(watts[9::10], 10))
    found = align.estimate(log(watts + 70, late_s=3.3, phase=4), points)
    assert found.offset_lo is None or (found.offset_hi is not None and found.offset_lo <= 3.3 <= found.offset_hi)


def test_how_far_means_that_nobody_declared_trail_is_told_with_the_offset() -> None:
    """Means of 5 s every 5 s trail by 2.5 s; the same said by the log is nothing that had to be found."""
    watts = levels(8, 4000)
    slow, fast = log(watts + 50, every=50, late_s=7.0, phase=3), log(watts, every=2)
    found = align.estimate(slow, fast)
    assert found.reading_trail_s == pytest.approx(2.5, abs=0.1)
    assert found.reference_trail_s is None
    assert found.offset_s == pytest.approx(7.0, abs=0.1)
    turned = align.estimate(fast, slow)
    assert turned.reference_trail_s == pytest.approx(2.5, abs=0.1)
    assert turned.reading_trail_s is None
    assert align.estimate(slow, fast, reading_window_s=5.0).reading_trail_s is None
    one_pace = align.estimate(log(watts + 50, late_s=7.0, phase=3), log(watts))
    assert one_pace.reading_trail_s is one_pace.reference_trail_s is None


def moving(watts: np.ndarray, *, mean_s: int, every_s: int, late_s: float) -> pl.DataFrame:
    """Moving means over some seconds, told more often than that."""
    ends = np.arange(10 * mean_s, watts.size + 1, 10 * every_s)
    total = np.concatenate([[0.0], np.cumsum(watts)])
    mean = (total[ends] - total[ends - 10 * mean_s]) / (10 * mean_s)
    noise = np.random.default_rng(4).normal(0.0, 0.5, ends.size)
    stamps = [T0 + timedelta(seconds=e / 10 + late_s) for e in ends]
    return pl.DataFrame({"ts_utc": stamps, "power_w": mean + noise})


@pytest.mark.parametrize(("mean_s", "every_s"), [(10, 1), (8, 5)])
def test_a_moving_mean_that_is_told_more_often_than_it_is_long(mean_s: int, every_s: int) -> None:
    watts = levels(11, 3000)
    found = align.estimate(moving(watts * 1.1 + 90, mean_s=mean_s, every_s=every_s, late_s=21.7), log(watts, every=2))
    assert found.status == "aligned"
    assert found.offset_s == pytest.approx(21.7 - 0.0137, abs=0.15)
    assert found.offset_lo is not None
    assert found.offset_hi is not None
    assert found.offset_lo <= 21.7 - 0.0137 <= found.offset_hi
    assert found.window_s == pytest.approx(mean_s, rel=0.05)
    assert found.reading_trail_s == pytest.approx(mean_s / 2, rel=0.05)


def test_a_finer_log_that_does_not_say_may_tell_means_of_its_step() -> None:
    """A meter of means each second against points of a board each 5 s: read as points, the meter is half a second late."""
    watts = levels(13, 4000)
    points = log(watts, every=1).gather_every(50)
    found = align.estimate(log(watts * 1.1 + 60, late_s=9.0), points, reference_window_s=0.1)
    assert found.status == "aligned"
    assert found.offset_lo is not None
    assert found.offset_hi is not None
    assert found.offset_lo <= 9.0 <= found.offset_hi


def test_a_clock_that_may_be_right_is_not_called_off() -> None:
    none = pl.DataFrame(schema={"ts_utc": pl.Datetime("us", "UTC"), "step_s": pl.Float64})
    for interval, code in (((-1.06, 1.8), "clock-uncertain"), ((0.3, 0.9), "clock-off-04s")):
        (found,) = align_checks.flags(0.6, interval, 0.0, steps=none, subject="a")
        assert found.code == code
