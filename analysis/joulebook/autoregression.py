"""Long-run variance of a stationary series from an autoregressive model."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from numba import njit

Array = npt.NDArray[np.float64]

AR_MAX_ORDER: Final = 20
"""Largest autoregressive order that is tried."""

LARGEST_AR_SUM: Final = 0.999
"""Sum of the autoregressive coefficients to which the small-sample correction may push: 1 would be a random walk."""


TINY: Final = float(np.finfo(np.float64).tiny)
"""Least variance whose logarithm is taken."""


@njit(cache=True, nogil=True, fastmath=True)
def _products(forward: Any, backward: Any) -> tuple[float, float]:
    """Return the sum of products and the sum of squares of two error series."""
    cross, power = 0.0, 0.0
    for i in range(forward.size):
        cross += forward[i] * backward[i]
        power += forward[i] * forward[i] + backward[i] * backward[i]
    return cross, power


@njit(cache=True, nogil=True, fastmath=True)
def _reflect(forward: Any, backward: Any, reflection: float) -> None:
    for i in range(forward.size):
        ahead, behind = forward[i], backward[i]
        forward[i] = ahead - reflection * behind
        backward[i] = behind - reflection * ahead


@njit(cache=True, nogil=True)
def _burg(values: Array, max_order: int) -> tuple[Array, Array]:
    """Return the residual variance and the sum of the coefficients of AR(0), AR(1), … by Burg's recursion.

    The backward error of order m at time t stands at place t - m, so that both errors are renewed in place.
    """
    n = values.size
    forward = values.copy()
    backward = values.copy()
    coefficients = np.zeros(max_order + 1)
    variances = np.zeros(max_order + 1)
    sums = np.zeros(max_order + 1)
    variances[0] = np.sum(values * values) / n
    for order in range(1, max_order + 1):
        ahead, behind = forward[order:], backward[: n - order]
        cross, power = _products(ahead, behind)
        reflection = 2.0 * cross / power if power > 0.0 else 0.0
        previous = coefficients.copy()
        coefficients[order] = reflection
        for k in range(1, order):
            coefficients[k] = previous[k] - reflection * previous[order - k]
        _reflect(ahead, behind, reflection)
        # A series that repeats itself exactly has a reflection of 1, in doubles a little more.
        variances[order] = max(variances[order - 1] * (1.0 - reflection * reflection), 0.0)
        sums[order] = coefficients[1 : order + 1].sum()
    return variances, sums


def long_run_variance(array: Array) -> float:
    """Return the long-run variance of centred values by the AR model that the corrected AIC picks.

    Parameters
    ----------
    array
        At least three values at equal steps whose mean is 0.

    Returns
    -------
    float
        In the squared unit of the values.

    References
    ----------
    Burg, PhD thesis, Stanford (1975); order by AICc, Hurvich and Tsai, doi:10.1093/biomet/76.2.297; bias of the
    coefficients, Kendall, doi:10.1093/biomet/41.3-4.403.

    Examples
    --------
    >>> white = np.random.default_rng(1).normal(0.0, 2.0, 20_000)
    >>> abs(long_run_variance(white - white.mean()) - 4.0) < 0.4
    True
    """
    return float(_by_least_criterion(np.ascontiguousarray(array)))


@njit(cache=True, nogil=True)
def _by_least_criterion(array: Array) -> float:
    n = array.size
    variances, sums = _burg(array, max(int(min(AR_MAX_ORDER, 10.0 * math.log10(n), n / 5)), 0))
    best, least = 0, np.inf
    for order in range(variances.size):
        criterion = n * math.log(max(variances[order], TINY)) + 2.0 * (order + 1) * n / max(n - order - 2, 1)
        if criterion < least:
            best, least = order, criterion
    correction = n / max(n - best - 1, 1)
    # The mean is estimated too, which pulls the sum of the coefficients down by about (1 + 3 sum) / n (Kendall 1954).
    total = min(sums[best] + (1.0 + 3.0 * sums[best]) / n, max(sums[best], LARGEST_AR_SUM)) if best else 0.0
    return float(variances[best] * correction / max((1.0 - total) ** 2, 1e-12))
