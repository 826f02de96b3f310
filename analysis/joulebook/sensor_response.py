"""What a first-order sensor's response to each label of a time line adds up to, at any times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from joulebook.phase_timeline import Floats, Timeline

MEMORY_LAGS = 30.0
"""A first-order sensor has forgotten what is so many time constants past [1]."""


def cumulated(line: Timeline, times_s: Floats, *, lag_s: float = 0.0) -> Floats:
    """Return the integral of the response to each label: differences over a window are its share of that window.

    Parameters
    ----------
    line
        Stretches.
    times_s
        Times [s] after the start, in rows that increase. Outside of the line its first or last label holds.
    lag_s
        Time constant of the sensor [s]; 0 = it follows at once.

    Returns
    -------
    ndarray
        Shape of ``times_s``, and one column a label [s], less a constant.

    Examples
    --------
    >>> line = Timeline(np.array([0.0, 2.0, 3.0]), np.array([0, 1]), ("other", "a"))
    >>> cumulated(line, np.array([[1.0, 2.5]])).tolist()
    [[[1.0, 0.0], [2.0, 0.5]]]
    """
    # what is long past has no part in it, what comes later neither
    edges = np.array([times_s.min() - MEMORY_LAGS * lag_s, times_s.max()])
    first, last = np.clip(np.searchsorted(line.breaks_s, edges, side="right") - 1, 0, len(line.label) - 1)
    breaks, label = line.breaks_s[first : last + 1], line.label[first : last + 1]
    passed, stored = _states(breaks, label, len(line.names), lag_s)
    out: Floats = _at(breaks, label, passed, stored, np.ascontiguousarray(times_s), lag_s)
    return out


@njit(cache=True)
def _states(begins: Any, label: Any, width: int, lag: float) -> Any:
    """Return, at the beginning of each stretch, the time with each label and how far the sensor has come to each."""
    n = len(label)
    passed, stored = np.zeros((n, width)), np.zeros((n, width))
    stored[0, label[0]] = 1.0
    for i in range(1, n):
        step, k = begins[i] - begins[i - 1], label[i - 1]
        fade = np.exp(-step / lag) if lag > 0 else 0.0
        for m in range(width):
            passed[i, m] = passed[i - 1, m]
            stored[i, m] = stored[i - 1, m] * fade
        passed[i, k] += step
        stored[i, k] += 1.0 - fade
    return passed, stored


@njit(cache=True)
def _at(begins: Any, label: Any, passed: Any, stored: Any, times: Any, lag: float) -> Any:
    """Return the integral of the response by times: that of its input less what is still stored."""
    rows, n = times.shape
    width = passed.shape[1]
    out = np.empty((rows, n, width))
    for r in range(rows):
        i = 0
        for j in range(n):
            while i + 1 < len(label) and times[r, j] >= begins[i + 1]:
                i += 1
            step, k = times[r, j] - begins[i], label[i]
            fade = np.exp(-max(step, 0.0) / lag) if lag > 0 else 0.0
            for m in range(width):
                out[r, j, m] = passed[i, m] - lag * stored[i, m] * fade
            out[r, j, k] += step - lag * (1.0 - fade)
    return out
