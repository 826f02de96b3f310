"""Series whose neighbours are alike: how much alike, how many independent values they are worth, what their mean is."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy import fft, special

from joulebook import autoregression
from joulebook.findings import Estimate
from joulebook.stats import Array, dot, finite

MIN_N_EFF: Final = 10.0
"""Independent readings below which the interval of a mean is refused: AR(.98) series with fewer cover 85 %."""

FLAG_N_EFF: Final = 30.0
"""Independent readings below which the interval of a mean is doubtful: nominal 95 % covers about 91 to 93 %."""

LARGEST_SAMPLE: Final = 100_000
"""Values above which the interval of a mean is made from block means."""

BLOCKS_A_COSINE: Final = 8
"""Block means to each half period of the fastest cosine that the interval of a mean is made from."""

CONFIDENCE: Final = 0.95
"""Level of every interval."""


def autocorrelation(values: npt.ArrayLike, max_lag: int) -> Array:
    """Return the autocorrelation at lags 0 to ``max_lag``.

    Parameters
    ----------
    values
        Numbers at equal steps.
    max_lag
        Largest lag [steps].

    Returns
    -------
    numpy.ndarray
        ``max_lag + 1`` ratios in [-1, 1]; zeros after lag 0 where all values are equal.

    Examples
    --------
    >>> autocorrelation([1.0, -1.0, 1.0, -1.0], 1).round(2).tolist()
    [1.0, -0.75]
    """
    array = finite(values)
    if array.size:
        array = array - array.mean()
    out = np.zeros(max_lag + 1)
    out[0] = 1.0
    power = dot(array, array)
    if power > 0.0:
        for lag in range(1, min(max_lag, array.size - 1) + 1):
            out[lag] = dot(array[lag:], array[:-lag]) / power
    return out


def lag1(values: npt.ArrayLike) -> float:
    """Return the autocorrelation at lag 1, a ratio in [-1, 1].

    Examples
    --------
    >>> round(lag1([1.0, -1.0, 1.0, -1.0]), 2)
    -0.75
    """
    return float(autocorrelation(values, 1)[1])


def long_run_variance(values: npt.ArrayLike) -> float:
    """Return the long-run variance: n times the variance of the mean of n such values.

    Parameters
    ----------
    values
        Numbers at equal steps, without a trend.

    Returns
    -------
    float
        In the squared unit of the values. Equal to the variance for white noise, larger where neighbours are alike.

    References
    ----------
    Burg, PhD thesis, Stanford (1975); order by AICc, Hurvich and Tsai, doi:10.1093/biomet/76.2.297; bias of the
    coefficients, Kendall, doi:10.1093/biomet/41.3-4.403.

    Examples
    --------
    >>> import numpy as np
    >>> white = np.random.default_rng(1).normal(0.0, 2.0, 20_000)
    >>> abs(long_run_variance(white) - 4.0) < 0.4
    True
    """
    array = finite(values)
    if array.size < 3 or np.ptp(array) == 0.0:
        return 0.0
    return _long_run_variance(array)


def _long_run_variance(array: Array) -> float:
    blocks, width = _blocks(array)
    return autoregression.long_run_variance(blocks - blocks.mean()) * width


def _blocks(array: Array) -> tuple[Array, int]:
    """Return block means of a long series and their width: what matters to a mean is slow."""
    width = max(array.size // LARGEST_SAMPLE, 1)
    return _means(array, width), width


def _means(array: Array, width: int) -> Array:
    """Return the means of blocks of so many values; what is left over at the end is left out."""
    # A product takes a tenth of the time of means along a short axis.
    return array[: array.size // width * width].reshape(-1, width) @ np.full(width, 1.0 / width) if width > 1 else array


def effective_n(values: npt.ArrayLike) -> float:
    """Return how many independent values would know the mean as well as these do.

    Parameters
    ----------
    values
        Numbers at equal steps, without a trend.

    Returns
    -------
    float
        Between 1 and n; 1 where all values are equal, since a flat sensor proves nothing.

    Examples
    --------
    >>> effective_n([5.0] * 100)
    1.0
    """
    array = finite(values)
    if array.size < 3 or np.ptp(array) == 0.0:
        return float(min(array.size, 1))
    return _effective_n(array.size, _moments(array)[1], _long_run_variance(array))


def _effective_n(n: int, variance: float, long_run: float) -> float:
    return float(min(max(n * variance / max(long_run, 1e-300), 1.0), n))


@njit(cache=True, nogil=True)
def _moments(array: Array) -> tuple[float, float, bool]:
    """Return the mean, the variance about it, and whether values differ, of at least two."""
    total, squares, differs = 0.0, 0.0, False
    for value in array:
        total += value - array[0]
        differs |= value != array[0]
    mean = array[0] + total / array.size
    for value in array:
        squares += (value - mean) ** 2
    return mean, squares / (array.size - 1), differs


def _cosine_half_width(array: Array, quantile_level: float) -> float:
    """Return the half width of the equal-weighted cosine interval (Lazarus, Lewis, Stock, Watson 2018)."""
    terms = max(int(0.4 * array.size ** (2.0 / 3.0)), 1)
    # Only the slowest cosines are looked at; means of the readings within a sixteenth of a period weigh nearly the same.
    means = _means(array, max(array.size // (BLOCKS_A_COSINE * terms), 1))
    coefficients = fft.dct(means - means.mean(), type=2, norm="ortho")[1 : terms + 1]
    error = math.sqrt(float(np.mean(coefficients**2)) / means.size)
    return float(special.stdtrit(terms, quantile_level)) * error


def mean_interval(values: npt.ArrayLike, *, unit: str = "W") -> Estimate:
    """Return the mean with a 95 % interval that respects autocorrelation.

    The half width is the larger one of an autoregressive spectral estimate and the equal-weighted cosine estimate:
    each is too short where the other one is right.

    Parameters
    ----------
    values
        Numbers at equal steps, without a trend. Null and not-a-number are left out.
    unit
        Unit of the values.

    Returns
    -------
    Estimate
        Without ends where the readings hold fewer than 10 independent ones, or are all equal; ``reason`` says so.

    References
    ----------
    Lazarus, Lewis, Stock, Watson, J. Bus. Econ. Stat. 36 (2018), doi:10.1080/07350015.2018.1506926.

    Examples
    --------
    >>> import numpy as np
    >>> power_w = np.random.default_rng(0).normal(300.0, 5.0, 400)
    >>> estimate = mean_interval(power_w)
    >>> estimate.lo < 300.0 < estimate.hi
    True
    >>> mean_interval([250.0] * 60).reason
    'all 60 readings are equal: a flat sensor has no interval'
    """
    method = "mean, larger of AR and cosine interval"
    array = finite(values)
    n = int(array.size)
    if n == 0:
        return Estimate.refused("no readings", unit=unit, n=0, method=method)
    mean, spread, differs = _moments(array) if n > 1 else (float(array[0]), 0.0, True)
    if not differs:
        reason = f"all {n} readings are equal: a flat sensor has no interval"
        return Estimate(mean, unit=unit, n=n, n_eff=1.0, method=method, reason=reason)
    if n < MIN_N_EFF:
        reason = f"only {n} readings: not enough for an interval"
        return Estimate(mean, unit=unit, n=n, n_eff=None, method=method, reason=reason)
    variance = _long_run_variance(array)
    n_eff = _effective_n(n, spread, variance)
    if n_eff < MIN_N_EFF:
        reason = (
            f"not enough independent information: {n} readings are worth {n_eff:.1f} independent ones, 10 are needed"
        )
        return Estimate(mean, unit=unit, n=n, n_eff=n_eff, method=method, reason=reason)
    level = 0.5 + CONFIDENCE / 2.0
    spectral = float(special.stdtrit(n_eff - 1.0, level)) * math.sqrt(variance / n)
    half = max(spectral, _cosine_half_width(_blocks(array)[0], level))
    few = n_eff < FLAG_N_EFF
    reason = f"few independent readings ({n_eff:.0f}): the interval is approximate" if few else ""
    return Estimate(mean, mean - half, mean + half, unit=unit, n=n, n_eff=n_eff, method=method, reason=reason)
