"""Busy, stalled or idle: what a device does, from its power and, where known, its utilisation."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

from joulebook import ranks, trust

Array = npt.NDArray[np.float64]
States = npt.NDArray[np.int8]
Stamps = npt.NDArray[np.int64]

IDLE, STALL, BUSY, MIXED = np.int8(0), np.int8(1), np.int8(2), np.int8(3)
"""States of a reading; a mixed one covers an edge, so it is part of neither side."""

HISTOGRAM_BINS: Final = 256
"""Bins of the power histogram that is split in two."""

SEPARATION_SD: Final = 3.0
"""Distance of two power levels, in pooled standard deviations, from which they are two states."""

LOWER_LEVEL_RATIO: Final = 0.6
"""Upper bound of the lower level as a share of the upper one; a stalled accelerator draws 30 to 50 % of its peak."""

STALL_READINGS: Final = 2
"""Shortest dip that is a stall; a single low reading proves nothing."""

STALL_UTILIZATION_RATIO: Final = 0.3
"""Mean utilisation above which a dip is work, not a stall."""

UNUSED_UTILIZATION_RATIO: Final = 0.05
"""Mean utilisation below which a device with one level of power is at rest."""

STALL_MAX_S: Final = 120.0
"""Longest dip that is called a stall by power alone; longer ones may be a lighter load [s]."""

IDLE_PEAK_RATIO: Final = 0.25
"""Share of the peak below which a dip is idle, where no idle level is known."""

IDLE_MARGIN_W: Final = 15.0
"""Distance from the idle level that still counts as idle [W]."""

IDLE_MARGIN_RATIO: Final = 0.1
"""The same as a share of the idle level; the larger of the two holds."""

EDGE_QUANTILE: Final = 0.05
"""Quantile of busy readings below which one beside a stall covers a part of it."""

SAMPLE: Final = 1_000_000
"""Readings that levels are read from; a longer log is thinned to so many."""

GOLDEN_RATIO: Final = 0.6180339887498949
"""Its multiples fill the unit interval evenly, so that a thinned log keeps no step with a periodic load."""

QUIET_S: Final = 60.0
"""Shortest quiet stretch from which an idle level is read [s]."""


def _thinned(power_w: Array) -> Array:
    """Return a million of the readings, spread over the whole log without a period."""
    if power_w.size <= SAMPLE:
        return power_w
    k = np.arange(SAMPLE)
    return power_w[((k + k * GOLDEN_RATIO % 1.0) * (power_w.size / SAMPLE)).astype(np.int64)]


def threshold_w(power_w: Array) -> float | None:
    """Return the power that best splits the readings in two levels, or ``None`` where there is only one.

    Parameters
    ----------
    power_w
        Readings [W].

    Returns
    -------
    float or None
        Threshold [W].

    References
    ----------
    Otsu, IEEE Trans. Syst. Man Cybern. 9 (1979), doi:10.1109/TSMC.1979.4310076.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(1).normal(0.0, 5.0, 300)
    >>> 100.0 < threshold_w(np.repeat([80.0, 400.0, 400.0], 100) + noise) < 400.0
    True
    >>> threshold_w(400.0 + noise) is None
    True
    """
    lo, hi = (ranks.quantile(power_w, ratio) for ratio in (0.002, 0.98))
    if not hi > lo:
        return None
    counts, edges = _histogram(power_w, lo, hi), np.linspace(lo, hi, HISTOGRAM_BINS + 1)
    centers = (edges[:-1] + edges[1:]) / 2.0
    weight = np.cumsum(counts) / power_w.size
    moment = np.cumsum(counts * centers) / power_w.size
    inside = (weight > 0.0) & (weight < 1.0)
    between = np.zeros(HISTOGRAM_BINS)
    between[inside] = (moment[-1] * weight[inside] - moment[inside]) ** 2 / (weight[inside] * (1.0 - weight[inside]))
    # Empty bins between two levels are all as good: take the middle of them.
    best = np.flatnonzero(between >= between.max() * (1.0 - 1e-9))
    cut = float(edges[1:][best].mean())
    below, low_w, high_w, squares = _sides(power_w, lo, hi, cut)
    if min(below, power_w.size - below) < STALL_READINGS:
        return None
    apart = high_w - low_w > SEPARATION_SD * math.sqrt(squares / power_w.size)
    return cut if apart and low_w < LOWER_LEVEL_RATIO * high_w else None


@njit(cache=True, nogil=True)
def _histogram(power_w: Array, lo: float, hi: float) -> Stamps:
    """Return how many readings lie in each of the equal bins between two powers; what lies beyond is of the outer ones."""
    counts, scale = np.zeros(HISTOGRAM_BINS, np.int64), HISTOGRAM_BINS / (hi - lo)
    for watts in power_w:
        counts[int(min(max((watts - lo) * scale, 0.0), HISTOGRAM_BINS - 1.0))] += 1
    return counts


@njit(cache=True, nogil=True)
def _sides(power_w: Array, lo: float, hi: float, cut: float) -> tuple[int, float, float, float]:
    """Return how many readings lie below a cut, the means on both sides of it, and the sum of squares about these [W²]."""
    below, total_low, total_high, squares = 0, 0.0, 0.0, 0.0
    for watts in power_w:
        clipped = min(max(watts, lo), hi)
        below += clipped <= cut
        total_low += clipped if clipped <= cut else 0.0
        total_high += clipped if clipped > cut else 0.0
    low, high = total_low / max(below, 1), total_high / max(power_w.size - below, 1)
    for watts in power_w:
        clipped = min(max(watts, lo), hi)
        squares += (clipped - (low if clipped <= cut else high)) ** 2
    return below, low, high, squares


def _limit_w(level_w: float) -> float:
    return level_w + max(IDLE_MARGIN_W, IDLE_MARGIN_RATIO * level_w)


def _idle_limit_w(medians: Array, durations: Array, outer: npt.NDArray[np.bool_], peak_w: float) -> float:
    """Return the power up to which a low stretch is idle, from the quietest long stretch."""
    long = (durations >= QUIET_S) & (outer | (medians < IDLE_PEAK_RATIO * peak_w))
    return _limit_w(float(medians[long].min())) if long.any() else IDLE_PEAK_RATIO * peak_w


def split(
    seconds: Array | Stamps,
    power_w: Array,
    utilization_ratio: Array | None,
    *,
    idle_w: float | None = None,
    tick_s: float = 1.0,
) -> States:
    """Return the state of every reading.

    Parameters
    ----------
    seconds
        Time of the readings [s], increasing.
    power_w
        Readings [W], finite.
    utilization_ratio
        Utilisation, not-a-number where unknown; ``None`` where all of it is.
    idle_w
        Idle power, where it is known from elsewhere [W].
    tick_s
        Unit of the times, where it is not one second [s].

    Returns
    -------
    numpy.ndarray
        0 idle, 1 stall, 2 busy, 3 mixed: a low reading beside a dip, whose span covers both sides.

    Examples
    --------
    >>> import numpy as np
    >>> watts = np.repeat([60.0, 500.0, 220.0, 500.0], [100, 100, 4, 100]) + np.random.default_rng(0).normal(0, 3, 304)
    >>> states = split(np.arange(304.0), watts, np.full(304, np.nan))
    >>> [int((states == k).sum()) for k in (IDLE, STALL, BUSY)]
    [100, 4, 200]
    """
    n = power_w.size
    states = np.full(n, BUSY)
    known = None if utilization_ratio is None else np.isfinite(utilization_ratio)
    sample = _thinned(power_w)
    # Where utilisation says that there is work, low power is a lighter load or an edge, not a dip.
    working = None if utilization_ratio is None else utilization_ratio > STALL_UTILIZATION_RATIO
    cut = threshold_w(sample)
    if cut is None and working is not None and known is not None:
        cut = _dip_w(power_w, working & known, ~working & known)
    if cut is None:
        at_rest = idle_w is not None and ranks.median(sample) <= _limit_w(idle_w)
        states[:] = IDLE if at_rest or _unused(utilization_ratio, known) else BUSY
        return states
    low = power_w < cut
    first, end = trust.runs(low if working is None else low & ~working)
    keep = end - first >= STALL_READINGS
    first, end = first[keep], end[keep]
    bounds = list(zip(first.tolist(), end.tolist(), strict=True))
    medians = np.array([ranks.median(power_w[a:b]) for a, b in bounds])
    durations: Array = np.asarray(seconds[np.minimum(end, n - 1)] - seconds[first], dtype=np.float64) * tick_s
    outer = (first == 0) | (end == n)
    peak_w = ranks.quantile(sample, 0.98)
    limit_w = _limit_w(idle_w) if idle_w is not None else _idle_limit_w(medians, durations, outer, peak_w)
    for (a, b), median, lasts in zip(bounds, medians, durations, strict=True):
        if median <= limit_w:
            rest = np.flatnonzero(power_w[a:b] <= limit_w)
            states[a + rest[0] : a + rest[-1] + 1] = IDLE
        elif lasts <= STALL_MAX_S or (known is not None and known[a:b].all()):
            states[a:b] = STALL
    return _with_edges(states, low, power_w)


def _dip_w(power_w: Array, working: npt.NDArray[np.bool_], resting: npt.NDArray[np.bool_]) -> float | None:
    """Return the power below which utilisation's dips lie, where power alone is spread too far by its own phases."""
    if not working.any() or not resting.any():
        return None
    cut = LOWER_LEVEL_RATIO * ranks.median(power_w[working])
    first, end = trust.runs(resting & (power_w < cut))
    return cut if bool((end - first >= STALL_READINGS).any()) else None


def _unused(utilization_ratio: Array | None, known: npt.NDArray[np.bool_] | None) -> bool:
    if utilization_ratio is None or known is None or not known.any():
        return False
    return float(np.mean(utilization_ratio[known])) < UNUSED_UTILIZATION_RATIO


def _with_edges(states: States, low: npt.NDArray[np.bool_], power_w: Array) -> States:
    """Mark busy readings beside a stall as mixed that are lower than work is: their span covers both sides of its edge."""
    stall = states == STALL
    if not stall.any():
        return states
    beside = np.zeros(states.size, np.bool_)
    beside[1:] |= stall[:-1]
    beside[:-1] |= stall[1:]
    busy = states == BUSY
    if busy.any():
        low = low | (power_w < ranks.quantile(_thinned(power_w[busy]), EDGE_QUANTILE))
    states[beside & low & busy] = MIXED
    return states
