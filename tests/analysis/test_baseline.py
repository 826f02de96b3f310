from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from joulebook import baseline, baseline_windows

START = datetime(2026, 11, 2, 1, tzinfo=UTC)


def at(seconds):
    return START + timedelta(seconds=seconds)


def frame(values, lengths, seed=0, sd=2.0, device="gpu:0", load=None):
    watts = np.repeat(np.array(values, dtype=float), lengths)
    watts = watts + np.random.default_rng(seed).normal(0.0, sd, watts.size)
    out = pl.DataFrame({"device": device, "ts_utc": [at(k) for k in range(watts.size)], "power_w": watts})
    return (
        out
        if load is None
        else out.with_columns(utilization_ratio=pl.Series(np.repeat(np.array(load, float), lengths)))
    )


def window(start, end):
    return pl.DataFrame({"start_utc": [at(start)], "end_utc": [at(end)]})


def test_mean_of_the_stable_part():
    found = baseline.mean(frame([200, 400], [100, 900]))
    assert found.estimate.lo < 400.0 < found.estimate.hi
    assert found.estimate.value == pytest.approx(400.0, abs=0.5)
    assert found.frame["used"].to_list() == [True]


def test_stalls_do_not_pull_it_down():
    watts = frame([400, 160, 400, 160, 400], [300, 4, 300, 4, 300])
    assert baseline.mean(watts, idle_w=60.0).estimate.value == pytest.approx(400.0, abs=0.5)


def test_several_levels_are_named():
    found = baseline.mean(frame([400, 300], [600, 400]))
    assert found.estimate.value == pytest.approx(400.0, abs=1.0)
    assert "several-levels" in [f.code for f in found.findings]
    assert found.frame["used"].to_list() == [True, False]


@pytest.mark.parametrize(
    "power",
    [
        frame([400], [40]),
        frame([400], [600], sd=0.0),
        frame([400], [600], sd=150.0),
        frame([0], [600], sd=0.0),
    ],
    ids=["short", "flat", "wild", "zero"],
)
def test_refused_with_a_reason(power):
    found = baseline.mean(power)
    assert found.estimate.value is None and found.estimate.reason
    assert {"no-baseline", "no-stable-segment"} & {f.code for f in found.findings}
    assert len({f.code for f in found.findings} & {"no-baseline", "no-stable-segment"}) == 1, "one thing is said once"


def test_a_stuck_tail_is_never_the_baseline():
    real = frame([400], [300])
    tail = pl.DataFrame({"device": "gpu:0", "ts_utc": [at(300 + k) for k in range(2000)], "power_w": 433.21})
    assert baseline.mean(pl.concat([real, tail])).estimate.value == pytest.approx(400.0, abs=1.0)


def test_idle_from_both_sides_of_a_run():
    power = pl.concat(
        [frame([60, 500, 60], [500, 800, 500], device=d, seed=s) for s, d in enumerate(("gpu:0", "gpu:1"))]
    )
    found = baseline.idle(power, runs=window(500, 1300))
    assert found.frame["used"].to_list() == [True, True]
    assert found.estimate.lo < 120.0 < found.estimate.hi
    assert found.estimate.value == pytest.approx(120.0, abs=0.5)
    assert baseline.idle(power).estimate.value == pytest.approx(120.0, abs=0.5)


def test_rest_before_a_run_counts_and_quiet_after_it_widens():
    rest = baseline.idle(frame([400, 1000, 404], [700, 800, 700]), runs=window(700, 1500)).estimate
    assert rest.value == pytest.approx(400.0, abs=0.3)
    assert rest.hi == pytest.approx(402.0, abs=0.3)
    assert "soon after work" in rest.reason


def test_long_after_a_run_the_machine_is_at_rest_again():
    found = baseline.idle(frame([400, 1000, 404, 402], [700, 800, 600, 900]), runs=window(700, 1500))
    assert found.estimate.value == pytest.approx((400.0 * 695 + 402.0 * 900) / 1595, abs=0.3)


def test_too_short_a_rest_is_no_better_than_quiet_after_a_run():
    short = baseline.idle(frame([400, 1000, 404], [400, 800, 400]), runs=window(400, 1200))
    assert short.frame["used"].to_list() == [True, True]
    assert short.estimate.value == pytest.approx(402.0, abs=0.3)


def test_a_log_that_is_under_load_all_along_has_no_idle():
    found = baseline.idle(frame([500], [900]), runs=window(100, 700))
    assert found.estimate.value is None and "under load" in found.estimate.reason
    assert found.findings[0].code == "no-idle-baseline"
    assert baseline.idle(frame([500], [900]), runs=window(0, 900)).estimate.value is None
    assert baseline.idle(frame([500], [900])).estimate.value is None


def test_a_stretch_in_use_is_not_idle():
    power = frame([60, 500], [600, 600], load=[0.4, 0.9])
    found = baseline.idle(power, runs=window(600, 1200))
    assert found.estimate.value is None and "in use" in found.estimate.reason


def test_a_cooling_machine_is_not_at_rest():
    k = np.arange(400)
    watts = np.concatenate((np.full(600, 500.0), 100.0 + 100.0 * np.exp(-k / 300.0)))
    watts = watts + np.random.default_rng(0).normal(0.0, 1.0, 1000)
    power = pl.DataFrame({"device": "node", "ts_utc": [at(s) for s in range(1000)], "power_w": watts})
    assert baseline.idle(power, runs=window(0, 600)).estimate.value is None


