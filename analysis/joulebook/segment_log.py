"""One device's log as arrays: when, how much, in which state, and which readings describe the device."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
from numba import njit

from joulebook import ranks, states, trust
from joulebook.findings import Finding

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

GAP_PERIODS: Final = 3.0
"""Silence longer than this many usual steps ends every segment."""

SAMPLE: Final = 1_000_000
"""Steps that the usual one is read from; it is the same all over a log."""


@dataclass(frozen=True)
class Readings:
    """Some readings of a log from ``first`` on; ``at`` is where they stand in it, ``None`` where they are all."""

    first: int
    at: Indices | None
    seconds: Array
    watts: Array

    def place(self, k: int) -> int:
        """Return where a reading stands in the log."""
        return self.first + k if self.at is None else int(self.at[k])

    def from_place(self, place: int) -> Readings:
        """Return the readings from a place of the log on."""
        skip = max(place - self.first, 0) if self.at is None else int(np.searchsorted(self.at, place))
        at = None if self.at is None else self.at[skip:]
        return Readings(max(place, self.first), at, self.seconds[skip:], self.watts[skip:])


@dataclass(frozen=True)
class Log:
    """One device: times, power, and what is known of each reading."""

    device: str
    stamps: pl.Series
    span_s: pl.Series | None
    step_s: float
    seconds: Array
    watts: Array
    state: npt.NDArray[np.int8]
    usable: Mask
    gap_before: Mask

    def span(self, at: int) -> float | None:
        """Return the span of a reading [s], ``None`` for an instantaneous one."""
        return None if self.span_s is None else self.span_s[at]

    def begins(self, at: int) -> datetime:
        """Return when the span of a reading begins."""
        stamp: datetime = self.stamps[at]
        return stamp - timedelta(microseconds=round((self.span(at) or 0.0) * 1e6))

    def ends(self, at: int) -> datetime:
        """Return when what a reading stands for ends: a step on, where it has no span."""
        stamp: datetime = self.stamps[at]
        return stamp if self.span(at) is not None else stamp + timedelta(microseconds=round(self.step_s * 1e6))

    def counted(self, first: int, end: int, state: np.int8) -> Readings:
        """Return the usable readings of one state from first to end (exclusive)."""
        mask = self.usable[first:end] & (self.state[first:end] == state)
        if mask.all():  # long stretches mostly are whole: views then, no copies
            return Readings(first, None, self.seconds[first:end], self.watts[first:end])
        at = np.flatnonzero(mask) + first
        return Readings(first, at, self.seconds[at], self.watts[at])


def load(frame: pl.DataFrame, device: str, *, idle_w: float | None) -> tuple[Log, tuple[Finding, ...]]:
    """Take one device's power frame apart and judge each reading.

    Parameters
    ----------
    frame
        Power frame of one device in time order, with finite power.
    device
        Its name, for the findings.
    idle_w
        Idle power, where it is known from elsewhere [W].

    Returns
    -------
    Log, tuple of Finding
        Arrays, and doubts about the sensor.

    Examples
    --------
    >>> stamps = pl.Series([datetime(2026, 11, 2, 1, 0, s) for s in range(9)]).dt.replace_time_zone("UTC")
    >>> log, doubts = load(pl.DataFrame({"ts_utc": stamps, "power_w": 300.0 + np.arange(9) % 4}), "gpu:0", idle_w=None)
    >>> log.step_s, log.usable.all().item(), doubts
    (1.0, True, ())
    """
    stamps = frame["ts_utc"]
    seconds = _elapsed(stamps.dt.epoch("us").to_numpy())
    watts = frame["power_w"].cast(pl.Float64).to_numpy()
    step = _usual_step_s(seconds)
    judged = trust.judge(watts, subject=device)
    good = judged.usable
    used, span = _told(frame, "utilization_ratio"), _told(frame, "span_s")
    busy = None if used is None else used.to_numpy().astype(np.float64)
    state = np.full(watts.size, states.BUSY)
    if good.all() and watts.size > 1:
        state = states.split(seconds, watts, busy, idle_w=idle_w)
    elif good.sum() > 1:
        state[good] = states.split(seconds[good], watts[good], None if busy is None else busy[good], idle_w=idle_w)
        _carry(state, good)
    gap = _gaps(seconds, GAP_PERIODS * step)
    return Log(device, stamps, span, step, seconds, watts, state, good, gap), judged.findings


def _told(frame: pl.DataFrame, name: str) -> pl.Series | None:
    """Return a column, ``None`` where it says nothing."""
    column = frame.get_column(name, default=None)
    return None if column is None or column.null_count() == column.len() else column.cast(pl.Float64)


def _usual_step_s(seconds: Array) -> float:
    """Return the median step [s]; that of a long log from stretches all over it."""
    if seconds.size < 2:
        return 0.0
    if seconds.size <= SAMPLE:
        return ranks.median(np.diff(seconds))
    firsts = np.linspace(0, seconds.size - SAMPLE // 64 - 1, 64).astype(np.int64)
    return ranks.median(np.concatenate([np.diff(seconds[a : a + SAMPLE // 64 + 1]) for a in firsts]))


@njit(cache=True, nogil=True)
def _elapsed(stamps_us: Indices) -> Array:
    out = np.empty(stamps_us.size)
    for i in range(stamps_us.size):
        out[i] = (stamps_us[i] - stamps_us[0]) / 1e6
    return out


@njit(cache=True, nogil=True)
def _carry(state: npt.NDArray[np.int8], good: Mask) -> None:
    """Give what is left out the state of the reading before it, so that it does not cut a stretch in two."""
    for i in range(1, state.size):
        if not good[i]:
            state[i] = state[i - 1]


@njit(cache=True, nogil=True)
def _gaps(seconds: Array, longest_s: float) -> Mask:
    out = np.zeros(seconds.size, np.bool_)
    for i in range(1, seconds.size):
        out[i] = seconds[i] - seconds[i - 1] > longest_s
    return out
