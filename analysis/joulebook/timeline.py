"""A long course of power thinned for a picture, so that no spike is lost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from joulebook import schema

LEAST_LENGTH_S = 1e-3
"""Length that a course of a single reading is taken to have [s]."""


def thinned(pieces: Sequence[pl.DataFrame], points: int) -> pl.DataFrame:
    """Return least, most and mean of each of ``points`` stretches of equal length that holds a reading.

    Parameters
    ----------
    pieces
        ``ts_utc`` and ``power_w`` [W], in order of time within and between them.
    points
        How many stretches.

    Returns
    -------
    polars.DataFrame
        ``ts_utc`` (first of the stretch), ``lo_w``, ``hi_w``, ``mean_w`` [W].

    Examples
    --------
    >>> from datetime import UTC, datetime, timedelta
    >>> stamps = [datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=s) for s in range(4)]
    >>> course = pl.DataFrame({"ts_utc": stamps, "power_w": [100.0, 300.0, 120.0, 80.0]})
    >>> thinned([course], 2).select("lo_w", "hi_w", "mean_w").rows()
    [(100.0, 300.0, 200.0), (80.0, 120.0, 100.0)]
    """
    if not any(p.height for p in pieces):
        return pl.DataFrame(schema={"ts_utc": schema.UTC, "lo_w": pl.Float64, "hi_w": pl.Float64, "mean_w": pl.Float64})
    us = np.concatenate([p["ts_utc"].dt.timestamp("us").to_numpy() for p in pieces])
    watts = np.concatenate([p["power_w"].to_numpy() for p in pieces])
    at_s = (us - us[0]) / 1e6
    stretch = np.minimum(np.floor(at_s / max(at_s[-1], LEAST_LENGTH_S) * points), points - 1)
    first = np.flatnonzero(np.diff(stretch, prepend=-1.0))
    return pl.DataFrame({
        "ts_utc": pl.Series(us[first]).cast(pl.Datetime("us")).dt.replace_time_zone("UTC"),
        "lo_w": np.minimum.reduceat(watts, first), "hi_w": np.maximum.reduceat(watts, first),
        "mean_w": np.add.reduceat(watts, first) / np.diff(first, append=us.size),
    })  # fmt: skip