def test_a_short_quiet_time_is_a_doubt():
    found = baseline.idle(frame([60, 500], [200, 600]), runs=window(200, 800))
    assert [f.code for f in found.findings] == ["short-idle"]
    assert found.estimate.value == pytest.approx(60.0, abs=0.5)


def test_a_short_quiet_time_at_another_level_is_within_the_interval_of_the_mean():
    watts = np.repeat([259.4, 262.4], [60, 1740]) + np.random.default_rng(3).normal(0.0, 0.3, 1800)
    series = pl.DataFrame({"ts_utc": [at(s) for s in range(1800)], "power_w": watts})
    windows = pl.concat([window(0, 60), window(60, 1800)]).with_columns(used=pl.lit(True))
    got = baseline_windows.window_mean(series, windows)
    assert got.lo <= 259.5 and got.hi >= 262.4
    assert got.hi - got.lo < 6.5


def test_few_readings_that_wander_have_no_interval_of_width_zero():
    # a minute's worth of readings that wander by 2 W at most: the truth is 400 W, and they stay at one side of it
    watts = 401.0 + np.sin(np.arange(60) / 60 * np.pi)
    series = pl.DataFrame({"ts_utc": [at(10 * k) for k in range(60)], "power_w": watts.round(1)})
    got = baseline_windows.window_mean(series, window(0, 600).with_columns(used=pl.lit(True)))
    assert got.lo < 400.0 < got.hi < 420.0
    assert "independent" in got.reason


def test_a_mean_is_not_known_better_than_a_coarse_step_allows():
    # a sensor in steps of 4 W that flickers between two of them: the truth may lie anywhere around
    watts = 400.0 + 4.0 * (np.random.default_rng(5).random(3000) < 0.1)
    series = pl.DataFrame({"ts_utc": [at(k) for k in range(3000)], "power_w": watts})
    got = baseline_windows.window_mean(series, window(0, 3000).with_columns(used=pl.lit(True)))
    assert got.hi - got.value == pytest.approx(4.0 / 12**0.5, rel=0.01)


def test_a_quiet_time_of_few_readings_is_named():
    sparse = frame([50, 400], [10, 100]).with_columns(ts_utc=pl.Series([at(10 * k) for k in range(110)]))
    got = baseline.idle(sparse, runs=window(105, 1100)).estimate
    assert "fewer than 20 readings" in got.reason


def test_ten_quiet_minutes_of_a_slow_meter_are_enough_and_hold_no_reading_of_the_run():
    # readings 15 s apart, at rest at 400 W up to the run that begins 15 s after the last of them
    slow = frame([400, 1400, 400], [40, 100, 30], sd=2.0).with_columns(
        ts_utc=pl.Series([at(15 * k) for k in range(170)])
    )
    got = baseline.idle(slow, runs=window(15 * 40 - 6, 15 * 140 - 6))
    assert got.estimate.n == 70
    assert got.estimate.lo < 400.0 < got.estimate.hi
    assert got.estimate.value == pytest.approx(400.0, abs=1.0)
    assert got.estimate.hi - got.estimate.lo < 10.0


def test_runs_without_ends_are_the_callers_mistake():
    with pytest.raises(ValueError, match="end_utc"):
        baseline.idle(frame([60], [200]), runs=pl.DataFrame({"start_utc": [START]}))


def test_runs_combine_with_the_spread_between_them():
    runs = pl.DataFrame({"run_id": list("abcd"), "mean_w": [500.0, 510.0, 490.0, 500.0], "driver": "550"})
    estimate = baseline.combine(runs).estimate
    # sd 8.165, standard error 4.082, t(3) 3.182.
    assert estimate.value == 500.0
    assert estimate.half_width == pytest.approx(3.1824 * 8.16497 / 2.0, rel=1e-4)


def test_two_runs_have_no_interval():
    estimate = baseline.combine(pl.DataFrame({"run_id": ["a", "b"], "mean_w": [500.0, 510.0]})).estimate
    assert (estimate.value, estimate.lo) == (505.0, None) and "at least 3" in estimate.reason


def test_runs_that_differ_are_not_combined():
    runs = pl.DataFrame(
        {
            "run_id": list("abc"),
            "mean_w": [500.0] * 3,
            "driver": ["1", "1", "2"],
            "power_limit_w": [700.0, 600.0, 700.0],
        }
    )
    found = baseline.combine(runs)
    assert found.estimate.reason == "runs differ in driver, power_limit_w"
    assert [f.subject for f in found.findings] == ["driver", "power_limit_w"]
    assert baseline.combine(runs, equal=["scope"]).estimate.value == 500.0


def test_nothing_to_combine_is_the_callers_mistake():
    with pytest.raises(ValueError, match="mean_w"):
        baseline.combine(pl.DataFrame({"run_id": ["a"]}))


def test_other_work_on_the_machine_at_rest_is_in_the_interval():
    """Boards rest before and after a run; the machine draws 300 W before and 550 W after it."""
    node = frame([300, 900, 550], [700, 600, 700], device="node")
    use = frame([60, 500, 60], [700, 600, 700], load=[0.0, 0.9, 0.0])
    found = baseline.idle(node, runs=window(700, 1300), use=use)
    assert found.estimate.value == pytest.approx(300.0, abs=0.5)
    assert found.estimate.hi == pytest.approx(550.0, abs=1.0)
    assert found.estimate.lo > 299.0
    assert [f.code for f in found.findings] == ["idle-levels"]
    busy = frame([60, 500, 400], [700, 600, 700], load=[0.0, 0.9, 0.6])
    alone = baseline.idle(node, runs=window(700, 1300), use=busy)
    assert alone.estimate.hi < 301.0
