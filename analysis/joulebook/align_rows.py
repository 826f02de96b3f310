"""Which rows of a long log tell its clock: the liveliest stretch, and few rows near changes all over the log."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulebook.align_signal import COUNTER, Floats, Signal

SEARCH_S = 4 * 3600.0
"""Length of the stretch in which the shift is first looked for [s]: at 100 ppm a clock moves 1.4 s in it."""

SEARCH_SAMPLES = 300
"""Least number of slow samples in that stretch."""

MOST_ROWS = 24_000
"""Rows of the slow log that a fit rests on: at 1 Hz six hours of changes, which tell a clock to a few milliseconds,
far below the error of the model itself."""

BLOCK = 128
"""Rows that are kept or left out together: long against the few rows over which residuals hang together."""

SPREAD = 32
"""Parts of the log that each keep rows of their own, so that drift is told by all of it."""


def liveliest(slow: Signal) -> Signal:
    """Return the stretch with the largest changes that is long enough to find the shift in.

    Parameters
    ----------
    slow
        The slow log.

    Returns
    -------
    Signal
    """
    t = slow.time_s
    n = max(int(SEARCH_S / slow.period_s), SEARCH_SAMPLES)
    if t.size <= 1.5 * n:
        return slow
    starts = np.arange(0, t.size - n + 1, max(1, n // 4))
    value = np.diff(slow.value, prepend=slow.value[0])
    moved = np.concatenate([[0.0], np.cumsum((value - value.mean()) ** 2 if slow.kind == COUNTER else value**2)])
    best = int(starts[np.argmax(moved[starts + n] - moved[starts])])
    return slow.part(slice(best, best + n))


def thin(slow: Signal, *, most: int = MOST_ROWS) -> Signal:
    """Keep whole blocks of rows where the log changes most, half of them spread evenly over the log.

    A flat row says nothing of the clock, and of a week of edges some hours are enough. A counter's rows are all kept:
    its differences across a hole would hide what they tell.

    Parameters
    ----------
    slow
        The slow log.
    most
        Rows to keep.

    Returns
    -------
    Signal

    Examples
    --------
    >>> t = np.arange(100_000.0)
    >>> len(thin(Signal(t, np.sin(t), "mean", 1.0, None, 0)).time_s) <= MOST_ROWS
    True
    """
    n = slow.time_s.size // BLOCK
    budget = most // BLOCK
    if slow.kind == COUNTER or slow.time_s.size <= most:
        return slow
    change = _change(slow.value)[: n * BLOCK].reshape(n, BLOCK).sum(axis=1)
    keep = np.zeros(n, dtype=bool)
    for part in np.array_split(np.arange(n), SPREAD):
        keep[part[np.argsort(-change[part], kind="stable")[: budget // 2 // SPREAD]]] = True
    rest = np.flatnonzero(~keep)
    keep[rest[np.argsort(-change[rest], kind="stable")[: budget - int(keep.sum())]]] = True
    rows: NDArray[np.bool_] = np.zeros(slow.time_s.size, dtype=bool)
    rows[: n * BLOCK] = np.repeat(keep, BLOCK)
    return slow.part(rows)


def _change(value: Floats) -> Floats:
    """Return squared changes from row to row, none of them larger than the largest hundred: a glitch is one change."""
    square = np.diff(value, prepend=value[0]) ** 2
    k = min(100, square.size)
    return np.asarray(np.minimum(square, np.partition(square, -k)[-k]))
