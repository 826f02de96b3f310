"""Medians and quantiles of long series: a selection of the one or two values that matter.

The same numbers as of numpy's own, which asks for several ranks at once, to find missing values too, and takes five
times as long for it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]


def median(values: Numbers) -> float:
    """Return the median.

    Parameters
    ----------
    values
        At least one finite number, in any order.

    Examples
    --------
    >>> median(np.array([3.0, 1.0, 100.0])), median(np.array([4, 1]))
    (3.0, 2.5)
    """
    half = values.size // 2
    part = np.partition(values, half)
    upper = float(part[half])
    return upper if values.size % 2 else (float(part[:half].max()) + upper) / 2.0


def quantile(values: Numbers, ratio: float) -> float:
    """Return the value below which a share of the values lies, on the line between the two that are nearest to it.

    Parameters
    ----------
    values
        At least one finite number, in any order.
    ratio
        The share, 0 to 1.

    References
    ----------
    Hyndman, Fan, Am. Stat. 50 (1996), definition 7, doi:10.2307/2684934.

    Examples
    --------
    >>> quantile(np.array([4.0, 1.0, 2.0, 3.0]), 0.5)
    2.5
    """
    place = ratio * (values.size - 1)
    below = math.floor(place)
    part = np.partition(values, below)
    low = float(part[below])
    if below + 1 >= values.size:
        return low
    high, share = float(part[below + 1 :].min()), place - below
    return low + (high - low) * share if share < 0.5 else high - (high - low) * (1.0 - share)
