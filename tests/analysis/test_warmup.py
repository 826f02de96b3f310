from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from scipy.signal import lfilter

from joulebook import warmup

START = datetime(2026, 11, 2, 1, tzinfo=UTC)


def frame(watts, period_s=1.0, device="gpu:0"):
    stamps = [START + timedelta(seconds=k * period_s) for k in range(len(watts))]
    return pl.DataFrame({"device": device, "ts_utc": stamps, "power_w": np.asarray(watts, dtype=float)})


def noise(n, seed, phi=0.5, sd=5.0):
    white = np.random.default_rng(seed).normal(size=n + 200)
    return lfilter([1.0], [1.0, -phi], white)[200:] * np.sqrt(1 - phi**2) * sd


T = np.arange(3000) / 3000.0


def test_steady_from_the_start():
    found = warmup.detect(frame(300.0 + noise(3000, 1)))
    assert found.kind is warmup.Kind.STEADY
    assert found.warmup_s.value == 0.0
    assert found.level_w.lo < 300.0 < found.level_w.hi
    assert found.slope_w_per_s.lo < 0.0 < found.slope_w_per_s.hi


def test_a_step_ends_the_warmup():
    found = warmup.detect(frame(np.where(T < 0.15, 200.0, 300.0) + noise(3000, 2)))
    assert found.is_steady and found.kind is warmup.Kind.STEP
    assert found.warmup_s.value == pytest.approx(450.0, abs=45.0)
    assert found.start_utc == START + timedelta(seconds=found.warmup_s.value)
    assert found.level_w.value == pytest.approx(300.0, rel=0.003)


def test_a_slow_approach_is_thermal():
    found = warmup.detect(frame(300.0 - 30.0 * np.exp(-T / 0.05) + noise(3000, 3)))
    assert found.kind is warmup.Kind.THERMAL
    # Within 1 % of the level after T ln(30 / 3).
    assert found.warmup_s.value == pytest.approx(3000 * 0.05 * np.log(10.0), abs=240.0)


@pytest.mark.parametrize(
    ("watts", "kind"),
    [
        (300.0 + 30.0 * T, warmup.Kind.DRIFT),
        (300.0 - 40.0 * np.exp(-T / 0.6), warmup.Kind.DRIFT),
        (np.where(T < 0.75, 300.0, 340.0), warmup.Kind.LATE_CHANGE),
    ],
)
def test_no_steady_state_is_refused(watts, kind):
    found = warmup.detect(frame(watts + noise(3000, 4)))
    assert found.kind is kind
    assert found.start_utc is None and found.level_w.value is None and found.warmup_s.value is None
    assert found.findings[0].code == "no-steady-state"
    assert found.reason


def test_stalls_and_spikes_do_not_end_steady_state():
    watts = 300.0 + noise(3000, 5)
    for k in range(200, 2990, 150):
        watts[k : k + 4] = 130.0
    watts[2970:2985] = 100.0
    watts[::701] = 900.0
    assert warmup.detect(frame(watts)).kind is warmup.Kind.STEADY


def test_an_approach_ends_where_it_is_within_the_tolerance_though_power_wanders():
    t = np.arange(2400.0)
    for constant in (25.0, 40.0, 53.0):
        # 0.75 of the level missing at first: within 1 % after ln 75 = 4.3 time constants.
        for seed in range(3, 8):
            wander = lfilter([1.0], [1.0, -0.99], np.random.default_rng(seed).normal(0.0, 0.7e-3, 3400))[1000:]
            watts = 440.0 * (1.0 - 0.75 * np.exp(-t / constant)) * (1.0 + wander) + noise(2400, seed)
            assert 2.5 < warmup.detect(frame(watts)).warmup_s.value / constant < 5.0


def stepped(lasts_s):
    ends = [START + timedelta(seconds=float(s)) for s in np.cumsum(lasts_s)]
    return pl.DataFrame({"step": range(len(ends)), "end_utc": ends})


def test_steps_that_last_longer_than_later_ones_are_dropped():
    power = frame(300.0 + noise(1200, 6))
    lasts = np.random.default_rng(6).normal(5.0, 0.05, 200)
    lasts[:8] *= 1.6
    found = warmup.detect(power, steps=stepped(lasts))
    assert found.warmup_s.value == pytest.approx(lasts[:8].sum(), abs=1.0)
    assert "8 steps" in found.reason
    # A step that waits for data in the middle of the usual ones is no set-up, and usual steps are none either.
    lasts[8:] = np.where(np.arange(192) % 9 == 4, 9.0, lasts[8:])
    assert warmup.detect(power, steps=stepped(lasts)).warmup_s.value == pytest.approx(lasts[:8].sum(), abs=1.0)
    assert warmup.detect(power, steps=stepped(lasts[8:])).warmup_s.value == pytest.approx(5.0, abs=1.0)


def test_twenty_steps_are_dropped_where_a_run_is_too_short_to_tell_its_usual_step():
    found = warmup.detect(frame(300.0 + noise(1200, 6)), steps=stepped([20.0] * 50))
    assert found.warmup_s.value == pytest.approx(400.0, abs=1.0)
    assert "20 steps" in found.reason


def test_known_steps_are_dropped():
    power, steps = frame(300.0 + noise(1200, 6)), stepped([5.0] * 200)
    assert warmup.detect(power, steps=steps, dropped_steps=40).warmup_s.value == pytest.approx(200.0, abs=1.0)
    assert warmup.detect(power, steps=steps, dropped_steps=0).warmup_s.value == 0.0


def test_devices_are_summed_first():
    a, b = frame(300.0 + noise(1500, 7)), frame(100.0 + noise(1500, 8), device="gpu:1")
    found = warmup.detect(pl.concat([a, b]))
    assert found.level_w.value == pytest.approx(400.0, rel=0.003)


def test_too_few_and_stuck_readings_are_refused():
    assert warmup.detect(frame([300.0] * 20)).kind is warmup.Kind.NONE
    stuck = warmup.detect(frame([300.0] * 600))
    assert stuck.kind is warmup.Kind.NONE and "equal" in stuck.reason


def test_a_short_log_holds_no_steady_state():
    assert "independent" in warmup.detect(frame(300.0 + noise(100, 9, phi=0.0), period_s=0.1)).reason


def test_a_frame_without_power_is_the_callers_mistake():
    with pytest.raises(ValueError, match="power_w"):
        warmup.detect(pl.DataFrame({"device": ["x"], "ts_utc": [START]}))
