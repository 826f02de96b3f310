"""How far sums of readings may be off: neighbours that are alike, slow beats, and sensors with coarse steps.

References
----------
Newey and West 1987, doi:10.2307/1913610.
"""

from __future__ import annotations

import numpy as np

from joulebook.phase_timeline import Floats

HAC_LAGS = 5
"""Least bandwidth of the autocorrelation-consistent covariance [readings]."""

BATCHES = 5
"""Batches that a rare phase is cut into [1]: few, so that each is longer than a beat between load and sampling."""

MIN_TIES = 0.2
"""Share of readings that repeat the one before from which a sensor's steps are as coarse as its noise [1]."""


def hac(influence: Floats) -> Floats:
    """Return the covariance of a sum of autocorrelated rows, by Bartlett weights.

    Parameters
    ----------
    influence
        One row a moment, one column a quantity.

    Returns
    -------
    ndarray
        Covariance of the column sums.

    Examples
    --------
    >>> hac(np.array([[1.0], [0.0], [0.0], [0.0], [0.0], [0.0], [0.0], [1.0]])).tolist()
    [[2.0]]
    """
    lags = max(HAC_LAGS, int(0.75 * len(influence) ** (1 / 3)))
    total: Floats = influence.T @ influence
    for lag in range(1, min(lags, len(influence) - 1) + 1):
        cross = influence[lag:].T @ influence[:-lag]
        total += (1 - lag / (lags + 1)) * (cross + cross.T)
    return total


def batched(influence: Floats) -> tuple[Floats, Floats]:
    """Return the variance of column sums from a few long batches, and its degrees of freedom.

    A sensor that samples a fast load now and then sees slow beats, longer than the lags of ``hac``.

    Parameters
    ----------
    influence
        One row a moment, one column a quantity; rows of 0 do not belong to it.

    Returns
    -------
    ndarray, ndarray
        Variance and degrees of freedom by column.
    """
    variance, freedom = np.zeros(influence.shape[1]), np.ones(influence.shape[1])
    for j, column in enumerate(influence.T):
        mine = column[np.abs(column) > 1e-9 * np.abs(column).max(initial=0.0)]
        count = min(BATCHES, len(mine) // 3)
        if count > 1:
            sums = np.add.reduceat(mine, np.linspace(0, len(mine), count, endpoint=False).astype(np.int64))
            variance[j], freedom[j] = count * np.var(sums, ddof=1), count - 1
    return variance, freedom


def grain_w(jumps_w: Floats) -> float:
    """Return the step of a sensor that repeats its value too often for noise to average over its steps.

    Parameters
    ----------
    jumps_w
        Sizes of the differences of successive readings [W].

    Returns
    -------
    float
        The step [W], 0 where noise averages over it.

    Examples
    --------
    >>> grain_w(np.array([0.0, 0.0, 0.3, 0.0, 0.3])), grain_w(np.array([0.1, 0.3, 0.7, 0.2]))
    (0.3, 0.0)
    """
    moved = jumps_w[jumps_w > 0]
    coarse = len(moved) > 0 and len(moved) <= (1 - MIN_TIES) * len(jumps_w)
    return float(np.median(moved)) if coarse else 0.0
