"""What stamps that were cut to a printed resolution leave open, and what their slips tell.

A sampler that runs free of the clock that stamps it gains or loses against the printed seconds. Now and then a second is
passed over, or printed twice: just then the sample lay at the edge of the second. Between such slips its place in the
second follows a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEPS_S = (1.0, 0.1, 0.01, 0.001)
"""Resolutions that stamps are printed with [s]."""

SCHEDULE_S = 5.0
"""From this period on, stamps that are all whole multiples of the period are a schedule: a meter that writes at every
full minute writes at the full minute, so nothing was cut off."""

FINE_SHARE = 0.02
"""Stamps finer than this share of the period need no repair: their rounding is far below any accuracy asked for."""

SLACK_SHARE = 0.25
"""A sampler counts as periodic when a straight line passes all stamps within this share of their resolution."""

JITTER_SHARE = 0.015
"""By how much samplers are late now and then, as a share of the resolution: some milliseconds at whole seconds."""

LEAST_STAMPS = 8
"""Fewest stamps for a line through them."""

GAP_STEPS = 2.5
"""A step longer than this many periods, and than two units more than one, is a gap over which samples are counted anew."""

Z95 = 1.959964


@dataclass(frozen=True)
class Times:
    """When samples were taken, as far as their stamps tell.

    Parameters
    ----------
    time_s
        Sample times [s].
    half_s
        Half width of what is open of all of them together [s].
    rounded_s
        By how much all are earlier if the stamps were rounded to the nearest rather than cut [s].
    rate
        Half width of what is open of the clock's rate.
    """

    time_s: Floats
    half_s: float
    rounded_s: float
    rate: float


def resolution_s(stamps_us: NDArray[np.int64]) -> float:
    """Return the coarsest resolution that all stamps are multiples of [s], 0 where they are finer than a millisecond."""
    return next((q for q in STEPS_S if stamps_us.size and not np.any(stamps_us % round(q * 1e6))), 0.0)


def plain(time: Floats, stamps_us: NDArray[np.int64], period_s: float) -> Times:
    """Return sample times where stamps are taken one by one, or lie on a line that needs no slips.

    Parameters
    ----------
    time
        Different stamps in order [s].
    stamps_us
        The same as Unix time [us].
    period_s
        Their usual step [s].

    Returns
    -------
    Times
    """
    step = resolution_s(stamps_us)
    if period_s >= SCHEDULE_S and not np.any(stamps_us % round(period_s * 1e6)):
        return Times(time, 0.0, 0.0, 0.0)
    if step <= FINE_SHARE * period_s or stamps_us.size < LEAST_STAMPS:
        return Times(time + step / 2, step / 2, 0.0, 0.0)
    if not np.any(np.diff(stamps_us) % round(period_s * 1e6)):
        # nothing tells where in its second a sample lay, nor whether it moved in it
        return Times(time, step, 0.0, step / max(float(np.ptp(time)), step))
    on_line = slipping(time, stamps_us)
    if on_line is not None:
        return on_line
    # not periodic: the cuts fall everywhere, their mean is half a step with the error of a mean of uniforms
    half = step / 2 / min(float(np.sqrt(stamps_us.size / 10)), 10.0)
    return Times(time + step / 2, half, step / 2, 0.0)


def slipping(time: Floats, stamps_us: NDArray[np.int64]) -> Times | None:
    """Return sample times of a sampler that runs free of the printed seconds, as its slips tell them.

    Parameters
    ----------
    time
        All stamps in order, repeated ones too [s].
    stamps_us
        The same as Unix time [us].

    Returns
    -------
    Times or None
        ``None`` where the stamps are fine, show no slip, or are not those of a free, regular sampler.

    Examples
    --------
    >>> true = 0.3 + 1.003 * np.arange(1000)
    >>> cut = np.floor(true)
    >>> found = slipping(cut, (cut * 1e6).astype(np.int64))
    >>> bool(np.abs(found.time_s - true).max() < 0.005)
    True
    """
    step = resolution_s(stamps_us)
    if stamps_us.size < LEAST_STAMPS or step == 0:
        return None
    index = _index(time, step)
    if index is None:
        return None
    taken, half, rate, slack = _line(time, index, step)
    if slack <= SLACK_SHARE * step:
        return Times(taken, half + slack, step / 2, rate)
    return _stepwise(time, index, step)


def _index(time: Floats, step: float) -> Floats | None:
    """Return the numbers of a free sampler's samples, those that a gap swallowed counted; nothing where none slipped."""
    moves = np.diff(time)
    period = _period(time, step)
    if step <= FINE_SHARE * period:
        return None
    steady = np.abs(moves - period) <= max(step, 0.5 * period) + 1e-9
    # where stamps step by the period itself, only a second left out or printed twice is a slip
    if not np.any(np.abs(moves[steady] - period) > 0.25 * step):
        return None
    count = np.where(steady, 1.0, np.maximum(np.rint(moves / period), 1.0))
    index = np.concatenate([[0.0], np.cumsum(count)])
    gaps = np.flatnonzero(moves > max(GAP_STEPS * period, period + 2 * step)) + 1
    return _recounted(time, index, gaps, step) if gaps.size else index


