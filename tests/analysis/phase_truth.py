"""Readings of phases of known power, worked out exactly: not with the code under test."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
from scipy.signal import lfilter

T0 = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("forward", "backward", "grad_sync", "optimizer")
SECONDS = np.array([0.22, 0.35, 0.08, 0.05])
WATTS = np.array([380.0, 310.0, 180.0, 120.0])
STEP = 0.002


def stamps(seconds):
    micros = pl.Series((np.asarray(seconds) * 1e6).round().astype(np.int64))
    return (micros + int(T0.timestamp() * 1e6)).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")


def make(seed, *, window=1.0, period=1.0, minutes=10, jitter=0.15, shift=0.0, lag=0.0, noise=3.0, seconds=SECONDS):
    """Return power, phases, true energies and the end of the window."""
    rng = np.random.default_rng(seed)
    length = minutes * 60.0
    lasts = seconds * np.clip(1 + jitter * rng.standard_normal((int(length / seconds.sum() * 1.2), 4)), 0.3, 2)
    edges = np.concatenate([[0.0], np.cumsum(lasts.ravel())])
    edges = np.append(edges[edges < length], length)
    label = np.arange(len(edges) - 1) % 4
    joules = np.diff(edges) * WATTS[label]
    at, energy = edges, np.concatenate([[0.0], np.cumsum(joules)])
    if lag:
        at = np.arange(0, length + STEP / 2, STEP)
        drawn = np.diff(np.interp(at, edges, energy)) / STEP
        keep = np.exp(-STEP / lag)
        seen = lfilter([1 - keep], [1, -keep], drawn, zi=[drawn[:500].mean() * keep])[0]
        energy = np.concatenate([[0.0], np.cumsum(seen * STEP)])
    end = np.arange(window, length, period)
    watts = (np.interp(end, at, energy) - np.interp(end - window, at, energy)) / window
    power = pl.DataFrame({
        "device": "gpu:0", "ts_utc": stamps(end + shift), "power_w": watts + noise * rng.standard_normal(len(end)),
    })  # fmt: skip
    phases = pl.DataFrame({
        "phase": np.array(NAMES)[label], "start_utc": stamps(edges[:-1]), "end_utc": stamps(edges[1:]),
    })  # fmt: skip
    truth = dict(zip(NAMES, np.bincount(label, joules, 4).tolist(), strict=True))
    return power, phases, truth, T0 + timedelta(seconds=length)
