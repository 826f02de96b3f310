"""Power of several devices as one series: summed at common times before anything is averaged over time."""

from __future__ import annotations

from typing import Final

import polars as pl

FRAME_COLUMNS: Final = ("device", "ts_utc", "power_w")
"""Columns without which a frame is not a power frame."""


def check(power: pl.DataFrame) -> None:
    """Raise where a frame is not a power frame.

    Parameters
    ----------
    power
        Frame to look at.

    Raises
    ------
    ValueError
        Names the missing columns.

    Examples
    --------
    >>> check(pl.DataFrame({"device": ["gpu:0"], "power_w": [1.0]}))
    Traceback (most recent call last):
    ...
    ValueError: power: column ts_utc is missing; a power frame has device, ts_utc, power_w
    """
    missing = [name for name in FRAME_COLUMNS if name not in power.columns]
    if missing:
        needed = ", ".join(FRAME_COLUMNS)
        raise ValueError(f"power: column {', '.join(missing)} is missing; a power frame has {needed}")


def period_s(power: pl.DataFrame) -> float:
    """Return the usual step between readings of one device [s], 0 where there are fewer than two.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> stamps = [datetime(2026, 11, 2, 1, 0, s, tzinfo=UTC) for s in (0, 2, 4)]
    >>> period_s(pl.DataFrame({"device": "gpu:0", "ts_utc": stamps, "power_w": [1.0, 2.0, 3.0]}))
    2.0
    """
    steps = power.sort("device", "ts_utc").select(
        (pl.col("ts_utc").diff().over("device").dt.total_microseconds() / 1e6).median()
    )
    value = steps.item()
    return 0.0 if value is None else float(value)


def series(power: pl.DataFrame) -> pl.DataFrame:
    """Return one series: the power of all devices together.

    Several devices are averaged within common bins of the usual period, then added; a bin in which a device is silent
    is left out, because a sum without one of its parts is no sum.

    Parameters
    ----------
    power
        Power frame: ``device``, ``ts_utc``, ``power_w`` [W], perhaps ``span_s`` [s] and ``utilization_ratio``.

    Returns
    -------
    polars.DataFrame
        ``ts_utc``, ``power_w`` [W] and ``utilization_ratio`` (null where unknown), in time order, without null power.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> stamp = datetime(2026, 11, 2, 1, tzinfo=UTC)
    >>> power = pl.DataFrame({"device": ["gpu:0", "gpu:1"], "ts_utc": [stamp, stamp], "power_w": [60.0, 65.0]})
    >>> series(power)["power_w"].item()
    125.0
    """
    check(power)
    load = pl.col("utilization_ratio") if "utilization_ratio" in power.columns else pl.lit(None, pl.Float64)
    columns = ("device", "ts_utc", "power_w", load.alias("utilization_ratio").cast(pl.Float64))
    known = power.lazy().filter(pl.col("power_w").is_not_null()).sort("ts_utc").select(*columns).collect()
    devices = known["device"].n_unique()
    if devices <= 1:
        return known.drop("device")
    period_us = max(round(period_s(known) * 1e6), 1)
    binned = known.with_columns(pl.col("ts_utc").dt.truncate(f"{period_us}us")).group_by("ts_utc", "device")
    means = binned.agg(pl.col("power_w").mean(), pl.col("utilization_ratio").mean())
    total = means.group_by("ts_utc").agg(pl.col("power_w").sum(), pl.col("utilization_ratio").mean(), pl.len())
    return total.filter(pl.col("len") == devices).drop("len").sort("ts_utc")
