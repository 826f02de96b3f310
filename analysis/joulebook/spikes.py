"""Readings that repeat one value too long, or stand alone far from their surroundings; masks over long plain arrays."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

from joulebook import rolling, stats

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

CENTER_READINGS: Final = 11
"""Window whose median a reading is held against."""

SCALE_READINGS: Final = 61
"""Window over which the usual distance from that median is taken."""

SPARSE: Final = 4
"""Medians are taken one by one where less than this part of a block is needed: each alone costs four times as much."""

BLOCK: Final = 1 << 18
"""Readings that are handled at a time: memory that fits the cache is not asked for again and again."""


def excursions(watts: Array, *, scales: float, floor_ratio: float) -> npt.NDArray[np.int8]:
    """Return on which side of its surroundings each reading lies, where that is far.

    Parameters
    ----------
    watts
        Readings above zero in order [W].
    scales
        Distance that is far [robust standard deviations of the readings around].
    floor_ratio
        Least such deviation, as a share of the level.

    Returns
    -------
    numpy.ndarray
        1 far above, -1 far below, else 0.

    Examples
    --------
    >>> excursions(np.array([100.0] * 6 + [300.0] + [100.0] * 6), scales=8.0, floor_ratio=0.01).tolist()
    [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    """
    out = np.zeros(watts.size, np.int8)
    margin = CENTER_READINGS // 2 + SCALE_READINGS // 2
    for first in range(0, watts.size, BLOCK):
        end = min(first + BLOCK, watts.size)
        lo, hi = max(first - margin, 0), min(end + margin, watts.size)
        block = watts[lo:hi]
        # Only what is far by the least scale needs to be held against the scale around it.
        far = rolling.far_from_median(block, CENTER_READINGS, ratio=scales * floor_ratio)
        far = far[(far >= first - lo) & (far < end - lo)]
        center, distance = _surroundings(block, far)
        scale = np.maximum(
            stats.MAD_TO_SD * rolling.median_at(distance, far, SCALE_READINGS), floor_ratio * center[far]
        )
        far = far[distance[far] > scales * scale]
        out[far + lo] = np.sign(block[far] - center[far])
    return out


def _surroundings(block: Array, places: Indices) -> tuple[Array, Array]:
    """Return the medians around each reading and the distances from them, at least in the surroundings of places."""
    if places.size * SCALE_READINGS * SPARSE > block.size:
        center = rolling.median(block, CENTER_READINGS)
        return center, np.abs(block - center)
    around = places[:, None] + np.arange(-(SCALE_READINGS // 2), SCALE_READINGS // 2 + 1)
    needed = np.unique(around[(around >= 0) & (around < block.size)])
    center = np.zeros(block.size)
    center[needed] = rolling.median_at(block, needed, CENTER_READINGS)
    return center, np.abs(block - center)


@njit(cache=True, nogil=True)
def _repeats(watts: Array, least: int) -> tuple[Indices, Indices, int, int]:
    starts = np.empty(watts.size // least + 1, np.int64)
    ends = np.empty(watts.size // least + 1, np.int64)
    long, short, readings, first = 0, 0, 0, 0
    for i in range(1, watts.size + 1):
        if i < watts.size and watts[i] == watts[i - 1]:
            continue
        if i - first >= least:
            starts[long], ends[long] = first, i
            long += 1
        else:
            short += 1
            readings += i - first
        first = i
    return starts[:long].copy(), ends[:long].copy(), short, readings


def repeats(watts: Array, *, least: int) -> tuple[Indices, Indices, float]:
    """Return the stretches of equal readings, and how often else a reading equals the one before.

    Parameters
    ----------
    watts
        Finite readings in order [W].
    least
        Readings from which a stretch counts.

    Returns
    -------
    numpy.ndarray, numpy.ndarray, float
        First index and end of each stretch, and the chance of a tie outside of them by Laplace's rule: a log that
        never repeats a value says little when it is short.

    Examples
    --------
    >>> first, end, tie = repeats(np.array([1.0, 2.0, 2.0, 2.0, 3.0]), least=3)
    >>> first.tolist(), end.tolist(), tie
    ([1], [4], 0.25)
    """
    first, end, short, readings = _repeats(np.require(watts, np.float64, ["C", "W"]), least)
    return first, end, (readings - short + 1.0) / (readings + 2.0)
