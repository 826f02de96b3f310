"""Where the durations of repeated work (optimizer steps, benchmark iterations) become steady.

Durations change in level and in scatter when compilers, caches and data loaders settle, so the partition is by both.
How fine it is comes from the elbow of the number of segments against their price, not from a fixed penalty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
from numba import njit

from joulebook import stats

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

WINDOW: Final = 200
"""Iterations against which an outlier is judged."""

OUTLIER_RANGES: Final = 3.0
"""Distance of an outlier from the median of its window, in ranges from the 1st to the 99th percentile."""

CHEAPEST_PRICE: Final = 4.0
"""Least price of a change, in units of log(n)."""

DEAREST_PRICE: Final = 100_000.0
"""Greatest price of a change, in units of log(n)."""

FALLBACK_PRICE: Final = 15.0
"""Price of a change where the curve has no elbow, in units of log(n)."""

DIFFERENCE_RATIO: Final = 0.05
"""Difference of mean duration from which two segments are not one steady state."""

LATEST_START_RATIO: Final = 5.0 / 6.0
"""Steady state that begins later than this share of the iterations is none."""

COUNT_RESOLUTION: Final = 0.01
"""Share of the number of changes to which its curve is resolved: restless series have a thousand of them."""

RESAMPLES: Final = 1000
"""Resamples for the interval of a ratio of means."""

FLAT_VARIANCE: Final = 1e-11
"""Variance given to equal durations, in squared robust scales."""

MIN_SEGMENT: Final = 2
"""Shortest segment [iterations]."""


@dataclass(frozen=True)
class Iterations:
    """Start of steady state among iterations.

    Parameters
    ----------
    start
        Index of the first steady iteration, ``None`` where there is none.
    reason
        Why there, or why not.
    frame
        Segments: ``first``, ``end`` (exclusive), ``n``, ``mean_s`` [s], ``sd_s`` [s], ``steady``.
    """

    start: int | None
    reason: str
    frame: pl.DataFrame


@njit(cache=True, nogil=True)
def _replace(ordered: Array, gone: float, fresh: float) -> None:
    """Put a value in the place of another among values in order."""
    at, last = 0, ordered.size - 1
    while ordered[at] != gone:
        at += 1
    while at < last and ordered[at + 1] < fresh:
        ordered[at] = ordered[at + 1]
        at += 1
    while at > 0 and ordered[at - 1] > fresh:
        ordered[at] = ordered[at - 1]
        at -= 1
    ordered[at] = fresh


@njit(cache=True, nogil=True)
def _far_out(values: Array, first: int, ordered: Array, ranges: float, out: npt.NDArray[np.bool_]) -> None:
    """Mark what lies far from the median of any window; ``ordered`` are the values of the first one, in order."""
    window = ordered.size
    low, high = 0.01 * (window - 1), 0.99 * (window - 1)
    i, j = int(low), int(high)
    while True:
        p1 = ordered[i] + (low - i) * (ordered[i + 1] - ordered[i])
        p99 = ordered[j] + (high - j) * (ordered[min(j + 1, window - 1)] - ordered[j])
        median = (ordered[(window - 1) // 2] + ordered[window // 2]) / 2.0
        reach = ranges * (p99 - p1)
        for k in range(first, first + window):
            if abs(values[k] - median) > reach:
                out[k] = True
        if first + window >= values.size:
            return
        _replace(ordered, values[first], values[first + window])
        first += 1


def _outliers(values: Array, skip: int, window: int, ranges: float) -> npt.NDArray[np.bool_]:
    out = np.zeros(values.size, np.bool_)
    if skip + window <= values.size:
        _far_out(values, skip, np.sort(values[skip : skip + window]), ranges, out)
    return out


@njit(cache=True, nogil=True)
def _mean_variance_partition(sums: Array, squares: Array, price: float) -> tuple[Indices, float]:
    """Return the ends of the segments that are cheapest for Gaussian level and scatter (PELT), and their cost."""
    n = sums.size - 1
    best = np.full(n + 1, np.inf)
    best[0] = -price
    previous = np.zeros(n + 1, np.int64)
    candidates = np.zeros(n + 1, np.int64)
    costs = np.zeros(n + 1)
    alive = 1
    for t in range(MIN_SEGMENT, n + 1):
        for c in range(alive):
            s = candidates[c]
            length = t - s
            total = sums[t] - sums[s]
            variance = (squares[t] - squares[s] - total * total / length) / length
            costs[c] = best[s] + length * (
                math.log(variance if variance > 0.0 else FLAT_VARIANCE) + 1.0 + math.log(2.0 * math.pi)
            )
            if costs[c] + price < best[t]:
                best[t] = costs[c] + price
                previous[t] = s
        kept = 0
        for c in range(alive):
            if costs[c] <= best[t]:
                candidates[kept] = candidates[c]
                kept += 1
        candidates[kept] = t - MIN_SEGMENT + 1
        alive = kept + 1
    ends = np.empty(n, np.int64)
    m, t = 0, n
    while t > 0:
        ends[m] = t
        t = previous[t]
        m += 1
    return ends[:m][::-1].copy(), best[n] - price * (m - 1)


def _prices(sums: Array, squares: Array, n: int) -> tuple[Array, Array]:
    """Return the least price of each optimal number of changes, ascending, and that number (CROPS)."""
    tried: dict[int, float] = {}

    def run(price: float) -> int:
        ends, cost = _mean_variance_partition(sums, squares, price)
        tried[ends.size - 1] = cost
        return int(ends.size - 1)

    many, few = run(CHEAPEST_PRICE * math.log(n)), run(DEAREST_PRICE * math.log(n))
    todo = [(many, few)]
    while todo:
        a, b = todo.pop()
        if a - b <= max(1, int(COUNT_RESOLUTION * a)):
            continue
        middle = run((tried[b] - tried[a]) / (a - b))
        if b < middle < a:
            todo += [(a, middle), (middle, b)]
    counts = sorted(tried, reverse=True)
    prices = [CHEAPEST_PRICE * math.log(n)]
    prices += [(tried[b] - tried[a]) / (a - b) for a, b in pairwise(counts)]
    return np.array(prices), np.array(counts, dtype=np.float64)


def _elbow(x: Array, y: Array) -> float | None:
    """Return the x of the first elbow of a falling convex curve (Kneedle, sensitivity 1)."""
    if x.size < 3 or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return None
    across = (x - x.min()) / np.ptp(x)
    fallen = (y.max() - y) / np.ptp(y)
    height = fallen - across
    inner = np.arange(1, x.size - 1)
    peak = np.zeros(x.size, np.bool_)
    valley = np.zeros(x.size, np.bool_)
    peak[inner] = (height[inner] >= height[inner - 1]) & (height[inner] >= height[inner + 1])
    valley[inner] = (height[inner] <= height[inner - 1]) & (height[inner] <= height[inner + 1])
    step = abs(float(np.mean(np.diff(across))))
    threshold, at = math.nan, -1
    for i in range(x.size - 1):
        if peak[i]:
            threshold, at = float(height[i]) - step, i
        if valley[i] and at >= 0:
            threshold = 0.0
        if at >= 0 and height[i + 1] < threshold:
            return float(x[at])
    return None


def _partition(kept: Array) -> Indices:
    # Centre and scale by what the first, huge durations do not move: else differences of sums lose all digits.
    scaled = (kept - np.median(kept)) / (stats.mad(kept) or float(kept.std()) or 1.0)
    sums = np.concatenate(([0.0], np.cumsum(scaled)))
    squares = np.concatenate(([0.0], np.cumsum(scaled * scaled)))
    prices, counts = _prices(sums, squares, kept.size)
    price = _elbow(prices, counts) if prices.size > 1 else float(prices[0])
    return _mean_variance_partition(sums, squares, price or FALLBACK_PRICE * math.log(kept.size))[0]


def _differs(last: Array, other: Array, rng: np.random.Generator) -> bool:
    """Return whether the interval of the ratio of means lies beyond the tolerated difference."""

    def means(part: Array) -> Array:
        if part.size > 100:
            # The mean of many is normal: the same interval at a fraction of the draws.
            return rng.normal(part.mean(), part.std() / math.sqrt(part.size), RESAMPLES)
        return np.asarray(part[rng.integers(0, part.size, (RESAMPLES, part.size))].mean(axis=1))

    lo, hi = np.quantile(means(last) / means(other), (0.025, 0.975))
    return bool(hi <= 1.0 - DIFFERENCE_RATIO or lo >= 1.0 + DIFFERENCE_RATIO)


def steady(durations_s: npt.ArrayLike, *, seed: int = 0) -> Iterations:
    """Find where the durations of iterations become steady.

    Parameters
    ----------
    durations_s
        Duration of each iteration in order [s], all positive.
    seed
        Seed of the resampling.

    Returns
    -------
    Iterations
        ``start`` is ``None`` where the last level is reached too late.

    Raises
    ------
    ValueError
        Where durations are missing, not positive, or fewer than 20.

    References
    ----------
    Barrett et al., OOPSLA 2017, arXiv:1602.00602; Traini et al., doi:10.1007/s10664-022-10247-x; Haynes, Eckley,
    Fearnhead (CROPS), doi:10.1080/10618600.2015.1116445; Satopaa et al. (Kneedle), doi:10.1109/ICDCSW.2011.20.

    Examples
    --------
    >>> import numpy as np
    >>> durations = np.repeat([2.0, 1.0], [100, 900]) + np.random.default_rng(0).normal(0.0, 0.01, 1000)
    >>> steady(durations).start
    100
    """
    values = np.ascontiguousarray(np.asarray(durations_s, dtype=np.float64).ravel())
    if values.size < 20 or not np.isfinite(values).all() or not (values > 0.0).all():
        raise ValueError(f"durations_s: {values.size} given; at least 20 are needed, all finite and above 0")
    # The first iterations are slow because they are first, which is not for a filter to hide.
    skip = math.ceil(WINDOW / math.log1p(math.ceil(0.1 / float(values.mean()))))
    kept = np.flatnonzero(~_outliers(values, skip, min(WINDOW, values.size), OUTLIER_RANGES))
    ends = np.append(kept[_partition(values[kept])[:-1] - 1] + 1, values.size)
    firsts = np.concatenate(([0], ends[:-1]))
    rng = np.random.default_rng(seed)
    segment = firsts.size - 1
    while segment > 0 and not _differs(values[firsts[-1] :], values[firsts[segment - 1] : ends[segment - 1]], rng):
        segment -= 1
    start = int(firsts[segment])
    late = start > LATEST_START_RATIO * values.size
    parts = [values[a:b] for a, b in zip(firsts, ends, strict=True)]
    frame = pl.DataFrame(
        {
            "first": firsts,
            "end": ends,
            "n": ends - firsts,
            "mean_s": [float(p.mean()) for p in parts],
            "sd_s": [float(p.std()) for p in parts],
            "steady": (firsts >= start) & (not late),
        }
    )
    if late:
        return Iterations(None, f"the last level is reached only at iteration {start} of {values.size}", frame)
    return Iterations(start, f"level within {DIFFERENCE_RATIO:.0%} of the last one from iteration {start} on", frame)