def _period(time: Floats, step: float) -> float:
    """Return the usual step from sample to sample [s], also where several share a stamp."""
    moves = np.diff(time)
    near = moves <= GAP_STEPS * max(float(np.median(moves)), step)
    return float(moves[near].mean())


def _recounted(time: Floats, index: Floats, gaps: NDArray[np.intp], step: float) -> Floats:
    """Count the samples in gaps by the line through the longest part without one."""
    edges = np.concatenate([[0], gaps, [time.size]])
    longest = int(np.argmax(np.diff(edges)))
    part = slice(edges[longest], edges[longest + 1])
    if part.stop - part.start < LEAST_STAMPS:
        return index
    taken, *_ = _line(time[part], index[part], step)
    slope = (taken[-1] - taken[0]) / (index[part][-1] - index[part][0])
    expected = index[part][0] + (time + step / 2 - taken[0]) / slope
    out = index.copy()
    for start, stop in pairwise(edges):
        out[start:stop] += np.rint(float(np.median(expected[start:stop] - index[start:stop])))
    return out


def _line(time: Floats, index: Floats, step: float) -> tuple[Floats, float, float, float]:
    """Return sample times on the line through all stamps, half widths of time [s] and rate, and the slack needed."""
    x = index - index.mean()
    slope = float(x @ time / (x @ x))
    centre, half, rates, slack = _lines_through(x, time - slope * x, step)
    taken = centre + (slope + (rates[0] + rates[1]) / 2) * x
    return taken, half, (rates[1] - rates[0]) / 2 / slope, slack


def _lines_through(x: Floats, low: Floats, step: float) -> tuple[float, float, tuple[float, float], float]:
    """Return centre and half width of the intercepts, the range of slopes, and the slack that was needed.

    Lines that need a little more slack than the best are as good: the best is the one along which a jittery sampler
    passes its only slip most slowly.
    """
    x, low = _extremes(x, low)
    slopes = np.linspace(-2, 2, 801) * step / max(np.ptp(x), 1.0)
    tilted = low[None, :] - slopes[:, None] * x[None, :]
    least, most = tilted.max(axis=1), tilted.min(axis=1) + step
    slack = max(0.0, float((least - most).min()) / 2) + 1e-9
    wide = slack + JITTER_SHARE * step
    fits = least - wide <= most + wide
    lo, hi = float((least - wide)[fits].min()), float((most + wide)[fits].max())
    inside = slopes[fits]
    return (lo + hi) / 2, (hi - lo) / 2, (float(inside[0]), float(inside[-1])), slack


def _extremes(x: Floats, low: Floats, bins: int = 512) -> tuple[Floats, Floats]:
    """Keep the largest and smallest value of each of many stretches: only they can bound a line."""
    if x.size <= 2 * bins:
        return x, low
    cut = np.array_split(np.arange(x.size), bins)
    keep = np.array([[c[0] + np.argmax(low[c]), c[0] + np.argmin(low[c])] for c in cut]).ravel()
    return x[keep], low[keep]


REGULAR = 0.3
"""Largest spread of the distances between slips, as a share of their mean, at which a loop that sleeps between samples
explains them; samples lost at random are apart by a share of 1."""

LEAST_SLIPS = 5
"""Fewest slips whose regularity can be told."""


def _stepwise(time: Floats, index: Floats, step: float) -> Times | None:
    """Return sample times between slips of a sampler whose pace wanders: a loop that sleeps after each sample.

    At a slip the sample lies at the edge of the printed second; from one to the next it moves through the second evenly.
    """
    over = np.rint((time - time[0] - (index - index[0]) * step) / step)
    at = np.flatnonzero(np.diff(over) != 0) + 1
    if at.size < LEAST_SLIPS or not (np.all(np.diff(over)[at - 1] == 1) or np.all(np.diff(over)[at - 1] == -1)):
        return None
    apart = np.diff(index[at])
    spread = float(np.std(apart, ddof=1) / np.mean(apart))
    longest = float(np.mean(apart)) * (1 + 3 * spread)
    if spread > REGULAR or max(index[at[0]] - index[0], index[-1] - index[at[-1]]) > longest:
        return None
    slipped = time[at] + (step if over[-1] < over[0] else 0.0)
    pace = float(np.diff(slipped).sum() / apart.sum())
    knots = np.concatenate([[index[0] - 1], index[at], [index[-1] + 1]])
    first = slipped[0] - pace * (index[at[0]] - index[0] + 1)
    last = slipped[-1] + pace * (index[-1] - index[at[-1]] + 1)
    taken = np.interp(index, knots, np.concatenate([[first], slipped, [last]]))
    half = Z95 * spread / 2 * step / float(np.sqrt(at.size))
    return Times(taken, half + step * 0.02, step / 2, half / max(float(np.ptp(time)), step))
