"""How often a sensor really updates, how long it averages, and whether that is fast enough for what happens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from joulebook.align_signal import Floats
from joulebook.findings import Estimate, Finding, Severity
from joulebook.sensor_cards import CARDS, Card, card
from joulebook.sensor_window import window

__all__ = ["CARDS", "Adequacy", "Card", "Sampling", "adequacy", "card", "find", "window"]

LEAST_CHANGES = 10
"""Fewest changes of value from which an update period is told."""

FINER = 1.8
"""How many times finer than the sensor the log must be before its update period shows."""

SMALL_MULTIPLE = 4
"""Up to this many readings per step, or steps per reading, a locked sampling sees only a few places of a step."""

Z95 = 1.959964


@dataclass(frozen=True)
class Sampling:
    """What the changes of a log's values say about its sensor.

    Parameters
    ----------
    update_s
        Period at which the value is renewed [s].
    rise_s
        Averaging window by the time that a large step takes to arrive [s].
    log_interval_s
        Median step of the log [s].
    findings
        What the reader should know.
    frame
        The log without repeats: ``ts_utc``, ``power_w``, ``gap_s`` since the change before.
    """

    update_s: Estimate
    rise_s: Estimate
    log_interval_s: float
    findings: tuple[Finding, ...]
    frame: pl.DataFrame


@dataclass(frozen=True)
class Adequacy:
    """Whether a sensor is fast enough for steps of a length.

    Parameters
    ----------
    status
        ``resolved``, ``averaged`` (the mean holds, the parts of a step do not show) or ``aliased`` (the absolute
        number is refused).
    worst_case_w
        By how much a mean may be off at worst [W]; ``None`` where the levels are not known.
    reason
        Why.
    findings
        What the reader should know.
    """

    status: str
    worst_case_w: float | None
    reason: str
    findings: tuple[Finding, ...]


def find(power: pl.DataFrame, *, device: str | None = None) -> Sampling:
    """Estimate update period and averaging window of one sensor from when its value changes.

    Parameters
    ----------
    power
        Readings with ``ts_utc`` and ``power_w`` [W]; ``device`` where there are several.
    device
        Which one. Default: the only one.

    Returns
    -------
    Sampling

    Raises
    ------
    ValueError
        Several devices and none named, or a column is missing.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> t = [t0 + timedelta(milliseconds=10 * i) for i in range(1000)]
    >>> log = pl.DataFrame({"ts_utc": t, "power_w": [100.0 + (i // 10 * 37 % 101) for i in range(1000)]})
    >>> round(find(log).update_s.value, 3)
    0.1
    """
    rows = _one(power, device)
    name = device or "power"
    seconds = (rows["ts_utc"].dt.epoch("us") / 1e6).to_numpy()
    watts = rows["power_w"].to_numpy()
    interval = float(np.median(np.diff(seconds))) if seconds.size > 1 else 0.0
    new = np.flatnonzero(np.diff(watts, prepend=np.nan) != 0)
    frame = rows[new].with_columns(pl.Series("gap_s", np.diff(seconds[new], prepend=np.nan)).fill_nan(None))
    update = _update(np.diff(seconds[new[1:]]), interval, watts.size)
    rise = _rise(seconds[new], watts[new], update.value or interval)
    found: list[Finding] = []
    if update.value is not None:
        found.append(Finding(
            "sensor-slower-than-log", Severity.NOTE, name,
            f"The value is renewed every {update.value * 1e3:.0f} ms but logged every {interval * 1e3:.0f} ms: repeats "
            "carry no information.",
            {"update_s": update.value, "log_interval_s": interval},
        ))  # fmt: skip
    return Sampling(update, rise, interval, tuple(found), frame)


def _one(power: pl.DataFrame, device: str | None) -> pl.DataFrame:
    """Return the rows of one device."""
    missing = [c for c in ("ts_utc", "power_w") if c not in power.columns]
    if missing:
        raise ValueError(f"power: no column {', '.join(missing)}; it has {', '.join(power.columns)}")
    if "device" in power.columns:
        names = power["device"].unique().sort().to_list()
        if device is None and len(names) > 1:
            raise ValueError(f"power: several devices ({', '.join(names)}); name one")
        power = power.filter(pl.col("device") == device) if device is not None else power
    return power.select("ts_utc", "power_w").drop_nulls().unique("ts_utc", keep="first").sort("ts_utc")


def _update(gaps: Floats, interval_s: float, n: int) -> Estimate:
    """Return the update period from the gaps between changes: their common unit; repeats by chance are multiples."""
    method = "changes of value"
    if gaps.size < LEAST_CHANGES:
        return Estimate.refused(f"{gaps.size} changes of value, {LEAST_CHANGES} needed", unit="s", n=n, method=method)
    unit = float(np.quantile(gaps, 0.3))
    for _ in range(3):
        turns = np.maximum(np.rint(gaps / unit), 1)
        near = turns <= 5
        unit = float(gaps[near].sum() / turns[near].sum()) if near.any() else unit
    if unit < FINER * interval_s:
        return Estimate.refused(
            f"nearly every reading is new: the sensor is not slower than the log ({interval_s:.3g} s)",
            unit="s", n=n, method=method,
        )  # fmt: skip
    per = gaps[near] / turns[near]
    # the log shows a change up to one interval late; over many changes that error telescopes
    half = Z95 * float(np.std(per)) / np.sqrt(near.sum()) + interval_s / turns[near].sum()
    return Estimate(unit, unit - half, unit + half, "s", n=n, n_eff=float(near.sum()), method=method)


def _rise(seconds: Floats, watts: Floats, update_s: float) -> Estimate:
    """Return the window of a moving mean from how long the largest steps take from 10 to 90 % (0.8 windows)."""
    method = "rise time of steps"
    low, high = np.quantile(watts, [0.05, 0.95]) if watts.size else (0.0, 0.0)
    if watts.size < LEAST_CHANGES or high - low < 0.1 * max(abs(high), 1.0):
        return Estimate.refused("no large steps", unit="s", n=int(watts.size), method=method)
    share = (watts - low) / (high - low)
    up = np.flatnonzero((share[:-1] < 0.1) & (share[1:] >= 0.1))
    times = []
    for i in up:
        after = np.flatnonzero(share[i + 1 :] >= 0.9)
        if after.size == 0:
            continue
        j = i + 1 + int(after[0])
        climb = share[i : j + 1]
        if np.all(np.diff(climb) > -0.05):
            start, end = np.interp([0.1, 0.9], np.maximum.accumulate(climb), seconds[i : j + 1])
            times.append(end - start)
    if len(times) < 3:
        return Estimate.refused(f"{len(times)} clean steps, 3 needed", unit="s", n=int(watts.size), method=method)
    window = float(np.median(times)) / 0.8
    if window <= 1.5 * update_s:
        return Estimate(None, 0.0, 1.5 * update_s, "s", len(times), None, method, "not longer than the update period")
    spread = Z95 * 1.4826 * float(np.median(np.abs(np.array(times) / 0.8 - window))) / np.sqrt(len(times))
    half = max(spread, update_s / 2)
    return Estimate(window, window - half, window + half, "s", n=len(times), method=method)


def adequacy(
    *,
    step_s: float,
    update_s: float,
    window_s: float,
    log_interval_s: float,
    readings: int,
    low_w: float | None = None,
    high_w: float | None = None,
    subject: str = "sampling",
) -> Adequacy:
    """Say whether a sensor and its log can see steps of a length.

    A sensor that averages less than its period, in step with the load, sees the same part of every step: the error
    is invisible in the log and does not shrink with time.

    Parameters
    ----------
    step_s
        Length of a step of the load [s].
    update_s, window_s
        The sensor's update period and averaging window [s].
    log_interval_s
        Step of the log [s].
    readings
        Readings over the time in question.
    low_w, high_w
        Levels between which the load moves within a step [W].
    subject
        Name for findings.

    Returns
    -------
    Adequacy

    Raises
    ------
    ValueError
        A time is not positive.

    Examples
    --------
    >>> adequacy(step_s=0.1, update_s=0.1, window_s=0.025, log_interval_s=0.1, readings=600).status
    'aliased'
    >>> adequacy(step_s=5.0, update_s=0.1, window_s=0.1, log_interval_s=0.1, readings=600).status
    'resolved'
    """
    times = {"step_s": step_s, "update_s": update_s, "log_interval_s": log_interval_s}
    bad = [f"{k} = {v!r}" for k, v in times.items() if not v > 0]
    if bad or window_s < 0:
        raise ValueError(f"sampling.adequacy: {', '.join(bad) or f'window_s = {window_s!r}'}; times must be above 0 s")
    pace = max(update_s, log_interval_s)
    unseen = max(0.0, 1 - window_s / pace)
    worst = None if low_w is None or high_w is None else unseen * abs(high_w - low_w) / 2
    locked = unseen > 0 and _locked(step_s, pace, readings)
    part: tuple[Finding, ...] = ()
    if unseen > 0:
        text = f"The readings cover {1 - unseen:.0%} of the time ({window_s * 1e3:.0f} of every {pace * 1e3:.0f} ms)."
        evidence: dict[str, object] = {"window_s": window_s, "pace_s": pace, "worst_case_w": worst}
        part = (
            Finding(
                "sensor-sees-part-of-the-time", Severity.WARNING if locked else Severity.NOTE, subject, text, evidence
            ),
        )
    if locked:
        return _aliased(step_s, pace, unseen, worst, subject, part)
    blur = max(window_s, pace)
    if step_s < 2 * blur:
        reason = f"averaged: steps of {step_s:.4g} s are shorter than two readings or windows ({blur:.4g} s)"
        finding = Finding(
            "steps-faster-than-sensor", Severity.NOTE, subject,
            f"The mean holds, but the parts of a step do not show: {reason}.", {"step_s": step_s, "blur_s": blur},
        )  # fmt: skip
        return Adequacy("averaged", worst, reason, (*part, finding))
    return Adequacy("resolved", worst, f"steps of {step_s:.4g} s span {step_s / blur:.1f} readings", part)


def _aliased(
    step_s: float, pace_s: float, unseen: float, worst_w: float | None, subject: str, part: tuple[Finding, ...]
) -> Adequacy:
    """Return the refusal of a sensor that stays in step with the load."""
    bound = "" if worst_w is None else f"; a mean may be off by {worst_w:.0f} W"
    reason = (
        f"aliased: steps of {step_s:.4g} s and readings every {pace_s:.4g} s stay in step, and {unseen:.0%} of the "
        f"time is never seen{bound}"
    )
    finding = Finding(
        "sampling-aliased", Severity.ERROR, subject,
        f"Absolute numbers are refused: {reason}. Sample faster, or use a counter.",
        {"step_s": step_s, "pace_s": pace_s, "worst_case_w": worst_w},
    )  # fmt: skip
    return Adequacy("aliased", worst_w, reason, (*part, finding))


def _locked(step_s: float, pace_s: float, readings: int) -> bool:
    """Return whether readings stay at few places of the step: fewer than one turn of slip over all of them."""
    ratio = max(pace_s / step_s, step_s / pace_s)
    turns = round(ratio)
    if step_s > pace_s and turns > SMALL_MULTIPLE:
        return False
    return abs(ratio - turns) < 1 / max(readings, 1)
