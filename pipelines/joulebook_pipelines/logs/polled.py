"""Whether the states of a home were written on change, or asked for at one pace."""

from __future__ import annotations

import polars as pl

FEWEST_STEPS, PACE, EVEN = 8, 0.2, 0.8
"""Steps from which a pace is known; how far they may be off the usual one, and which share of them must not be."""


def devices(readings: pl.DataFrame) -> set[str]:
    """Return the devices whose powers came at one pace: each is of its instant, and nobody knows what lies between.

    Parameters
    ----------
    readings
        ``device, ts_utc`` and perhaps ``power_w``.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> stamps = [datetime(2026, 11, 2, 1, minute, tzinfo=UTC) for minute in range(0, 50, 5)]
    >>> devices(pl.DataFrame({"device": "plug", "ts_utc": stamps, "power_w": 80.0}))
    {'plug'}
    """
    if "power_w" not in readings.columns:
        return set()
    told_w = readings.filter(pl.col("power_w").is_not_null())
    return {str(d) for (d,), mine in told_w.group_by("device") if at_one_pace(mine["ts_utc"])}


def at_one_pace(stamps_utc: pl.Series) -> bool:
    """Tell whether stamps lie about equally far apart."""
    steps = stamps_utc.sort().diff().drop_nulls().dt.total_microseconds()
    usual = steps.median()
    if len(steps) < FEWEST_STEPS or not isinstance(usual, float):
        return False
    return bool(steps.is_between(usual * (1 - PACE), usual * (1 + PACE)).sum() >= EVEN * len(steps))
