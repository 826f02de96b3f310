"""Energy of seeded 1 kHz signals through sensors that average and update, against their exact sum."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from joulebook import energy

T0 = datetime(2026, 1, 1, tzinfo=UTC)
RUNS, MARGIN_MS = 60, 3000

pytestmark = pytest.mark.score


def signal(kind, rng, n):
    t = np.arange(n) / 1000
    if kind == "random steps":
        lengths = rng.exponential(300, n // 50).astype(int) + 1
        return np.repeat(rng.uniform(100, 400, lengths.size), lengths)[:n]
    if kind == "slow ramp":
        return 150 + 150 * np.clip((t - 5) / 25, 0, 1) + rng.uniform(-10, 10)
    period = float(kind.removeprefix("step of ").removesuffix(" ms")) / 1000
    return np.where((t + rng.uniform(0, period)) % period < period / 2, 350.0, 150.0)


def logged(power, window_ms, update_ms, log_ms, rng):
    total = np.concatenate([[0], np.cumsum(power)])
    ends = np.arange(int(rng.integers(0, update_ms)) + window_ms, power.size, update_ms)
    values = (total[ends] - total[ends - window_ms]) / window_ms
    at = np.arange(int(rng.integers(0, log_ms)), power.size, log_ms)
    last = np.searchsorted(ends, at, side="right") - 1
    at, last = at[last >= 0], last[last >= 0]
    stamps = [T0 + timedelta(milliseconds=int(a)) for a in at]
    return pl.DataFrame({"device": ["gpu:0"] * at.size, "ts_utc": stamps, "power_w": values[last]})


def measured(kind, window_ms, update_ms, log_ms, seed=11, **options):
    """Return relative errors, whether the interval held, and how many runs were refused."""
    rng = np.random.default_rng(seed)
    errors, held, refused = [], [], 0
    for _ in range(RUNS):
        length = int(rng.integers(40_000, 110_000))
        power = signal(kind, rng, length + 2 * MARGIN_MS)
        truth = power[MARGIN_MS : MARGIN_MS + length].sum() / 1000
        start = T0 + timedelta(milliseconds=MARGIN_MS)
        got = energy.integrate(
            logged(power, window_ms, update_ms, log_ms, rng),
            start_utc=start, end_utc=start + timedelta(milliseconds=length),
            window_s=window_ms / 1000, update_s=update_ms / 1000, **options,
        ).total  # fmt: skip
        if got.value is None:
            refused += 1
            continue
        errors.append(got.value / truth - 1)
        held.append(got.lo <= truth <= got.hi)
    return np.array(errors), np.array(held), refused


ROWS = [
    ("random steps", 25, 100, 100), ("random steps", 25, 100, 1000), ("random steps", 100, 100, 100),
    ("random steps", 100, 100, 1000), ("slow ramp", 1000, 20, 100), ("slow ramp", 1000, 20, 1000),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "window", "update", "log"), ROWS)
def test_interval_holds_the_truth(score, kind, window, update, log):
    errors, held, _ = measured(kind, window, update, log)
    case = f"{kind}, {window} ms of every {update} ms, logged every {log} ms"
    score.row("energy", case, "interval holds in ≥ 90 %", f"{100 * held.mean():.0f} %, 1σ {100 * errors.std():.3f} %")
    assert held.mean() >= 0.90


@pytest.mark.parametrize("log", [100, 1000])
def test_slow_signal_is_free_of_the_sensor_lag(score, log):
    errors, _, _ = measured("slow ramp", 1000, 20, log)
    worst = float(np.sqrt(np.mean(errors**2)))
    score.row("energy", f"slow ramp, 1 s mean, logged every {log} ms", "error ≤ 0.05 %", f"{100 * worst:.3f} %")
    assert worst <= 5e-4


def test_aliased_log_is_refused_when_the_step_is_known(score):
    errors, _, refused = measured("step of 100 ms", 25, 100, 100, step_s=0.1)
    score.row("energy", "step of 100 ms, 25 ms of every 100 ms", "all refused", f"{refused} of {RUNS} refused")
    assert refused == RUNS and errors.size == 0


def test_beating_log_has_an_honest_interval_when_the_step_is_known(score):
    errors, held, _ = measured("step of 97 ms", 25, 100, 100, step_s=0.097)
    score.row(
        "energy", "step of 97 ms, 25 ms of every 100 ms", "interval holds in ≥ 90 %",
        f"{100 * held.mean():.0f} %, 1σ {100 * errors.std():.3f} %",
    )  # fmt: skip
    assert held.mean() >= 0.90
