"""Medians of a moving window at the pace of the processor: logs have ten million readings.

Neighbouring windows are sorted side by side, so that the compiler compares many pairs at once; keeping one window
sorted while it moves takes fewer comparisons and ten times as long.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

LANES: Final = 128
"""Windows that are handled together: their values stay in the fastest cache."""


def _own(values: Array) -> Array:
    """Return the values as one kind of array: a second one, such as a view that is read only, is compiled again."""
    return np.require(values, np.float64, ["C", "W"])


@njit(cache=True, nogil=True, fastmath=True)
def _order(low: Any, high: Any) -> None:
    """Put the smaller of each pair into ``low`` and the larger into ``high``."""
    for i in range(low.size):
        a, b = low[i], high[i]
        low[i] = min(a, b)
        high[i] = max(a, b)


@njit(cache=True, nogil=True)
def _extremes_out(rows: Any, size: int) -> None:
    """Move the least of each column to the first row and the greatest to the last one."""
    half = size // 2
    for i in range(half):
        _order(rows[i], rows[size - 1 - i])
    for i in range(1, (size + 1) // 2):
        _order(rows[0], rows[i])
    for i in range(half, size - 1):
        _order(rows[i], rows[size - 1])


@njit(cache=True, nogil=True)
def _copy(source: Any, first: int, lanes: int, target: Any) -> None:
    for i in range(lanes):
        target[i] = source[first + i]


@njit(cache=True, nogil=True)
def _inner_medians(values: Array, window: int, out: Array) -> None:
    """Write the medians of all whole windows: what is least or greatest of more than half of one is not its median."""
    half = window // 2
    rows = np.zeros((half + 2, LANES))
    count = values.size - window + 1
    for first in range(0, count, LANES):
        lanes = min(LANES, count - first)
        size = half + 2
        for k in range(size):
            _copy(values, first + k, lanes, rows[k])
        for k in range(size, window):
            _extremes_out(rows, size)
            # the next value takes the place of the least; the greatest is cut off at the end
            _copy(values, first + k, lanes, rows[0])
            size -= 1
        _extremes_out(rows, 3)
        for i in range(lanes):
            out[half + first + i] = rows[1, i]


@njit(cache=True, nogil=True)
def _one(values: Array, first: int, end: int, part: Array) -> float:
    """Return the median of values from first to end by selection; ``part`` is room to work in."""
    n = end - first
    _copy(values, first, n, part)
    k = n // 2
    lo, hi = 0, n - 1
    while lo < hi:
        pivot = part[(lo + hi) // 2]
        i, j = lo, hi
        while i <= j:
            while part[i] < pivot:
                i += 1
            while part[j] > pivot:
                j -= 1
            if i <= j:
                part[i], part[j] = part[j], part[i]
                i += 1
                j -= 1
        if k <= j:
            hi = j
        elif k >= i:
            lo = i
        else:
            break
    if n % 2:
        return float(part[k])
    below = part[0]
    for i in range(1, k):
        below = max(below, part[i])
    return float((below + part[k]) / 2.0)


@njit(cache=True, nogil=True)
def _at(values: Array, places: Indices, window: int) -> Array:
    out = np.empty(places.size)
    part = np.empty(window)
    half = window // 2
    for k in range(places.size):
        out[k] = _one(values, max(places[k] - half, 0), min(places[k] + half + 1, values.size), part)
    return out


@njit(cache=True, nogil=True, fastmath=True)
def _count(values: Array, first: int, lanes: int, limits: Any, counts: Any) -> None:
    """Count, for windows side by side, one more value below the upper and above the lower limit of each."""
    for i in range(lanes):
        value = values[first + i]
        counts[0, i] += 1.0 if value <= limits[0, i] else 0.0
        counts[1, i] += 1.0 if value >= limits[1, i] else 0.0


@njit(cache=True, nogil=True)
def _far(values: Array, window: int, distance: float, ratio: float, out: Any) -> None:
    half = window // 2
    limits, counts = np.empty((2, LANES)), np.empty((2, LANES))
    count = values.size - window + 1
    for first in range(0, count, LANES):
        lanes = min(LANES, count - first)
        for i in range(lanes):
            value = values[first + half + i]
            limits[0, i], limits[1, i] = (value + distance) / (1.0 - ratio), (value - distance) / (1.0 + ratio)
        counts[:] = 0.0
        for k in range(window):
            _count(values, first + k, lanes, limits, counts)
        for i in range(lanes):
            out[first + half + i] = counts[0, i] <= half or counts[1, i] <= half


def far_from_median(values: Array, window: int, *, distance: float = 0.0, ratio: float = 0.0) -> Indices:
    """Return where values are farther from the median of their window than allowed, by counting, without medians.

    Parameters
    ----------
    values
        Finite values in order.
    window
        Length of the windows, odd.
    distance
        What is allowed, in the unit of the values.
    ratio
        What is allowed as a share of the median, below 1; for positive values only.

    Returns
    -------
    numpy.ndarray
        Indices in order; near the ends, where windows are not whole, all of them.

    Examples
    --------
    >>> far_from_median(np.array([1.0, 1.0, 9.0, 1.0, 1.0, 2.0, 1.0]), 3, distance=2.0).tolist()
    [0, 2, 6]
    """
    out = np.ones(values.size, np.bool_)
    if values.size >= window:
        _far(_own(values), window, distance, ratio, out)
    return np.flatnonzero(out)


def median(values: Array, window: int) -> Array:
    """Return the median of the window centred on each value; at the ends, of what there is of it.

    Parameters
    ----------
    values
        Finite values in order.
    window
        Length of the window, odd and at least 3.

    Returns
    -------
    numpy.ndarray
        As many medians as values, in their unit.

    Examples
    --------
    >>> median(np.array([1.0, 9.0, 2.0, 3.0, 3.0]), 3).tolist()
    [5.0, 2.0, 3.0, 3.0, 3.0]
    """
    values = _own(values)
    half = window // 2
    out = np.empty(values.size)
    if values.size >= window:
        _inner_medians(values, window, out)
    n = values.size
    ends = np.arange(n) if n < window else np.concatenate((np.arange(half), np.arange(n - half, n)))
    out[ends] = _at(values, ends, window)
    return out


def median_at(values: Array, places: Indices, window: int) -> Array:
    """Return the medians of the windows centred on some of the values only.

    Parameters
    ----------
    values
        Finite values in order.
    places
        Indices of the windows' centres.
    window
        Length of the windows, odd.

    Returns
    -------
    numpy.ndarray
        One median a place.

    Examples
    --------
    >>> median_at(np.array([1.0, 9.0, 2.0, 3.0, 3.0]), np.array([1, 4]), 3).tolist()
    [2.0, 3.0]
    """
    return np.asarray(_at(_own(values), places.astype(np.int64), window))
