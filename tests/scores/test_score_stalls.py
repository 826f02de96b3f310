"""Periodic stalls found, random ones not called periodic, and their energy, against exact truth."""

import importlib.util
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.signal import lfilter

from joulebook import stalls

pytestmark = pytest.mark.score
_place = Path(__file__).resolve().parents[1] / "analysis" / "phase_truth.py"
_spec = importlib.util.spec_from_file_location("phase_truth", _place)
truth_of = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(truth_of)

TRIALS, SECONDS, BUSY = 200, 3600, 400.0


def ar(rng, phi, sd=6.0):
    noise = rng.standard_normal(SECONDS + 500) * sd * np.sqrt(1 - phi**2)
    return lfilter([1.0], [1.0, -phi], noise)[500:]


def events(rng, kind):
    """Return starts and lengths of stalls [s]."""
    every, last = kind["every"], kind["last"]
    if kind.get("random"):
        gaps = rng.exponential(every, 4 * SECONDS // every) + last
    else:
        gaps = every * np.clip(1 + kind["jitter"] * rng.standard_normal(4 * SECONDS // every), 0.3, 2)
    starts = np.cumsum(gaps)
    starts = starts[starts < SECONDS - 2 * last]
    return starts, last * np.clip(1 + 0.1 * rng.standard_normal(len(starts)), 0.5, 2)


def log(seed, kind):
    """Return means over each second, and the stalled time."""
    rng = np.random.default_rng(seed)
    watts, stalled = np.full(SECONDS, BUSY), 0.0
    if "every" in kind:
        starts, lasts = events(rng, kind)
        edges = np.column_stack([starts, starts + lasts]).ravel()
        level = np.concatenate([[0.0], np.cumsum(np.column_stack([np.zeros(len(lasts)), lasts]).ravel())])
        at = np.concatenate([[0.0], edges])
        share = np.diff(np.interp(np.arange(SECONDS + 1), at, level))
        watts, stalled = watts - kind["depth"] * share, float(lasts.sum())
    frame = pl.DataFrame({
        "device": "gpu:0", "ts_utc": truth_of.stamps(np.arange(1, SECONDS + 1)),
        "power_w": watts + ar(rng, kind.get("phi", 0.5)),
    })  # fmt: skip
    return frame, stalled


FOUND = {
    "every 30 s, jitter 10 %": {"every": 30, "last": 4, "jitter": 0.1, "depth": 240},
    "every 30 s, jitter 30 %": {"every": 30, "last": 4, "jitter": 0.3, "depth": 240},
    "shallow, 60 W": {"every": 30, "last": 4, "jitter": 0.1, "depth": 60},
    "every 12 s, 2.5 s long": {"every": 12, "last": 2.5, "jitter": 0.1, "depth": 240},
}
NULL = {
    "no stalls, AR 0.8": {"phi": 0.8},
    "no stalls, AR 0.98": {"phi": 0.98},
    "stalls at random": {"every": 30, "last": 4, "depth": 240, "random": True},
}


@pytest.mark.parametrize("case", FOUND)
def test_periodic_stalls_are_found(case, score):
    kind, found, wrong, error = FOUND[case], 0, [], []
    for seed in range(TRIALS):
        frame, stalled = log(seed, kind)
        got = stalls.find(frame)
        if got.period.value is not None:
            found += abs(got.period.value / kind["every"] - 1) <= 0.1
            wrong.append(abs(got.period.value / kind["every"] - 1))
        if kind["depth"] > 160 and got.energy.value is not None:
            error.append(got.energy.value / (stalled * (BUSY - kind["depth"])) - 1)
    share = found / TRIALS
    energy = f", energy off by {100 * np.median(np.abs(error)):.1f} % (median)" if error else ""
    score.row("periodic stalls", f"{case} ({TRIALS} hours)",
              "found, period within 10 %: at least 0.95; energy within 5 %",
              f"{share:.3f}, period off by {100 * np.median(wrong):.1f} %{energy}")  # fmt: skip
    assert share >= 0.95
    assert not error or np.median(np.abs(error)) <= 0.05


@pytest.mark.parametrize("case", NULL)
def test_nothing_periodic_is_not_called_periodic(case, score):
    false = sum(stalls.find(log(seed, NULL[case])[0]).period.value is not None for seed in range(TRIALS)) / TRIALS
    score.row("periodic stalls", f"{case} ({TRIALS} hours)", "called periodic at most 0.02", f"{false:.3f}")
    assert false <= 0.02
