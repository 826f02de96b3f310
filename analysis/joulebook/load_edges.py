"""Ends of a window at which the load begins and stops: what lies between there and the first reading inside is of the load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from joulebook import bridges, ranks, stretches
from joulebook.stretches import Floats, Stretches

BESIDE = 3
"""Readings on either side of an end whose medians tell whether power jumps there: one may be a stray."""

LEAST_JUMP = 3.0
"""Power jumps where it differs by so many times what readings usually do from one to the next."""

CLIMB_RATIO = 1.5
"""A climb of equal steps takes both sides apart by no more than so many times the climbs within them."""


def hold(
    whole: Stretches, stamp_s: Floats, power_w: Floats, *, window_s: float, length_s: float, limit_s: float
) -> tuple[Stretches, float]:
    """Return the stretches of the window, power held from inside to those of its ends at which it jumps.

    A straight line over a jump at the end of a run puts a part of the run's energy outside of the run, at both ends and
    always to the same side: on average a sixth of a period of the jump at each.

    Parameters
    ----------
    whole
        Stretches; times in seconds from the window's start.
    stamp_s, power_w
        The readings, moved back to the middle of what they speak of [s], and their powers [W].
    window_s
        What a reading is a mean over [s], 0 for none: one that reaches over an end is no reading of the inside.
    length_s
        Length of the window [s].
    limit_s
        Farthest that a reading is held [s].

    Returns
    -------
    Stretches
        Those of the window alone.
    float
        Seconds over which power was held.

    Examples
    --------
    >>> at, watts = np.arange(-10.0, 31.0, 5.0), np.array([60.0, 60, 60, 300, 300, 300, 60, 60, 60])
    >>> lines = stretches.between_instants(at, watts, limit_s=15.0)
    >>> done, held_s = hold(lines, at, watts, window_s=0.0, length_s=18.0, limit_s=15.0)
    >>> done.total_j, held_s
    (5400.0, 8.0)
    >>> climb = np.array([60.0, 80, 100, 120, 140, 160, 180, 200, 220])  # 100 to 172 W
    >>> hold(stretches.between_instants(at, climb, limit_s=15.0), at, climb, window_s=0.0, length_s=18.0, limit_s=15.0)[1]
    0.0
    """
    # A mean may begin with the window; a point at its very end may be of either side.
    half = window_s / 2 - bridges.STAMP_TOLERANCE_S if window_s else bridges.STAMP_TOLERANCE_S
    inside = slice(*np.searchsorted(stamp_s, (half, length_s - half)))
    first, last = inside.start, inside.stop - 1
    if last <= first:
        return stretches.clip(whole, length_s=length_s), 0.0
    outside = np.searchsorted(stamp_s, (-half, length_s + half))
    usual = ranks.median(np.abs(np.diff(power_w[inside])))
    begin, end = 0.0, length_s
    if stamp_s[first] <= limit_s and _jumps(power_w[: outside[0]][-BESIDE:], power_w[inside][:BESIDE], usual):
        begin = float(max(stamp_s[first], 0.0))
    if length_s - stamp_s[last] <= limit_s and _jumps(power_w[outside[1] :][:BESIDE], power_w[inside][-BESIDE:], usual):
        end = float(min(stamp_s[last], length_s))
    moved = replace(whole, start_s=whole.start_s - begin, end_s=whole.end_s - begin)
    middle = stretches.clip(moved, length_s=end - begin)
    middle = replace(middle, start_s=middle.start_s + begin, end_s=middle.end_s + begin)
    sides = [(0.0, begin, power_w[first]), (end, length_s, power_w[last])]
    held = [_flat(a, b, float(w)) for a, b, w in sides if b > a]
    return stretches.in_order(middle, *held), begin + length_s - end


def jumps_w(power_w: Floats, seen: slice, far: int = 0) -> float:
    """Return by how much power differs across both ends of a window, added up [W].

    Parameters
    ----------
    power_w
        Readings of the log, in order of time [W].
    seen
        Those within the window.
    far
        Readings over which a sensor that trails moves from one level to the other, moved back by half: most of it lies behind
        an end.

    Examples
    --------
    >>> jumps_w(np.array([60.0] * 5 + [300.0] * 5 + [60.0] * 5), slice(5, 10))
    480.0
    """
    ends = [
        (power_w[max(i - far // 2 - BESIDE, 0) : max(i - far // 2, 0)], power_w[i + far : i + far + BESIDE])
        for i in (seen.start, seen.stop)
    ]
    return float(sum(abs(ranks.median(b) - ranks.median(a)) for a, b in ends if a.size and b.size))


def _jumps(without: Floats, within: Floats, usual_w: float) -> bool:
    """Tell whether power differs between both sides of an end by more than it does from reading to reading, and within each.

    A climb on which each reading is higher than the one before is no jump.
    """
    if without.size == 0 or within.size == 0:
        return False
    apart_w = abs(ranks.median(within) - ranks.median(without))
    return bool(apart_w > LEAST_JUMP * usual_w and apart_w > CLIMB_RATIO * float(np.ptp(without) + np.ptp(within)))


def _flat(start_s: float, end_s: float, watts: float) -> Stretches:
    return Stretches(*(np.array([v]) for v in (start_s, end_s, watts, watts, 0.0)))
