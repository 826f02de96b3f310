"""Steps between readings: how long they are, and up to which length the time between two readings is bridged."""

from __future__ import annotations

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from joulebook import ranks

Floats = NDArray[np.float64]

FLOOR_S = 3.0
"""Steps up to this length [s] are always bridged; the limit that published benchmark windows use."""

PERIODS = 3.0
"""Steps up to this many periods are bridged, where that is more than the floor."""

PACE_STEPS = 11
"""Steps whose median is the pace of a log at their middle: more than half of them have to be long."""

MANY_STAMPS = 1 << 18
"""Of more stamps than this an array of all steps is avoided: it costs more to make than to fill."""

AROUND_MEDIAN = (0.49, 0.51)
"""Shares of the first steps between which the median of all of them is looked for."""

STAMP_TOLERANCE_S = 1e-3
"""Stamps are commonly printed to the millisecond, so limits on steps give way by one."""


def median_step_s(stamp_s: Floats) -> float | None:
    """Return the median of the steps between distinct stamps [s], or ``None`` with fewer than two.

    Examples
    --------
    >>> median_step_s(np.array([0.0, 1.0, 1.0, 2.0, 9.0]))
    1.0
    """
    if stamp_s.size > MANY_STAMPS:
        some = np.diff(stamp_s[:MANY_STAMPS])
        low, high = (ranks.quantile(some, q) for q in AROUND_MEDIAN)
        found = _median_between(stamp_s, max(low, np.nextafter(0.0, 1.0)), high)
        if np.isfinite(found):
            return float(found)
    step = np.diff(stamp_s)
    if step.size and not step.min() > 0:
        step = step[step > 0]
    return ranks.median(step) if step.size else None


@njit(cache=True, nogil=True)
def _median_between(stamp_s: Floats, low_s: float, high_s: float) -> float:
    """Return the median of the steps above 0 where it lies between two bounds and few others do, else no number.

    A log of a hundred million lines has no room for an array of all its steps.
    """
    kept = np.empty(min(stamp_s.size, 2 * MANY_STAMPS))
    below, within, lowest, above = 0, 0, 0, 0
    for i in range(stamp_s.size - 1):
        step = stamp_s[i + 1] - stamp_s[i]
        if step <= 0:
            continue
        if step < low_s:
            below += 1
        elif step > high_s:
            above += 1
        else:
            lowest += step == low_s
            if within < kept.size:
                kept[within] = step
            within += 1
    count = below + within + above
    first, second = (count - 1) // 2 - below, count // 2 - below
    if lowest == within and first >= 0 and second < within:
        return low_s
    if within > kept.size or first < 0 or second >= within:
        return np.nan
    ordered = np.sort(kept[:within])
    return float((ordered[first] + ordered[second]) / 2.0)


def limit_s(period_s: float | None) -> float:
    """Return the longest step that is bridged [s]: 3 s or 3 periods, whichever is more.

    Examples
    --------
    >>> limit_s(0.1), limit_s(15.0)
    (3.0, 45.0)
    """
    return max(FLOOR_S, PERIODS * (period_s or 0.0))


def paced_limits_s(step_s: Floats, limit_s: float) -> Floats | float:
    """Return the longest step that is bridged at each place of a log whose pace may have changed [s].

    A logger that was started again with another period goes on at another pace: there the rule is that of the steps
    around. A gap is one long step among short ones and changes nothing.

    Parameters
    ----------
    step_s
        Steps between readings [s].
    limit_s
        The limit by the usual step of the whole log [s].

    Examples
    --------
    >>> paced_limits_s(np.array([1.0] * 20 + [10.0] * 20), 3.0)[[5, 30]].tolist()
    [3.0, 30.0]
    >>> paced_limits_s(np.array([1.0] * 20 + [600.0] + [1.0] * 20), 3.0)
    3.0
    """
    long = step_s > limit_s + STAMP_TOLERANCE_S
    if np.count_nonzero(long) <= PACE_STEPS // 2:
        return limit_s
    around = pl.Series(step_s).rolling_median(PACE_STEPS, min_samples=PACE_STEPS // 2 + 1, center=True)
    return np.maximum(limit_s, PERIODS * around.fill_null(0.0).to_numpy())
