"""Levels of work: stretches of one mean, drifts told apart, and whether a level is stable."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

from joulebook import changepoints, serial

Array = npt.NDArray[np.float64]

TOLERANCE_RATIO: Final = 0.01
"""Levels closer than this are one; a stable segment drifts by less."""

STAIR_RATIO: Final = 0.03
"""Steps smaller than this share of the level, three or more levels in one direction, are a drift."""

DRIFT_ERRORS: Final = 4.0
"""Standard errors that a drift must exceed to be one."""


def find(power_w: Array) -> list[tuple[int, int]]:
    """Return the stretches of one level, or of one drift, as first index and end.

    Parameters
    ----------
    power_w
        Readings in order [W], finite, at least two.

    Returns
    -------
    list of tuple of int
        They follow on each other and cover all readings.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(0.0, 2.0, 200)
    >>> find(np.repeat([300.0, 400.0], 100) + noise)
    [(0, 100), (100, 200)]
    """
    levels: list[tuple[int, int, float]] = []
    for first, end, mean in zip(*(x.tolist() for x in changepoints.levels(power_w)[:3]), strict=True):
        start, stop, level = levels[-1] if levels else (0, 0, mean)
        if levels and abs(mean - level) <= TOLERANCE_RATIO * abs(level):
            weights = (stop - start, end - first)
            levels[-1] = (start, end, float(np.average((level, mean), weights=weights)))
        else:
            levels.append((first, end, mean))
    return _stairs(levels)


def _stairs(levels: list[tuple[int, int, float]]) -> list[tuple[int, int]]:
    """Join small steps in one direction: a drift cut in levels is still a drift."""
    means = np.array([mean for _, _, mean in levels])
    steps = np.diff(means) / np.abs(means[:-1])
    small = np.abs(steps) <= STAIR_RATIO
    joined = small[1:] & small[:-1] & (steps[1:] * steps[:-1] > 0.0)
    glued = np.zeros(steps.size, np.bool_)
    glued[1:] |= joined
    glued[:-1] |= joined
    out: list[tuple[int, int]] = []
    for k, (first, end, _) in enumerate(levels):
        if k > 0 and glued[k - 1]:
            out[-1] = (out[-1][0], end)
        else:
            out.append((first, end))
    return out


def judge(seconds: Array, watts: Array, *, min_stable_s: float, cv_limit: float) -> tuple[str, str]:
    """Return the kind of a stretch of one level, stable or transient, and the reason.

    Parameters
    ----------
    seconds
        Time of the readings [s].
    watts
        Readings [W].
    min_stable_s
        Shortest stable stretch [s].
    cv_limit
        Coefficient of variation above which it is not stable.

    Returns
    -------
    tuple of str
        Kind and reason.

    Examples
    --------
    >>> judge(np.arange(30.0), np.full(30, 300.0), min_stable_s=60.0, cv_limit=0.25)
    ('transient', 'lasts 29 s, a stable segment at least 60 s')
    """
    lasts = float(seconds[-1] - seconds[0]) if seconds.size else 0.0
    if lasts < min_stable_s:
        return "transient", f"lasts {lasts:.0f} s, a stable segment at least {min_stable_s:.0f} s"
    mean, sd = float(watts.mean()), float(watts.std(ddof=1))
    if sd == 0.0:
        return "transient", "all readings are equal: the sensor may be stuck"
    if sd > cv_limit * mean:
        return "transient", f"variation {sd / mean:.2f} of the mean is above the limit of {cv_limit:g}"
    rise = slope(seconds, watts)
    drift = rise * lasts
    left = watts - rise * (seconds - seconds.mean())
    error = np.sqrt(12.0 * serial.long_run_variance(left) / watts.size)
    if abs(drift) > max(TOLERANCE_RATIO * mean, DRIFT_ERRORS * error):
        return "transient", f"drifts by {drift / mean:+.1%}"
    return "stable", f"one level for {lasts:.0f} s"


def slope(seconds: Array, watts: Array) -> float:
    """Return the least-squares trend [W/s], 0 where time stands still.

    Examples
    --------
    >>> slope(np.array([0.0, 1.0, 2.0]), np.array([10.0, 12.0, 14.0]))
    2.0
    """
    return float(_slope(seconds, watts))


@njit(cache=True, nogil=True)
def _slope(seconds: Array, watts: Array) -> float:
    # A plain loop: products of long vectors wake the threads of the linear algebra library, which costs far more.
    middle, level = seconds.mean(), watts.mean()
    spread, product = 0.0, 0.0
    for i in range(seconds.size):
        late = seconds[i] - middle
        spread += late * late
        product += late * (watts[i] - level)
    return product / spread if spread > 0.0 else 0.0
