"""Sums over the steps between readings, each in one pass over the arrays."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TILE = 1 << 15
"""Stretches that are summed at a time: what is made of them on the way stays in the processor's cache."""


@njit(cache=True, nogil=True)
def of_lines(start_s: Floats, end_s: Floats, power_start_w: Floats, power_end_w: Floats) -> tuple[float, float, float]:
    """Return energy [J], length [s] and squared lengths [s²]; tile by tile, so that rounding does not pile up."""
    energy, covered, squared = 0.0, 0.0, 0.0
    for first in range(0, start_s.size, TILE):
        tile_j, tile_s, tile_s2 = 0.0, 0.0, 0.0
        for i in range(first, min(first + TILE, start_s.size)):
            length = end_s[i] - start_s[i]
            tile_j += (power_start_w[i] + power_end_w[i]) / 2 * length
            tile_s += length
            tile_s2 += length * length
        energy, covered, squared = energy + tile_j, covered + tile_s, squared + tile_s2
    return energy, covered, squared


@njit(cache=True, nogil=True)
def jump_variances(stamp_s: Floats, power_w: Floats, seen_s: float, variance: Floats) -> tuple[float, float]:
    """Write the variance of the energy of each line between readings [J²]; return the shortest and longest of them [s].

    Half of the squared jump is the variance of a signal that forgets itself within a step; for one that wanders or
    jumps once it is a sixth of that, so this errs on the wide side.
    """
    shortest, longest = np.inf, -np.inf
    for i in range(variance.size):
        step, jump = stamp_s[i + 1] - stamp_s[i], power_w[i + 1] - power_w[i]
        shortest, longest = min(shortest, step), max(longest, step)
        variance[i] = 0.5 * jump * jump * step * max(step - seen_s, 0.0)
    return shortest, longest


@njit(cache=True, nogil=True)
def squared_jumps(power_w: Floats) -> float:
    """Return the sum of the squared differences of readings that follow each other [W²]; tile by tile as the energy.

    Examples
    --------
    >>> squared_jumps(np.array([1.0, 3.0, 2.0]))
    5.0
    """
    total = 0.0
    for first in range(0, power_w.size - 1, TILE):
        tile = 0.0
        for i in range(first, min(first + TILE, power_w.size - 1)):
            jump = power_w[i + 1] - power_w[i]
            tile += jump * jump
        total += tile
    return total


@njit(cache=True, nogil=True)
def step_counts(stamp_s: Floats, near_s: float, limit_s: float) -> tuple[int, int]:
    """Return how many stamps lie behind the one before, and how many of these steps are over one length up to another.

    Examples
    --------
    >>> step_counts(np.array([0.0, 1, 1, 3, 9]), 1.5, 3.0)
    (3, 1)
    """
    ahead, bridged = 0, 0
    for i in range(stamp_s.size - 1):
        step = stamp_s[i + 1] - stamp_s[i]
        ahead += step > 0
        bridged += near_s < step <= limit_s
    return ahead, bridged
