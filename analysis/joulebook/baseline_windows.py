"""The mean power of steady windows, with an interval that holds what lies between them and slow wander."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import distributions, quiet, serial, stats, totals
from joulebook.findings import Estimate
from joulebook.wording import counted

Array = npt.NDArray[np.float64]


MIN_READINGS: Final = 60
"""Readings of steady power that a baseline needs."""


MIN_BLOCKS: Final = 4
"""Means of :data:`MIN_READINGS` readings whose reach tells how far slow wander goes; fewer show too little of it."""


def window_mean(series: pl.DataFrame, windows: pl.DataFrame, holes: pl.DataFrame | None = None) -> Estimate:
    """Return the mean over the used windows; its interval covers the spread between them.

    Parameters
    ----------
    series
        ``ts_utc``, ``power_w`` [W] in order of time.
    windows
        ``start_utc``, ``end_utc``, ``used``.
    holes
        ``start_utc``, ``end_utc`` of what does not count.

    Returns
    -------
    Estimate
        Mean power [W]; refused where no window is used.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> stamp = datetime(2026, 11, 2, tzinfo=UTC)
    >>> series = pl.DataFrame({"ts_utc": [stamp], "power_w": [5.0]})
    >>> window_mean(series, pl.DataFrame({"start_utc": [stamp], "end_utc": [stamp], "used": [False]})).reason
    'no steady readings'
    """
    holes = windows.clear() if holes is None else holes
    used = windows.filter("used")
    counts, watts = ~totals.inside(series["ts_utc"], holes), series["power_w"].to_numpy()
    parts = [watts[counts & totals.inside(series["ts_utc"], used[k])] for k in range(used.height)]
    watts = np.concatenate([*parts, np.empty(0)])
    if not watts.size:
        return Estimate.refused("no steady readings", unit="W", n=0, method="mean of steady windows")
    parts = [part for part in parts if part.size]
    pooled = serial.mean_interval(watts)
    mean = float(watts.mean())
    # Short windows count for little in the mean, but what the machine drew in them it drew at rest as well.
    spread = max(abs(float(part.mean()) - mean) for part in parts)
    half, reason = pooled.half_width, pooled.reason
    if half is None and float(np.ptp(watts)) > 0.0 and watts.size >= quiet.MIN_READINGS:
        half, reason = _wander(parts, watts)
    if half is None:
        return Estimate(mean, unit="W", n=int(watts.size), n_eff=pooled.n_eff, method=pooled.method, reason=reason)
    half = max(half, spread, _step_w(watts))
    method = f"mean of {counted(used.height, 'steady window')}"
    return Estimate(mean, mean - half, mean + half, "W", int(watts.size), pooled.n_eff, method, reason)


def _wander(parts: Sequence[Array], watts: Array) -> tuple[float, str]:
    """Return the half width [W], and why, where readings wander slowly, so that few of them are independent.

    What the power reached within the windows bounds the mean. A short stretch shows too little of that: there the
    interval is that of the few independent readings.
    """
    blocks = [b.mean() for part in parts for b in np.array_split(part, max(part.size // MIN_READINGS, 1))]
    reach = float(max(abs(block - watts.mean()) for block in blocks))
    if len(blocks) >= MIN_BLOCKS:
        return reach, f"slow wander: the interval is the reach of means of {MIN_READINGS} readings"
    n_eff = serial.effective_n(watts)
    t = float(distributions.student_quantile(0.975, max(n_eff - 1.0, 1.0)))
    reason = f"slow wander: {watts.size} readings are worth {n_eff:.1f} independent ones, and the interval is theirs"
    return max(reach, t * float(watts.std(ddof=1)) / math.sqrt(n_eff)), reason


def _step_w(watts: Array) -> float:
    """Return what the sensor's step leaves open [W]; scatter wider than a step averages it out."""
    step_w = stats.resolution(watts)
    return step_w / math.sqrt(12.0) if float(watts.std()) < step_w else 0.0
