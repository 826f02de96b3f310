"""Centre and scale of values, robust against the odd ones; what a sensor can tell apart."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from joulebook import ranks
from joulebook.step_sums import TILE

Array = npt.NDArray[np.float64]

MAD_TO_SD: Final = 1.482602218505602
"""Standard deviation of a normal sample over its median absolute deviation."""

TRIMMED_RATIO: Final = 0.95
"""Share of the differences, smallest first, that make the noise scale."""

TRIMMED_VARIANCE: Final = 0.7588
"""Variance of a standard normal sample of which the 5 % farthest from 0 are cut."""


def finite(values: npt.ArrayLike) -> Array:
    """Return the finite values as a float array, in order.

    Parameters
    ----------
    values
        Numbers; null and not-a-number are left out.

    Returns
    -------
    numpy.ndarray
        One dimension, float64; the values themselves, not a copy, where all of them are finite and in a row.

    Examples
    --------
    >>> finite([1.0, None, float("nan"), 2.0]).tolist()
    [1.0, 2.0]
    """
    array = np.asarray(values, dtype=np.float64).ravel()
    known = np.isfinite(array)
    return np.ascontiguousarray(array if known.all() else array[known])


def median(values: npt.ArrayLike) -> float:
    """Return the median of the finite values, not-a-number where there are none.

    Examples
    --------
    >>> median([3.0, 1.0, 100.0])
    3.0
    """
    array = finite(values)
    return ranks.median(array) if array.size else math.nan


def mad(values: npt.ArrayLike) -> float:
    """Return the scaled median absolute deviation, an estimate of the standard deviation in the unit of the values.

    Examples
    --------
    >>> round(mad([1.0, 2.0, 3.0, 4.0, 500.0]), 3)
    1.483
    """
    array = finite(values)
    return MAD_TO_SD * ranks.median(np.abs(array - ranks.median(array))) if array.size else math.nan


def difference_sd(values: npt.ArrayLike) -> float:
    """Return the noise scale from first differences, blind to level shifts, in the unit of the values.

    Examples
    --------
    >>> difference_sd([1.0, 1.0, 1.0, 9.0, 9.0, 9.0])
    0.0
    """
    array = finite(values)
    if array.size < 2:
        return 0.0
    moves = np.diff(array)
    steps = np.abs(moves)
    # Ripple moves few readings far, which the median does not see; a level shift moves fewer still.
    count = max(int(TRIMMED_RATIO * steps.size), 1)
    kept = np.partition(steps, count - 1)[:count]
    return max(mad(moves), math.sqrt(dot(kept, kept) / count / TRIMMED_VARIANCE)) / math.sqrt(2.0)


def dot(one: Array, other: Array) -> float:
    """Return the sum of products of two series; the linear algebra library would wake its threads for no gain.

    Examples
    --------
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(np.einsum("i,i->", one, other))


def resolution(values: npt.ArrayLike) -> float:
    """Return the smallest step between distinct values: what the sensor can tell apart, in the unit of the values.

    Parameters
    ----------
    values
        Numbers.

    Returns
    -------
    float
        0 where there are fewer than two distinct values.

    Examples
    --------
    >>> resolution([98.0, 112.0, 98.0])
    14.0
    """
    steps = np.diff(np.sort(np.round(finite(values), 9)))
    return float(steps.min(where=steps > 0.0, initial=np.inf)) if steps.any() else 0.0


def standard_deviation(values: Array) -> float:
    """Return the standard deviation of many values, tile by tile.

    Examples
    --------
    >>> standard_deviation(np.array([1.0, 3.0]))
    1.0
    """
    mean = float(values.mean())
    tiles = (values[at : at + TILE] - mean for at in range(0, values.size, TILE))
    return math.sqrt(math.fsum(dot(tile, tile) for tile in tiles) / values.size)
