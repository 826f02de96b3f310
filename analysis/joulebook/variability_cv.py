"""The coefficient of variation of a series: without its trend and its outliers, with an interval that respects autocorrelation."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from joulebook import distributions, qn, ranks, serial, stats
from joulebook.findings import Estimate

Array = npt.NDArray[np.float64]

TREND_BLOCKS: Final = 40
"""Blocks whose medians give the trend."""


REJECT_SCALES: Final = 3.5
"""Distance from the trend beyond which a reading is an outlier [Qn]."""


LARGEST_REJECTED_RATIO: Final = 0.1
"""Share of outliers above which the readings are two levels, not one with outliers."""


MIN_N_EFF: Final = 20.0
"""Independent readings below which no coefficient of variation is given."""


DEGREES_FACTOR: Final = 0.9
"""Share of the effective readings that counts as degrees of freedom, since the scale is itself estimated."""


def plain_cv(power_w: npt.ArrayLike) -> float:
    """Return sample standard deviation / mean, trend and outliers included.

    Parameters
    ----------
    power_w
        Readings [W].

    Returns
    -------
    float
        Ratio; not-a-number for fewer than two readings or a mean of zero.

    Examples
    --------
    >>> round(plain_cv([90.0, 100.0, 110.0]), 3)
    0.1
    """
    array = stats.finite(power_w)
    mean = float(array.mean()) if array.size else 0.0
    return float(array.std(ddof=1)) / mean if array.size > 1 and mean != 0.0 else math.nan


def _theil_sen(values: Array, places: Array) -> float:
    """Return the median of the slopes between all pairs; places increase."""
    later = places[:, None] > places
    return ranks.median((values[:, None] - values)[later] / (places[:, None] - places)[later])


def _detrended(array: Array) -> Array:
    """Return residuals about the Theil-Sen line through block medians, which outliers do not tilt."""
    blocks = min(TREND_BLOCKS, array.size // 3)
    if blocks < 3:
        return array - ranks.median(array)
    edges = np.linspace(0, array.size, blocks + 1).astype(np.int64)
    medians = np.array([ranks.median(array[a:b]) for a, b in pairwise(edges)])
    centers = (edges[:-1] + edges[1:] - 1) / 2.0
    slope = _theil_sen(medians, centers)
    residual = array - slope * np.arange(array.size)
    return np.asarray(residual - ranks.median(residual))


def _effective_squares(kept: Array) -> float:
    """Return how many independent squares the residuals hold."""
    r = float(np.clip(serial.lag1(kept), -0.99, 0.99))
    by_lag = kept.size * (1.0 - r * r) / (1.0 + r * r)
    return min(serial.effective_n((kept - kept.mean()) ** 2), by_lag)


def estimate_cv(power_w: npt.ArrayLike) -> tuple[Estimate, float]:
    """Estimate the coefficient of variation about the trend, outliers left out.

    Parameters
    ----------
    power_w
        Readings at equal steps [W].

    Returns
    -------
    Estimate
        Ratio with 95 % interval; refused for a flat sensor, too few independent readings, or two levels.
    float
        Share of the readings that were left out as outliers.

    References
    ----------
    Rousseeuw, Croux, doi:10.1080/01621459.1993.10476408.

    Examples
    --------
    >>> import numpy as np
    >>> estimate, rejected = estimate_cv(np.random.default_rng(0).normal(300.0, 9.0, 2000))
    >>> estimate.lo < 0.03 < estimate.hi, rejected < 0.01
    (True, True)
    """
    method = "sd about the trend without outliers / mean"
    array = stats.finite(power_w)
    n = int(array.size)
    if n < 3:
        return Estimate.refused(f"only {n} readings", n=n, method=method), 0.0
    if np.ptp(array) == 0.0:
        reason = f"all {n} readings are equal: a flat sensor, not a variation of zero"
        return Estimate.refused(reason, n=n, method=method), 0.0
    residual = _detrended(array)
    scale = qn.scale(residual)
    keep = np.abs(residual) <= REJECT_SCALES * scale if scale > 0.0 else np.ones(n, np.bool_)
    rejected = 1.0 - float(keep.mean())
    if rejected > LARGEST_REJECTED_RATIO:
        low, high = float(np.median(array[keep])), float(np.median(array[~keep]))
        reason = f"{rejected:.0%} of the readings lie at another level ({high:.6g} W beside {low:.6g} W)"
        return Estimate.refused(reason, n=n, method=method), rejected
    kept = residual[keep]
    n_eff = serial.effective_n(kept)
    if n_eff < MIN_N_EFF:
        reason = f"{n} readings are worth {n_eff:.1f} independent ones, {MIN_N_EFF:.0f} are needed"
        return Estimate.refused(reason, n=n, method=method), rejected
    mean = float(array[keep].mean())
    ratio = float(kept.std(ddof=1)) / math.sqrt(1.0 - 1.5 / n_eff) / mean
    degrees = max(DEGREES_FACTOR * _effective_squares(kept), 1.0)
    lo, hi = (ratio * math.sqrt(degrees / float(distributions.chi_square_quantile(q, degrees))) for q in (0.975, 0.025))
    return Estimate(ratio, lo, hi, n=n, n_eff=n_eff, method=method), rejected
