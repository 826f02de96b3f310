"""Which share of each reading's averaging window falls into which phase, and energy as a function of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl

from joulebook import totals
from joulebook.phase_timeline import Floats, Timeline
from joulebook.sensor_response import cumulated

MAX_STEP_PERIODS = 3.0
"""A reading stands for at most so many median steps of its device [1]: longer steps are gaps."""


@dataclass(frozen=True, slots=True)
class Series:
    """Readings of one device as arrays.

    Parameters
    ----------
    device
        Name of the device.
    t_s
        Stamps [s] after the start, increasing.
    power_w
        Readings [W].
    weight_s
        Time each reading stands for [s], at most three median steps.
    period_s
        Median step [s].
    """

    device: str
    t_s: Floats
    power_w: Floats
    weight_s: Floats
    period_s: float


def series(power: pl.DataFrame, *, start_utc: datetime, margin_s: float, end_utc: datetime) -> tuple[Series, ...]:
    """Take the readings of a window apart by device.

    Parameters
    ----------
    power
        Columns ``device``, ``ts_utc``, ``power_w``.
    start_utc, end_utc
        Window.
    margin_s
        Readings up to so long outside of the window are kept [s].

    Returns
    -------
    tuple of Series
        One per device with at least two readings, in order of name.
    """
    kept = power.select(
        "device",
        ((pl.col("ts_utc").cast(pl.Datetime("us", "UTC")) - start_utc).dt.total_microseconds() / 1e6).alias("t"),
        "power_w",
    ).filter(
        pl.col("power_w").is_finite(),
        pl.col("t").is_between(-margin_s, (end_utc - start_utc).total_seconds() + margin_s),
    )
    parts = ((name, _one_a_time(rows)) for name, rows in totals.by_device(kept))
    return tuple(_series(name, p["t"].to_numpy(), p["power_w"].to_numpy()) for name, p in parts if p.height > 1)


def _one_a_time(rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows in order of time; readings of one moment become their mean."""
    if rows.height > 1 and bool((rows["t"].diff().slice(1) > 0).all()):
        return rows
    return rows.group_by("t").agg(pl.col("power_w").mean()).sort("t")


def _series(device: str, t: Floats, y: Floats) -> Series:
    step = np.diff(t)
    period = float(np.median(step))
    return Series(device, t, y, np.minimum(np.append(period, step), MAX_STEP_PERIODS * period), period)


def energy_at(one: Series, t_s: Floats) -> Floats:
    """Return the energy of a device from its first reading to given times, by trapezoids.

    Parameters
    ----------
    one
        Readings.
    t_s
        Times [s]; outside of the readings the first and last power hold.

    Returns
    -------
    ndarray
        Energy [J] at each time.
    """
    t, y = one.t_s, one.power_w
    total = np.concatenate([[0.0], np.cumsum(np.diff(t) * (y[1:] + y[:-1]) / 2)])
    i = np.clip(np.searchsorted(t, t_s, side="right") - 1, 0, len(t) - 2)
    dt = np.clip(t_s, t[0], t[-1]) - t[i]
    slope = (y[i + 1] - y[i]) / (t[i + 1] - t[i])
    inside: Floats = total[i] + dt * (y[i] + slope * dt / 2)
    inside += np.minimum(t_s - t[0], 0) * y[0] + np.maximum(t_s - t[-1], 0) * y[-1]
    return inside


def within(power: pl.DataFrame, spans: pl.DataFrame) -> Floats:
    """Return the energy of all devices within intervals, by trapezoids.

    Parameters
    ----------
    power
        Columns ``device``, ``ts_utc``, ``power_w``.
    spans
        Columns ``start_utc``, ``end_utc``.

    Returns
    -------
    ndarray
        Energy [J] of each interval; 0 where nothing is logged.

    Examples
    --------
    >>> from datetime import timedelta, timezone
    >>> t = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=s) for s in range(11)]
    >>> within(pl.DataFrame({"device": "node", "ts_utc": t, "power_w": 50.0}),
    ...        pl.DataFrame({"start_utc": [t[2]], "end_utc": [t[5]]})).tolist()
    [150.0]
    """
    if power.is_empty() or spans.is_empty():
        return np.zeros(spans.height)
    first: Any = power["ts_utc"].min()
    last: Any = power["ts_utc"].max()
    offsets = [((spans[c] - first).dt.total_microseconds() / 1e6).to_numpy() for c in ("start_utc", "end_utc")]
    total = np.zeros(spans.height)
    for one in series(power, start_utc=first, end_utc=last, margin_s=1.0):
        a, b = (np.clip(o, one.t_s[0], one.t_s[-1]) for o in offsets)
        total += energy_at(one, b) - energy_at(one, a)
    return total


def share(line: Timeline, ends_s: Floats, *, window_s: float, lag_s: float = 0.0) -> Floats:
    """Return the share of each averaging window that is spent with each label.

    Parameters
    ----------
    line
        Stretches.
    ends_s
        Ends of the windows [s] after the start, increasing.
    window_s
        Length of the windows [s], above 0.
    lag_s
        Time constant of a first-order sensor in front of the averaging [s]; 0 = none.

    Returns
    -------
    ndarray
        One row a window, one column a label; rows sum to 1. Time outside of the line counts as its first or last label.
    """
    if len(ends_s) == 0:
        return np.zeros((0, len(line.names)))
    at_end, at_begin = cumulated(line, np.stack([ends_s, ends_s - window_s]), lag_s=lag_s)
    return np.asarray((at_end - at_begin) / window_s)
