"""The stretches of time that readings speak for, and the power along each: the ground that energy is summed on.

A stretch runs from ``start_s`` to ``end_s`` with a power that goes linearly from one end to the other. What lies
between stretches is open: nothing is known there.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from joulebook import step_sums
from joulebook.bridges import STAMP_TOLERANCE_S, paced_limits_s
from joulebook.step_sums import TILE

Floats = NDArray[np.float64]

STAMP_GRAIN_S = 1e-6
"""Stamps have no finer grain than a microsecond: what is shorter is no hole."""

MOVING_MEAN_STEP = 0.75
"""Where readings step by less than this share of their own span, they are a moving mean and not adjoining spans."""


@dataclass(frozen=True)
class Stretches:
    """Stretches of one device in order of time, without overlap; times in seconds from the window's start.

    ``variance_j2`` is the variance of each stretch's energy from what happened between its readings unseen.
    """

    start_s: Floats
    end_s: Floats
    power_start_w: Floats
    power_end_w: Floats
    variance_j2: Floats

    @property
    def energy_j(self) -> Floats:
        """Energy of each stretch [J]."""
        return (self.power_start_w + self.power_end_w) / 2 * (self.end_s - self.start_s)

    @property
    def total_j(self) -> float:
        """Energy of all stretches together [J]."""
        return self._sums[0]

    @property
    def covered_s(self) -> float:
        """Length of all stretches together [s]."""
        return self._sums[1]

    @property
    def squared_s2(self) -> float:
        """Sum of the squares of the lengths [s²]."""
        return self._sums[2]

    @cached_property
    def _sums(self) -> tuple[float, float, float]:
        return step_sums.of_lines(self.start_s, self.end_s, self.power_start_w, self.power_end_w)


def lag_s(*, window_s: float, update_s: float | None, period_s: float | None) -> float:
    """Return by how much a reading trails what it speaks of [s]: half the sensor's window plus its value's mean age.

    Parameters
    ----------
    window_s
        Averaging window of the sensor [s], 0 for none.
    update_s
        Period at which the sensor renews its value [s]; ``None`` = at once.
    period_s
        Period of the log [s].

    Examples
    --------
    >>> lag_s(window_s=1.0, update_s=0.1, period_s=1.0)
    0.55
    """
    age_s = 0.0 if update_s is None else min(update_s, update_s if period_s is None else period_s) / 2
    return window_s / 2 + age_s


def between_instants(
    stamp_s: Floats, power_w: Floats, *, limit_s: float, seen_s: float = 0.0, paced: bool = False
) -> Stretches:
    """Return the straight lines between instantaneous readings, where their step is no longer than the limit.

    Parameters
    ----------
    stamp_s, power_w
        Stamps [s] in order and readings [W]. Equal stamps add nothing.
    limit_s
        Longest step that is bridged [s].
    seen_s
        Averaging window of the sensor [s]: what it saw of each step.
    paced
        Whether the limit follows the log's own pace, see :func:`joulebook.bridges.paced_limits_s`.

    Examples
    --------
    >>> between_instants(np.array([0.0, 1, 9]), np.array([100.0, 300, 300]), limit_s=3.0).energy_j
    array([200.])
    """
    variance = np.empty(max(stamp_s.size - 1, 0))
    shortest_s, longest_s = step_sums.jump_variances(stamp_s, power_w, seen_s, variance)
    keep: slice | NDArray[np.bool_] = slice(None)  # most logs are whole: views then, no copies
    if not (shortest_s > 0 and longest_s <= limit_s + STAMP_TOLERANCE_S):
        step = np.diff(stamp_s)
        limits_s = paced_limits_s(step, limit_s) if paced else limit_s
        keep = (step > 0) & (step <= limits_s + STAMP_TOLERANCE_S)
    return Stretches(stamp_s[:-1][keep], stamp_s[1:][keep], power_w[:-1][keep], power_w[1:][keep], variance[keep])


def held(stamp_s: Floats, power_w: Floats, *, limit_s: float = np.inf) -> Stretches:
    """Return each reading held until the next: for logs that are written only when the value changes.

    Examples
    --------
    >>> held(np.array([0.0, 10, 15]), np.array([100.0, 300, 100])).energy_j
    array([1000., 1500.])
    """
    step = np.diff(stamp_s)
    keep = (step > 0) & (step <= limit_s + STAMP_TOLERANCE_S)
    return Stretches(
        stamp_s[:-1][keep], stamp_s[1:][keep], power_w[:-1][keep], power_w[:-1][keep], np.zeros(keep.sum())
    )


def without(whole: Stretches, asked_s: Floats) -> Stretches:
    """Return the stretches inside of which nobody asked: what failed to answer is not known to have stayed as it was.

    Examples
    --------
    >>> without(held(np.array([0.0, 10, 15]), np.full(3, 100.0)), np.array([0.0, 10, 12, 15])).energy_j
    array([1000.])
    """
    inside = np.searchsorted(asked_s, whole.end_s, side="left") - np.searchsorted(asked_s, whole.start_s, side="right")
    keep = inside <= 0
    return whole if keep.all() else Stretches(*(getattr(whole, f.name)[keep] for f in fields(Stretches)))


def over_spans(stamp_s: Floats, span_s: Floats, power_w: Floats, *, limit_s: float) -> Stretches:
    """Return readings that are means over the span that ends at their stamp, and bridges over short holes between.

    A span that begins before the one in front of it ends is cut there, so no second is counted twice.

    Parameters
    ----------
    stamp_s, span_s, power_w
        Ends of the spans in order [s], their lengths [s], mean powers [W].
    limit_s
        Longest hole between spans that is bridged by a straight line [s].

    Examples
    --------
    >>> over_spans(np.array([10.0, 20]), np.array([10.0, 9]), np.array([100.0, 200]), limit_s=3.0).energy_j
    array([1000.,  150., 1800.])
    """
    first = np.concatenate([[True], np.diff(stamp_s) > 0]) & (span_s > 0)
    end, power = stamp_s[first], power_w[first]
    start = end - span_s[first]
    if end.size == 0:
        return Stretches(end, end, end, end, end)
    start[1:] = np.maximum(start[1:], end[:-1])
    spans = Stretches(start, end, power, power, np.zeros(end.size))
    hole = start[1:] - end[:-1]
    keep = (hole > STAMP_GRAIN_S) & (hole <= limit_s + STAMP_TOLERANCE_S)
    before, after = power[:-1][keep], power[1:][keep]
    variance = (hole * np.diff(end))[keep] * (after - before) ** 2 / 2
    return in_order(spans, Stretches(end[:-1][keep], start[1:][keep], before, after, variance))


def in_order(*several: Stretches) -> Stretches:
    """Return several stretches that do not overlap as one, in order of time."""
    columns = [np.concatenate([getattr(s, f.name) for s in several]) for f in fields(Stretches)]
    order = np.argsort(columns[0], kind="stable")
    return Stretches(*(c[order] for c in columns))


def extended(
    stretches: Stretches, *, length_s: float, reach_s: float, at_start: bool = True, at_end: bool = True
) -> tuple[Stretches, float]:
    """Return the stretches with the outer readings held to the window's edges within reach, and how far they were [s].

    Not so at an edge beyond which the log goes on: it lies in a hole then, and two windows that meet there add up.

    Examples
    --------
    >>> s = between_instants(np.array([0.5, 1.5]), np.array([100.0, 100]), limit_s=3.0)
    >>> extended(s, length_s=2.0, reach_s=1.0)[1]
    1.0
    """
    if stretches.start_s.size == 0:
        return stretches, 0.0
    lead, tail = stretches.start_s[0], length_s - stretches.end_s[-1]
    added, zero = [stretches], np.zeros(1)
    reach_s += STAMP_TOLERANCE_S
    if at_start and 0 < lead <= reach_s:
        first = stretches.power_start_w[:1]
        added.append(Stretches(zero, zero + lead, first, first, zero))
    if at_end and 0 < tail <= reach_s:
        last = stretches.power_end_w[-1:]
        added.append(Stretches(zero + length_s - tail, zero + length_s, last, last, zero))
    reached = sum(float(s.end_s[0] - s.start_s[0]) for s in added[1:])
    return (in_order(*added) if len(added) > 1 else stretches), reached


def clip(stretches: Stretches, *, length_s: float) -> Stretches:
    """Return the part of the stretches inside the window ``[0, length_s)``, with powers interpolated at its edges.

    Examples
    --------
    >>> s = between_instants(np.array([-1.0, 1.0]), np.array([100.0, 300]), limit_s=3.0)
    >>> clip(s, length_s=10.0).energy_j
    array([250.])
    """
    lo = int(np.searchsorted(stretches.end_s, 0.0, side="right"))
    hi = int(np.searchsorted(stretches.start_s, length_s, side="left"))
    columns = [getattr(stretches, f.name)[lo:hi] for f in fields(Stretches)]
    if hi <= lo or (columns[0][0] >= 0 and columns[1][-1] <= length_s):
        return Stretches(*columns)
    start, end, p0, p1, variance = (c.copy() for c in columns)
    for at in {0, start.size - 1}:
        a, b = max(start[at], 0.0), min(end[at], length_s)
        whole, slope = end[at] - start[at], (p1[at] - p0[at]) / (end[at] - start[at])
        p0[at], p1[at] = p0[at] + slope * (a - start[at]), p0[at] + slope * (b - start[at])
        variance[at] *= ((b - a) / whole) ** 2
        start[at], end[at] = a, b
    return Stretches(start, end, p0, p1, variance)


def holes(stretches: Stretches, *, length_s: float) -> tuple[Floats, Floats]:
    """Return start and end of what the stretches leave open in ``[0, length_s)`` [s].

    Examples
    --------
    >>> s = between_instants(np.array([0.0, 1, 9, 10]), np.full(4, 100.0), limit_s=3.0)
    >>> holes(s, length_s=10.0)
    (array([1.]), array([9.]))
    """
    if stretches.start_s.size == 0:
        return np.array([0.0]), np.array([length_s])
    starts, ends = stretches.start_s[1:], stretches.end_s[:-1]
    inner = np.concatenate([
        at + np.flatnonzero(starts[at : at + TILE] - ends[at : at + TILE] > STAMP_GRAIN_S)
        for at in range(0, starts.size, TILE)
    ] or [np.zeros(0, dtype=np.int64)])  # fmt: skip
    start = np.concatenate([[0.0], stretches.end_s[inner], stretches.end_s[-1:]])
    end = np.concatenate([stretches.start_s[:1], stretches.start_s[inner + 1], [length_s]])
    keep = end - start > STAMP_GRAIN_S
    return start[keep], end[keep]
