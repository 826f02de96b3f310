"""The walk over one energy counter with the last good reading in hand: which step is what."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

CEILING_W = 1e6
"""A counter that rises faster than this [W] has jumped: no single meter of a machine hall's nodes or racks sees 1 MW.
Used where the highest power is not given."""

LIKELY_TOP_W = 500.0
"""The largest processor sockets draw this much [W]. Where a counter of known range says no highest power, a step in which
a device of this power would have gone once more through the range may hide that."""

NEAR_ZERO_RATIO = 0.05
"""Where the highest power is not known, a counter that falls below this share of what it read before has been reset."""

RATE_SLACK = 1.001
"""Stamps are printed to the millisecond: a rate may seem this much higher than it was at steps of a second."""

KINDS = ("first", "difference", "wrap", "reset", "glitch", "unknown", "duplicate")
_FIRST, _DIFFERENCE, _WRAP, _RESET, _GLITCH, _UNKNOWN, _DUPLICATE = range(7)


class Limits(NamedTuple):
    """What one counter can do: range [J] (NaN = unknown), highest power [W], step [J], and what is a gap [s]."""

    range_j: float
    top_w: float
    known_top: bool
    quantum_j: float
    gap_s: float


@njit(cache=True, nogil=True)
def _hides_wrap(delta_j: float, dt_s: float, limits: Limits) -> bool:
    """Return whether once more through the range is as possible as the energy that shows; never where it is unknown."""
    likely_w = limits.top_w if limits.known_top else LIKELY_TOP_W
    return delta_j + limits.range_j <= likely_w * dt_s


@njit(cache=True, nogil=True)
def _fits(delta_j: float, dt_s: float, limits: Limits) -> bool:
    return 0.0 <= delta_j <= limits.top_w * dt_s * RATE_SLACK + limits.quantum_j


@njit(cache=True, nogil=True)
def _drop(before_j: float, now_j: float, dt_s: float, limits: Limits) -> int:
    """Return the kind of a step down."""
    most_j = limits.top_w * dt_s * RATE_SLACK
    near_zero = now_j <= most_j if limits.known_top else now_j <= NEAR_ZERO_RATIO * before_j
    if not np.isnan(limits.range_j):
        # Past half of the range a wrap, two wraps and a reset all look alike.
        if limits.known_top and most_j >= limits.range_j / 2:
            return _UNKNOWN
        wrapped_j = now_j + limits.range_j - before_j
        if not limits.known_top and _hides_wrap(wrapped_j, dt_s, limits):
            return _UNKNOWN
        if 0 <= wrapped_j <= (most_j + limits.quantum_j if limits.known_top else limits.range_j / 2):
            # A machine that was away may have been restarted: then the counter began again and did not wrap.
            return _UNKNOWN if near_zero and dt_s > limits.gap_s else _WRAP
    return _RESET if near_zero else _UNKNOWN


@njit(cache=True, nogil=True)
def _step(before_j: float, now_j: float, dt_s: float, limits: Limits) -> tuple[int, float]:
    """Return kind and energy of the step between two good readings."""
    delta_j = now_j - before_j
    if -limits.quantum_j <= delta_j < 0:
        return _DUPLICATE, np.nan  # the last digit trembles: no news, the next step counts from the reading before
    if _fits(delta_j, dt_s, limits):
        return (_UNKNOWN, np.nan) if _hides_wrap(delta_j, dt_s, limits) else (_DIFFERENCE, delta_j)
    if delta_j > 0:
        return _GLITCH, np.nan
    kind = _drop(before_j, now_j, dt_s, limits)
    return kind, (delta_j + limits.range_j if kind == _WRAP else np.nan)


@njit(cache=True, nogil=True)
def walk(
    stamp_s: NDArray[np.float64], counter_j: NDArray[np.float64], limits: Limits
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return kind, energy [J] (NaN where unknown) and length [s] of each step of one device's counter.

    Parameters
    ----------
    stamp_s, counter_j
        Stamps [s] in order and counter [J], both finite.
    limits
        What the counter can do.

    Examples
    --------
    >>> limits = Limits(range_j=1000.0, top_w=200.0, known_top=True, quantum_j=1.0, gap_s=3.0)
    >>> kind, energy, _ = walk(np.arange(3.0), np.array([900.0, 980.0, 60.0]), limits)
    >>> [KINDS[k] for k in kind], energy
    (['first', 'difference', 'wrap'], array([nan, 80., 80.]))
    """
    n = stamp_s.size
    kind = np.zeros(n, np.int64)
    energy_j = np.full(n, np.nan)
    length_s = np.full(n, np.nan)
    good = 0
    for i in range(1, n):
        dt_s = stamp_s[i] - stamp_s[good]
        if dt_s <= 0:
            kind[i] = _DUPLICATE
            continue
        kind[i], energy_j[i] = _step(counter_j[good], counter_j[i], dt_s, limits)
        if kind[i] == _DUPLICATE:
            continue
        length_s[i] = dt_s
        goes_on = i + 1 < n and _fits(counter_j[i + 1] - counter_j[good], stamp_s[i + 1] - stamp_s[good], limits)
        forward = _fits(counter_j[i] - counter_j[good], dt_s, limits)
        if kind[i] != _DIFFERENCE and not forward and goes_on and counter_j[i + 1] != counter_j[i]:
            # The next reading goes on from the one before: this one alone is wrong.
            kind[i], energy_j[i] = _GLITCH, np.nan
            continue
        good = i
    return kind, energy_j, length_s
