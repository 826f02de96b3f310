"""Scale of a series from the distances of its pairs."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

from joulebook import stats

Array = npt.NDArray[np.float64]

TO_SD: Final = 2.2219
"""Standard deviation of a normal sample over the first quartile of its pair distances (Rousseeuw and Croux 1993)."""

LARGEST_SAMPLE: Final = 2000
"""Values that the quadratic Qn looks at; a longer series is thinned evenly."""


def scale(values: npt.ArrayLike) -> float:
    """Return the Qn scale of a series, robust to half of the values being wrong and without a centre.

    Parameters
    ----------
    values
        Numbers; above 2000 an evenly spaced subset is used.

    Returns
    -------
    float
        Estimate of the standard deviation, in the unit of the values; 0 for fewer than two.

    References
    ----------
    Rousseeuw, Croux, J. Am. Stat. Assoc. 88 (1993), doi:10.1080/01621459.1993.10476408.

    Examples
    --------
    >>> 0.5 < scale([1.0, 2.0, 3.0, 2.0, 1.0, 3.0, 900.0]) < 3.0
    True
    """
    array = stats.finite(values)
    if array.size > LARGEST_SAMPLE:
        array = array[np.linspace(0, array.size - 1, LARGEST_SAMPLE).astype(np.int64)]
    n = array.size
    if n < 2:
        return 0.0
    half = n // 2 + 1
    small_sample = n / (n + 1.4) if n % 2 else n / (n + 3.8)
    return TO_SD * small_sample * float(_pair_distance(np.sort(array), half * (half - 1) // 2))


@njit(cache=True, nogil=True)
def _pair_distance(ordered: Array, rank: int) -> float:
    """Return the pair distance of a rank, from 1, by halving the range that it lies in; no pair is written down."""
    below, reached = -1.0, ordered[-1] - ordered[0]  # fewer pairs than the rank are this near, and at least as many
    middle = reached / 2.0
    while below < middle < reached:
        count, farthest, j = 0, below, 0
        for i in range(ordered.size):
            while ordered[i] - ordered[j] > middle:
                j += 1
            if j < i:
                count += i - j
                farthest = max(farthest, ordered[i] - ordered[j])
        if count < rank:
            below = middle
        else:
            reached = farthest
        middle = below + (reached - below) / 2.0
    return float(reached)
