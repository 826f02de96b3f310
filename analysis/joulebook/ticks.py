"""One power over the devices of a scope, added tick by tick, stamps untouched: what clocks are compared by."""

from __future__ import annotations

import numpy as np
import polars as pl

from joulebook import totals
from joulebook.schema import UTC

TICK_SHARE = 0.5
"""Share of the sampling period within which readings of several devices belong to one tick: half a period is the
furthest a reading can be from its own tick without being nearer to the next."""

_SCHEMA = {
    "ts_utc": UTC,
    "span_s": pl.Float64,
    "power_w": pl.Float64,
    "devices": pl.UInt32,
}


def total(power: pl.DataFrame) -> pl.DataFrame:
    """Add the devices' power tick by tick.

    A tick holds the readings that follow each other within half a sampling period. A tick in which a device is
    missing has no total: its power is not the power of the scope. Stamps are not moved to a grid.

    Parameters
    ----------
    power
        Readings with ``device``, ``ts_utc``, ``power_w`` [W] and, optionally, ``span_s`` [s].

    Returns
    -------
    pl.DataFrame
        One row per complete tick: ``ts_utc`` (mean stamp of the tick), ``span_s`` [s], ``power_w`` [W] and
        ``devices`` (how many were added), ordered by time.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> rows = [("gpu:0", t, 100.0), ("gpu:1", t + timedelta(milliseconds=2), 50.0)]
    >>> total(pl.DataFrame(rows, schema=["device", "ts_utc", "power_w"], orient="row"))["power_w"].to_list()
    [150.0]
    """
    missing = [c for c in ("device", "ts_utc", "power_w") if c not in power.columns]
    if missing:
        raise ValueError(f"power: no column {', '.join(missing)}; it has {', '.join(power.columns)}")
    span = pl.col("span_s").cast(pl.Float64) if "span_s" in power.columns else pl.lit(None, pl.Float64)
    rows = power.select("device", pl.col("ts_utc").cast(UTC), span.alias("span_s"), "power_w")
    rows = rows.drop_nulls(["ts_utc", "power_w"])
    parts = totals.in_time([own for _, own in totals.by_device(rows)])
    devices = len(parts)
    if devices <= 1:
        return pl.concat([*parts, rows.clear()]).select(*list(_SCHEMA)[:3], pl.lit(1, pl.UInt32).alias("devices"))
    in_turn = _in_turn(parts)
    if in_turn is not None:
        return in_turn
    rows = rows.sort("ts_utc", "device")
    return (
        rows.with_columns(_tick(rows).alias("tick"))
        .group_by("tick", maintain_order=True)
        .agg(
            pl.col("ts_utc").dt.epoch("us").mean().round().cast(pl.Int64).cast(UTC),
            pl.col("span_s").max(),
            pl.col("power_w").sum(),
            pl.col("device").n_unique().cast(pl.UInt32).alias("devices"),
            pl.len().alias("rows"),
        )
        .filter((pl.col("devices") == devices) & (pl.col("rows") == devices))
        .select(list(_SCHEMA))
    )


def _in_turn(parts: list[pl.DataFrame]) -> pl.DataFrame | None:
    """Return the sum where every round of readings plainly holds each device once: nothing to sort or to group then."""
    if len({p.height for p in parts}) > 1 or parts[0].height < 2:
        return None
    stamps = np.stack([p["ts_utc"].dt.timestamp("us").to_numpy() for p in parts])
    first, last = stamps.min(axis=0), stamps.max(axis=0)
    half_us = TICK_SHARE * float(np.median(np.diff(stamps[0]), overwrite_input=True))
    if not ((last - first <= half_us).all() and (first[1:] - last[:-1] > half_us).all()):
        return None
    middle = first + np.rint((stamps - first).mean(axis=0)).astype(np.int64)
    told = [p["span_s"] for p in parts if p["span_s"].null_count() < p.height]
    span = (
        pl.select(pl.max_horizontal(told)).to_series()
        if told
        else pl.Series([None], dtype=pl.Float64).new_from_index(0, first.size)
    )
    return pl.DataFrame({
        "ts_utc": pl.Series(middle).cast(pl.Datetime("us")).dt.replace_time_zone("UTC"), "span_s": span,
        "power_w": np.sum([p["power_w"].to_numpy() for p in parts], axis=0),
        "devices": pl.Series([len(parts)], dtype=pl.UInt32).new_from_index(0, first.size),
    })  # fmt: skip


def _tick(rows: pl.DataFrame) -> pl.Series:
    """Return each row's tick: a new one starts where the step from the previous reading exceeds half of a period.

    The readings of one tick follow each other closely, so the step between neighbours, not the distance from a
    rounded time, separates ticks: no tick is cut by a rounding border. Where the devices are read evenly spread over
    the period there is no such step, and time is cut into periods.
    """
    period = rows.select(pl.col("ts_utc").diff().over("device").dt.total_microseconds().median()).item()
    if not period:
        # one reading of each device: one tick
        return pl.repeat(0, len(rows), eager=True)
    step = rows["ts_utc"].diff().dt.total_microseconds().fill_null(0)
    apart = (step > TICK_SHARE * period).cum_sum()
    since = rows["ts_utc"].dt.epoch("us") - rows["ts_utc"].dt.epoch("us")[0]
    spread = int(apart[-1]) + 1 < TICK_SHARE * int(since[-1]) / period
    return pl.Series((since / period).floor().cast(pl.Int64)) if spread else pl.Series(apart)
