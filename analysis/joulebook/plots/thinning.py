"""Fewer points with the same outline: the least and the greatest of every bin stay."""

from __future__ import annotations

import numpy as np
import polars as pl

POINTS = 2000
"""Points a drawn series has at most: about two per pixel of a wide screen."""
BREAK_PERIODS = 3.0
"""Steps longer than this many median steps break the line, like the gaps of table ``channels``."""
BREAK_S = 3.0
"""... and longer than this [s]."""


def outline(power: pl.DataFrame, *, points: int = POINTS) -> pl.DataFrame:
    """Thin a power series per device, keep its extremes, break it at gaps.

    Parameters
    ----------
    power
        Readings with ``device``, ``ts_utc``, ``power_w`` [W]; optionally ``scope``.
    points
        Points per device at most.

    Returns
    -------
    pl.DataFrame
        ``scope``, ``device``, ``ts_utc``, ``power_w`` [W], ordered; a null power marks a break.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=i) for i in range(10_000)]
    >>> spiky = [900.0 if i == 7777 else 100.0 for i in range(10_000)]
    >>> thin = outline(pl.DataFrame({"device": "gpu:0", "ts_utc": t, "power_w": spiky}))
    >>> thin.height <= 2000, thin["power_w"].max()
    (True, 900.0)
    """
    keys = ["scope", "device"]
    rows = power if "scope" in power.columns else power.with_columns(pl.lit("").alias("scope"))
    rows = rows.select(*keys, "ts_utc", "power_w").drop_nulls().sort(*keys, "ts_utc")
    if rows.is_empty():
        return rows
    bins = max(points // 3, 1)  # two points and perhaps a break a bin
    step_s = pl.col("ts_utc").diff().over(keys).dt.total_microseconds() / 1e6
    first, last = pl.col("ts_utc").min().over(keys), pl.col("ts_utc").max().over(keys)
    width_us = ((last - first).dt.total_microseconds() // bins + 1).clip(1)
    rows = rows.with_columns(
        step_s.alias("step_s"),
        ((pl.col("ts_utc") - first).dt.total_microseconds() // width_us).alias("bin"),
        (width_us / 1e6).alias("width_s"),
    )
    limit_s = pl.max_horizontal(
        pl.col("step_s").median().over(keys) * BREAK_PERIODS, pl.lit(BREAK_S), pl.col("width_s")
    )
    rows = rows.with_columns((pl.col("step_s") > limit_s).fill_null(False).alias("breaks"))
    just_before = (pl.col("ts_utc") - pl.duration(microseconds=1)).alias("ts_utc")
    breaks = rows.filter("breaks").select(*keys, just_before, pl.lit(None, pl.Float64).alias("power_w"))
    most = rows.group_by(*keys).len()["len"].max()
    ends = [rows]
    if isinstance(most, int) and most > points - 2 * breaks.height:
        at = (pl.col("power_w").arg_min(), pl.col("power_w").arg_max())
        ends = [rows.group_by(*keys, "bin").agg(pl.col("ts_utc", "power_w").get(i)) for i in at]
    kept = pl.concat([e.select(*keys, "ts_utc", "power_w") for e in ends]).unique()
    return pl.concat([kept, breaks]).sort(*keys, "ts_utc")


def summed(power: pl.DataFrame, *, points: int = 20_000) -> pl.DataFrame:
    """Add the devices of a scope for drawing, each held until its next reading.

    Parameters
    ----------
    power
        Readings with ``device``, ``ts_utc``, ``power_w`` [W].
    points
        Instants at most.

    Returns
    -------
    pl.DataFrame
        ``ts_utc``, ``power_w`` [W], from where every device has spoken.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> rows = [("gpu:0", t, 100.0), ("gpu:1", t, 50.0), ("gpu:0", t + timedelta(seconds=1), 80.0)]
    >>> summed(pl.DataFrame(rows, schema=["device", "ts_utc", "power_w"], orient="row"))["power_w"].to_list()
    [150.0, 130.0]
    """
    rows = power.select("device", "ts_utc", "power_w").drop_nulls().sort("ts_utc")
    instants = rows.select("ts_utc").unique().sort("ts_utc")
    instants = instants.gather_every(max(-(-instants.height // points), 1))
    total = instants.with_columns(pl.lit(0.0).alias("power_w"))
    for one in rows.partition_by("device", include_key=False):
        held = instants.join_asof(one, on="ts_utc")
        total = total.with_columns(pl.col("power_w") + held["power_w"])
    return total.drop_nulls()


def shares(intervals: pl.DataFrame, *, name: str, edges_s: pl.Series) -> pl.DataFrame:
    """Return the share of time that each named kind of interval takes of every bin.

    Parameters
    ----------
    intervals
        ``start_s`` and ``end_s`` [s], and the column ``name``. Intervals of one name do not overlap.
    edges_s
        Edges of the bins [s], rising.

    Returns
    -------
    pl.DataFrame
        One column per name with ratios 0 to 1, one row per bin.

    Examples
    --------
    >>> rows = pl.DataFrame({"phase": ["forward", "backward"], "start_s": [0.0, 5.0], "end_s": [5.0, 20.0]})
    >>> shares(rows, name="phase", edges_s=pl.Series([0.0, 10.0, 20.0])).rows()
    [(0.5, 0.5), (0.0, 1.0)]
    """
    edges = edges_s.to_numpy()
    made = {}
    for key in intervals[name].unique(maintain_order=True):
        of = intervals.filter(pl.col(name) == key).sort("start_s")
        start, end = of["start_s"].to_numpy(), of["end_s"].to_numpy()
        done = np.concatenate([[0.0], np.cumsum(end - start)])
        x = np.stack([start, end], axis=1).ravel()
        y = np.stack([done[:-1], done[1:]], axis=1).ravel()
        made[key] = np.clip(np.diff(np.interp(edges, x, y)) / np.diff(edges), 0.0, 1.0)
    return pl.DataFrame(made)
