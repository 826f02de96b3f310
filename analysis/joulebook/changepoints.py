"""Level shifts in a noisy series: exact least-squares partition with a noise scale that knows about autocorrelation.

The search is functional pruning (FPOP), linear in practice. What decides the accuracy is the noise scale: a penalty
made for white noise reports many times too many shifts on power readings, whose neighbours are alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import changepoints_partition, ranks, serial, stats
from joulebook.changepoints_partition import Array, Indices
from joulebook.findings import Finding

PENALTY_FACTOR: Final = 5.0
"""Price of a change in units of log(n) times the noise variance; 2 is the BIC, 5 is quiet on tails and slow drift."""

FULL_RATE_LIMIT: Final = 300_000
"""Readings up to which the search works on single readings; longer series are binned first."""

BINS: Final = 200_000
"""Bins of a longer series."""

NOISE_ITERATIONS: Final = 4
"""Rounds of fit and noise scale; the scale moves by less than 2 % after three on all series tried."""

NOISE_TOLERANCE: Final = 0.02
"""Relative move of the noise variance at which the rounds stop."""

LARGEST_LAG1: Final = 0.98
"""Autocorrelation above which a residual is taken for drift, not noise."""

CLIP_SD: Final = 5.0
"""Residuals beyond this many standard deviations do not count towards the noise."""


@dataclass(frozen=True)
class ChangePoints:
    """Level shifts of one series.

    Parameters
    ----------
    frame
        One row a level: ``first`` (index of its first value), ``end`` (index after its last), ``n``, ``mean``.
    noise_sd
        Long-run standard deviation that set the penalty, in the unit of the values.
    lag1_ratio
        Autocorrelation of the residual at lag 1.
    findings
        Doubts.
    """

    frame: pl.DataFrame
    noise_sd: float
    lag1_ratio: float
    findings: tuple[Finding, ...] = field(default=())

    @property
    def indices(self) -> Indices:
        """Index of the first value after each shift."""
        return self.frame["first"].to_numpy()[1:].astype(np.int64)


def _means(cumulative: Array, starts: Indices, n: int) -> tuple[Array, Indices]:
    ends = np.append(starts[1:], n)
    lengths = ends - starts
    return (cumulative[ends] - cumulative[starts]) / lengths, lengths


def _noise(values: Array, cumulative: Array, starts: Indices) -> tuple[float, float]:
    """Return the long-run variance of the residual about the segment means, and its lag-1 autocorrelation."""
    means, lengths = _means(cumulative, starts, values.size)
    residual = values - np.repeat(means, lengths)
    sd = stats.mad(residual) or float(np.std(residual))
    residual = np.clip(residual, -CLIP_SD * sd, CLIP_SD * sd)
    a = float(np.clip(serial.lag1(residual), 0.0, LARGEST_LAG1))
    return float(np.var(residual)) * (1.0 + a) / (1.0 - a), a


def _prune(cumulative: Array, starts: Indices, n: int, price: float) -> Indices:
    """Drop changes that are worth less than ``price``, cheapest of each neighbourhood first."""
    while starts.size > 1:
        means, lengths = _means(cumulative, starts, n)
        worth = np.diff(means) ** 2 * lengths[1:] * lengths[:-1] / (lengths[1:] + lengths[:-1])
        before = np.concatenate(([np.inf], worth[:-1]))
        after = np.concatenate((worth[1:], [np.inf]))
        drop = (worth < price) & (worth <= before) & (worth < after)
        if not drop.any():
            break
        starts = starts[np.concatenate(([True], ~drop))]
    return starts


def _join_ramps(cumulative: Array, starts: Indices, n: int) -> Indices:
    """Replace a single value on the way from one level to the next by one change at the better of its two sides."""
    if starts.size < 3:
        return starts
    means, lengths = _means(cumulative, starts, n)
    between = (means[1:-1] - means[:-2]) * (means[2:] - means[1:-1]) > 0.0
    ramp = np.flatnonzero((lengths[1:-1] == 1) & between) + 1
    ramp = ramp[np.concatenate(([True], np.diff(ramp) > 1))] if ramp.size else ramp
    near_left = np.abs(means[ramp] - means[ramp - 1]) < np.abs(means[ramp + 1] - means[ramp])
    drop = np.where(near_left, ramp, ramp + 1)
    return np.delete(starts, drop)


def _partition(values: Array, penalty_factor: float) -> tuple[Indices, float, float]:
    n = values.size
    values = values - ranks.median(values)
    cumulative = np.concatenate(([0.0], np.cumsum(values)))
    variance = stats.difference_sd(values) ** 2 or float(np.var(np.diff(values))) / 2.0
    if variance == 0.0:
        return np.zeros(1, np.int64), 0.0, 0.0
    a = 0.0
    starts = np.zeros(1, np.int64)
    price = penalty_factor * math.log(n)
    for _ in range(NOISE_ITERATIONS):
        starts = changepoints_partition.optimal(values / math.sqrt(variance), price)
        update, a = _noise(values, cumulative, starts)
        moved = abs(update - variance) / variance
        variance = update or variance
        if moved < NOISE_TOLERANCE:
            break
    starts = _prune(cumulative, starts, n, price * variance)
    return _join_ramps(cumulative, starts, n), math.sqrt(variance), a


def _refine(values: Array, starts: Indices, width: int) -> Indices:
    """Move each change to the best reading within one bin on either side."""
    means = np.add.reduceat(values, starts) / np.diff(np.append(starts, values.size))
    refined = starts.copy()
    for i in range(1, starts.size):
        lo = max(int(starts[i]) - width, int(refined[i - 1]) + 1)
        hi = min(int(starts[i]) + width, values.size)
        window = values[lo:hi]
        gain = np.cumsum((window - means[i]) ** 2 - (window - means[i - 1]) ** 2)
        # Readings before the split pay the distance to the left level instead of the right one.
        refined[i] = lo + int(np.argmax(np.concatenate(([0.0], gain))))
    return refined


def find(values: npt.ArrayLike, *, penalty_factor: float = PENALTY_FACTOR) -> ChangePoints:
    """Find the level shifts of a series at equal steps.

    Parameters
    ----------
    values
        Readings in order; null and not-a-number are refused, since an index would lose its meaning.
    penalty_factor
        Price of a change in units of log(n) times the long-run noise variance.

    Returns
    -------
    ChangePoints
        ``frame`` has one row a level: first, end, n, mean.

    Raises
    ------
    ValueError
        Where values are missing, or fewer than two.

    References
    ----------
    Maidstone, Hocking, Rigaill, Fearnhead, Stat. Comput. 27 (2017), doi:10.1007/s11222-016-9636-3.

    Examples
    --------
    >>> import numpy as np
    >>> power_w = np.repeat([100.0, 300.0], 50) + np.random.default_rng(0).normal(0.0, 3.0, 100)
    >>> find(power_w).indices.tolist()
    [50]
    """
    first, end, mean, noise_sd, a = levels(values, penalty_factor=penalty_factor)
    frame = pl.DataFrame({"first": first, "end": end, "n": end - first, "mean": mean})
    return ChangePoints(frame, noise_sd, a)


def levels(
    values: npt.ArrayLike, *, penalty_factor: float = PENALTY_FACTOR
) -> tuple[Indices, Indices, Array, float, float]:
    """Return what ``find`` does as arrays, for callers that look at hundreds of short series.

    Parameters
    ----------
    values, penalty_factor
        As for ``find``.

    Returns
    -------
    tuple
        First index, end and mean of each level; long-run standard deviation; autocorrelation at lag 1.

    Raises
    ------
    ValueError
        As for ``find``.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(0.0, 3.0, 100)
    >>> [x.tolist() for x in levels(np.repeat([100.0, 300.0], 50) + noise)[:2]]
    [[0, 50], [50, 100]]
    """
    array = np.ascontiguousarray(np.asarray(values, dtype=np.float64).ravel())
    if array.size < 2 or not np.isfinite(array).all():
        raise ValueError(
            f"values: {array.size} readings, all must be finite and at least 2; drop the missing ones first"
        )
    if array.size <= FULL_RATE_LIMIT:
        starts, noise_sd, a = _partition(array, penalty_factor)
    else:
        width = math.ceil(array.size / BINS)
        whole = array.size // width * width
        bins = array[:whole].reshape(-1, width).mean(axis=1)
        starts, noise_sd, a = _partition(bins, penalty_factor)
        starts = _refine(array, starts * width, width)
        noise_sd *= math.sqrt(width)
    ends = np.append(starts[1:], array.size)
    return starts, ends, np.add.reduceat(array, starts) / (ends - starts), noise_sd, a
