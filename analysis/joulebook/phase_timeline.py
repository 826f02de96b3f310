"""Time cut into labelled stretches: what runs when, with nested and overlapping phases made disjoint."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

OTHER = "other"
"""Name of the time in no phase, and of the energy that no phase was given."""

TOGETHER = " & "
"""Joins the names of phases that run at the same time without one lying inside the other."""

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


def cut(phases: pl.DataFrame, *, start_utc: datetime, end_utc: datetime) -> Timeline:
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
    >>> cut(p, start_utc=t0, end_utc=t0 + timedelta(seconds=10)).seconds.tolist()
    [7.0, 3.0]
    """
    length_s = (end_utc - start_utc).total_seconds()
    marks = (
        phases.select("phase", pl.col("start_utc", "end_utc").cast(pl.Datetime("us", "UTC")))
        .drop_nulls()
        .select(
            pl.col("phase").cast(pl.String),
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
    joint = [TOGETHER.join(n for n, on in zip(names, row, strict=True) if on) for row in mixed]
    outer = active & (crowd > 1)[:, None] & alone[:, None] & (np.arange(shape[1]) != inner[:, None])
    return Timeline(
        breaks,
        label.astype(np.int64),
        (OTHER, *names, *joint),
        tuple(n for n, on in zip(names, np.any(outer, axis=0).tolist(), strict=True) if on),
        tuple(n for n, on in zip(names, np.any(mixed, axis=0).tolist(), strict=True) if on),
    )
