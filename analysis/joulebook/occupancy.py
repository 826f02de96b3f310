"""Which share of each reading's averaging window falls into which phase, and energy as a function of time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OTHER = "other"
"""Name of the time in no phase, and of the energy that no phase was given."""

NESTED_JOIN = " & "
"""Joins the names of phases that run at the same time without one lying inside the other."""

MAX_STEP_PERIODS = 3.0
"""A reading stands for at most so many median steps of its device [1]: longer steps are gaps."""


RESOLUTION_S = 5e-7
"""Half a microsecond [s], to which stamps are stored: less time than that is rounding."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Time cut into stretches, each with one label.

    Parameters
    ----------
    breaks_s
        Edges of the stretches [s] after the start, one more than stretches, from 0 to the length.
    label
        Index into ``names`` for each stretch.
    names
        Labels; the first is ``"other"``.
    nested, overlapping
        Names of phases that contain others, and of those that partly overlap.
    """

    breaks_s: Floats
    label: Ints
    names: tuple[str, ...]
    nested: tuple[str, ...] = ()
    overlapping: tuple[str, ...] = ()

    @property
    def seconds(self) -> Floats:
        """Time with each label [s]."""
        spent = np.bincount(self.label, np.diff(self.breaks_s), len(self.names))
        return np.where(spent < RESOLUTION_S, 0.0, spent)

    @property
    def stretches(self) -> Ints:
        """Number of stretches with each label."""
        return np.bincount(self.label, minlength=len(self.names))


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


def timeline(phases: pl.DataFrame, *, start_utc: datetime, end_utc: datetime) -> Timeline:
    """Cut a window into stretches with one label each.

    Where one phase lies inside another the inner one has the time, so the outer one keeps what is its own; where two
    phases merely overlap the time gets a label of both names.

    Parameters
    ----------
    phases
        Columns ``phase``, ``start_utc``, ``end_utc``.
    start_utc, end_utc
        Window.

    Returns
    -------
    Timeline
        Stretches over the whole window.

    Examples
    --------
    >>> from datetime import timedelta, timezone
    >>> t0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> p = pl.DataFrame({"phase": ["a"], "start_utc": [t0], "end_utc": [t0 + timedelta(seconds=3)]})
    >>> timeline(p, start_utc=t0, end_utc=t0 + timedelta(seconds=10)).seconds.tolist()
    [7.0, 3.0]
    """
    length_s = (end_utc - start_utc).total_seconds()
    marks = (
        phases.drop_nulls(["phase", "start_utc", "end_utc"])
        .select(
            "phase",
            ((pl.col("start_utc") - start_utc).dt.total_microseconds() / 1e6).clip(0, length_s).alias("a"),
            ((pl.col("end_utc") - start_utc).dt.total_microseconds() / 1e6).clip(0, length_s).alias("b"),
        )
        .filter(pl.col("b") > pl.col("a"))
        .sort("a", "b")
    )
    names = sorted(set(marks["phase"].to_list()))
    code = np.searchsorted(np.array(names, dtype=object), marks["phase"].to_numpy()).astype(np.int64)
    a, b = marks["a"].to_numpy(), marks["b"].to_numpy()
    breaks = np.unique(np.concatenate([[0.0, length_s], a, b]))
    if len(a) == 0 or np.all(a[1:] >= b[:-1]):
        label = np.zeros(len(breaks) - 1, dtype=np.int64)
        label[np.searchsorted(breaks, a)] = code + 1
        return Timeline(breaks, label, (OTHER, *names))
    return _layered(breaks, a, b, code, names)


def _layered(breaks: Floats, a: Floats, b: Floats, code: Ints, names: list[str]) -> Timeline:
    """Label stretches in which several phases may run at once."""
    shape = (len(breaks) - 1, len(names))
    first, last = np.full(shape, -np.inf), np.full(shape, np.inf)
    for k in range(len(names)):
        mine = code == k
        lo, hi = np.searchsorted(breaks, a[mine]), np.searchsorted(breaks, b[mine])
        delta = np.bincount(lo, minlength=len(breaks)) - np.bincount(hi, minlength=len(breaks))
        on = np.cumsum(delta)[:-1] > 0
        edge = np.diff(np.concatenate([[False], on, [False]]).astype(np.int8))
        begin, end = np.flatnonzero(edge == 1), np.flatnonzero(edge == -1)
        which = np.cumsum(edge[:-1] == 1)[on] - 1
        first[on, k], last[on, k] = breaks[begin][which], breaks[end][which]
    active = np.isfinite(first)
    inner = np.lexsort((last.T, -first.T), axis=0)[0]
    rows = np.arange(shape[0])
    held = last[rows, inner] <= np.where(active, last, np.inf).min(axis=1)
    strict = np.all(~active | (first != first[rows, inner, None]) | (last != last[rows, inner, None])
                    | (np.arange(shape[1]) == inner[:, None]), axis=1)  # fmt: skip
    crowd = active.sum(axis=1)
    alone = (crowd == 1) | ((crowd > 1) & held & strict)
    label = np.where(alone, inner + 1, 0)
    label[crowd == 0] = 0
    mixed, place = np.unique(active[(crowd > 1) & ~alone], axis=0, return_inverse=True)
    label[(crowd > 1) & ~alone] = 1 + len(names) + place.ravel()
    joint = [NESTED_JOIN.join(n for n, on in zip(names, row, strict=True) if on) for row in mixed]
    outer = active & (crowd > 1)[:, None] & alone[:, None] & (np.arange(shape[1]) != inner[:, None])
    return Timeline(
        breaks,
        label.astype(np.int64),
        (OTHER, *names, *joint),
        tuple(n for n, on in zip(names, outer.any(axis=0), strict=True) if on),
        tuple(n for n, on in zip(names, mixed.any(axis=0), strict=True) if on),
    )


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
    kept = (
        power.select("device", ((pl.col("ts_utc") - start_utc).dt.total_microseconds() / 1e6).alias("t"), "power_w")
        .filter(
            pl.col("power_w").is_finite(),
            pl.col("t").is_between(-margin_s, (end_utc - start_utc).total_seconds() + margin_s),
        )
        .group_by("device", "t")
        .agg(pl.col("power_w").mean())
        .sort("device", "t")
    )
    parts = (part for part in kept.partition_by("device") if part.height > 1)
    return tuple(_series(p["device"][0], p["t"].to_numpy(), p["power_w"].to_numpy()) for p in parts)


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
    return inside + np.minimum(t_s - t[0], 0) * y[0] + np.maximum(t_s - t[-1], 0) * y[-1]


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
    width = len(line.names)
    out = _cumulated(line.breaks_s, line.label, width, np.ascontiguousarray(ends_s), lag_s)
    out -= _cumulated(line.breaks_s, line.label, width, ends_s - window_s, lag_s)
    out /= window_s
    shares: Floats = out
    return shares


@njit(cache=True)  # type: ignore[untyped-decorator]
def _cumulated(breaks: Any, label: Any, width: int, times: Any, lag: float) -> Any:
    """Return per time and label the integral of a first-order sensor's response to that label."""
    n = len(times)
    out = np.empty((n, width))
    c, f = np.zeros(width), np.zeros(width)
    f[label[0]] = 1.0
    i, last = 0, len(label) - 1
    now = min(times[0], breaks[0])
    c[label[0]] = now - breaks[0]
    for j in range(n):
        while True:
            until = times[j] if i == last or times[j] < breaks[i + 1] else breaks[i + 1]
            step = until - now
            k = label[i]
            c[k] += step
            if lag > 0 and step > 0:
                fade = np.exp(-step / lag)
                for m in range(width):
                    f[m] *= fade
                f[k] += 1.0 - fade
            now = until
            if i < last and now >= breaks[i + 1] and times[j] >= breaks[i + 1]:
                i += 1
            else:
                break
        # the integral of a first-order response is that of its input less what is still stored
        for m in range(width):
            out[j, m] = c[m] - lag * f[m]
    return out
