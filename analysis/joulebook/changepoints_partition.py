"""The exact least-squares partition of a series: functional pruning (FPOP), compiled."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[np.float64]


Indices = npt.NDArray[np.int64]


LEFT, RIGHT, COUNT, CENTER, LOW, START = range(6)
"""Columns of a piece of the cost function: the levels it holds for, its parabola, and where its segment starts."""


MAX_PIECES: Final = 4096
"""Pieces of the cost function that are kept; some ten are alive at a time, thousands only on adversarial input."""


@njit(cache=True, nogil=True)
def _absorb(pieces: Array, alive: int, value: float) -> tuple[float, float]:
    """Add the squared distance to ``value`` to every piece; return the least cost and where its segment starts."""
    best = np.inf
    best_start = 0.0
    for i in range(alive):
        deviation = value - pieces[i, CENTER]
        pieces[i, LOW] += pieces[i, COUNT] / (pieces[i, COUNT] + 1.0) * deviation * deviation
        pieces[i, COUNT] += 1.0
        pieces[i, CENTER] += deviation / pieces[i, COUNT]
        level = min(max(pieces[i, CENTER], pieces[i, LEFT]), pieces[i, RIGHT])
        cost = pieces[i, LOW] + pieces[i, COUNT] * (level - pieces[i, CENTER]) ** 2
        if cost < best:
            best = cost
            best_start = pieces[i, START]
    return best, best_start


@njit(cache=True, nogil=True)
def _append_new(pieces: Array, kept: int, left: float, right: float, ceiling: float, start: int) -> int:
    """Append a new segment on [left, right], joined to the piece before it where that is new as well."""
    if right <= left:
        return kept
    if kept > 0 and pieces[kept - 1, START] == start:
        pieces[kept - 1, RIGHT] = right
        return kept
    pieces[kept, LEFT], pieces[kept, RIGHT] = left, right
    pieces[kept, COUNT], pieces[kept, CENTER], pieces[kept, LOW], pieces[kept, START] = 0.0, 0.0, ceiling, start
    return kept + 1


@njit(cache=True, nogil=True)
def _cap(pieces: Array, alive: int, capped: Array, ceiling: float, start: int) -> int:
    """Write to ``capped`` the pieces where they cost less than ``ceiling``, new segments elsewhere; return how many."""
    kept = min(alive, 0)  # no literal: what is called with one is compiled a second time
    for i in range(alive):
        if kept > MAX_PIECES - 4:
            break
        left, right = pieces[i, LEFT], pieces[i, RIGHT]
        room = ceiling - pieces[i, LOW]
        lo, hi = left, right
        if pieces[i, COUNT] * max(pieces[i, CENTER] - left, right - pieces[i, CENTER]) ** 2 > room:
            reach = math.sqrt(room / pieces[i, COUNT]) if room > 0.0 else 0.0
            lo, hi = max(pieces[i, CENTER] - reach, left), min(pieces[i, CENTER] + reach, right)
        if room < 0.0 or lo >= hi:
            kept = _append_new(capped, kept, left, right, ceiling, start)
            continue
        kept = _append_new(capped, kept, left, lo, ceiling, start)
        # Number by number: a row copied as a whole takes half as long again.
        capped[kept, LEFT], capped[kept, RIGHT], capped[kept, COUNT] = lo, hi, pieces[i, COUNT]
        capped[kept, CENTER], capped[kept, LOW], capped[kept, START] = (
            pieces[i, CENTER],
            pieces[i, LOW],
            pieces[i, START],
        )
        kept = _append_new(capped, kept + 1, hi, right, ceiling, start)
    return kept


@njit(cache=True, nogil=True)
def optimal(values: Array, penalty: float) -> Indices:
    """Return the starts of the cheapest segments for squared error plus ``penalty`` a change (FPOP).

    The cost of ending at ``t`` with level mu is piecewise ``count * (mu - center)**2 + low``; where a piece costs more
    than the best cost so far plus the penalty, a new segment replaces it.
    """
    n = values.size
    last_start = np.zeros(n, np.int64)
    pieces = np.zeros((MAX_PIECES, 6))
    capped = np.zeros((MAX_PIECES, 6))
    pieces[0, LEFT], pieces[0, RIGHT] = values.min(), values.max()
    alive = min(n, 1)  # no literal: what is called with one is compiled a second time
    for t in range(n):
        best, best_start = _absorb(pieces, alive, values[t])
        last_start[t] = int(best_start)
        alive = _cap(pieces, alive, capped, best + penalty, t + 1)
        pieces, capped = capped, pieces
    found = np.empty(n, np.int64)
    m = 0
    t = n - 1
    while t >= 0:
        found[m] = last_start[t]
        t = last_start[t] - 1
        m += 1
    return found[:m][::-1].copy()
