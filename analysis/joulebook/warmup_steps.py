"""The optimizer steps at the start of a run that are never steady: allocation, communicator set-up, pipeline fill."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import numpy as np
import polars as pl

from joulebook import stats

DROPPED_STEPS: Final = 20
"""Steps at the start that do not count where the run is too short to show how long its usual step is; no more are looked at
where it is not."""

USUAL_STEPS: Final = 40
"""Steps after these from which the usual step is told."""

UNLIKE_RATIO: Final = 0.05
"""Share by which a step must differ from the usual one to be unlike it."""

UNLIKE_SCALES: Final = 4.0
"""The same in robust standard deviations of the usual steps."""


def end(steps: pl.DataFrame, *, dropped_steps: int | None = None) -> tuple[datetime, int] | None:
    """Return when the first steps that do not count have ended, and how many these are.

    Set-up shows in the length of steps: those before the first that lasts as long as later ones do not count.

    Parameters
    ----------
    steps
        ``step``, ``end_utc`` and perhaps ``start_utc``; a step without a start began when the one before it ended.
    dropped_steps
        Their number where it is known. Default: found in the lengths of up to 20 steps, and 20 where a run has too few
        further ones to tell the usual length by.

    Returns
    -------
    tuple of datetime and int, or None
        ``None`` where there are no such steps.

    Examples
    --------
    >>> from datetime import UTC, timedelta
    >>> at = datetime(2026, 11, 2, tzinfo=UTC)
    >>> ends = [at + timedelta(seconds=s) for s in np.cumsum([9.0] * 5 + [3.0] * 95)]
    >>> end(pl.DataFrame({"step": range(100), "end_utc": ends}))[1]
    5
    """
    done = steps.drop_nulls("end_utc").sort("end_utc")
    count = _unlike(done) if dropped_steps is None else min(dropped_steps, done.height)
    last = done["end_utc"].head(count).max()
    return (last, count) if isinstance(last, datetime) else None


def _unlike(done: pl.DataFrame) -> int:
    """Return the number of steps before the first that lasts as long as the later ones."""
    if done.height < DROPPED_STEPS + USUAL_STEPS:
        return min(DROPPED_STEPS, done.height)
    lasts = _lengths_s(done)
    usual = lasts[DROPPED_STEPS:]
    usual = usual[np.isfinite(usual)]
    level = float(np.median(usual))
    far = np.abs(lasts[:DROPPED_STEPS] - level) > max(UNLIKE_RATIO * level, UNLIKE_SCALES * stats.mad(usual))
    far |= ~np.isfinite(lasts[:DROPPED_STEPS])
    return int(np.argmin(np.append(far, False)))


def _lengths_s(done: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return how long steps last [s], not-a-number where it is unknown."""
    began = pl.col("end_utc").shift()
    if "start_utc" in done.columns:
        began = pl.coalesce("start_utc", began)
    lasts = done.select((pl.col("end_utc") - began).dt.total_microseconds() / 1e6).to_series()
    return lasts.cast(pl.Float64).fill_null(float("nan")).to_numpy()
