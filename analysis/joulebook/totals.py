"""Power of several devices as one series: summed at common times before anything is averaged over time."""

from __future__ import annotations

from typing import Final

import numpy as np
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
    return _median_step_s([rows for _, rows in by_device(power)])


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
    known = power.select(*columns).filter(pl.col("power_w").is_not_null())
    devices = [rows for _, rows in by_device(known)]
    if len(devices) <= 1:
        return known.drop("device").sort("ts_utc")
    period_us = max(round(_median_step_s(devices) * 1e6), 1)
    return _summed(devices, period_us)


def by_device(power: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Return the rows of each device, in order of name; rows that stand together are not copied.

    Examples
    --------
    >>> frame = pl.DataFrame({"device": ["gpu:1", "gpu:1", "gpu:0"], "power_w": [1.0, 2.0, 3.0]})
    >>> [(name, rows["power_w"].to_list()) for name, rows in by_device(frame)]
    [('gpu:0', [3.0]), ('gpu:1', [1.0, 2.0])]
    """
    device = power["device"]
    changes = (device != device.shift()).fill_null(value=True).arg_true().to_list()
    names = device.gather(changes).to_list()
    if power.is_empty():
        return []
    if len(set(names)) == len(names):
        ends = [*changes[1:], power.height]
        parts = {n: power.slice(a, b - a) for n, a, b in zip(names, changes, ends, strict=True)}
    else:
        parts = {str(n): rows for (n,), rows in power.partition_by("device", as_dict=True, maintain_order=True).items()}
    return sorted(parts.items())


def _median_step_s(devices: list[pl.DataFrame]) -> float:
    """Return the usual step between readings of one device [s]."""
    steps = [
        np.diff((d["ts_utc"] if d["ts_utc"].is_sorted() else d["ts_utc"].sort()).to_physical().to_numpy())
        for d in devices
    ]
    together = np.concatenate(steps) if steps else np.zeros(0)
    return float(np.median(together)) / 1e6 if together.size else 0.0


def _summed(devices: list[pl.DataFrame], period_us: int) -> pl.DataFrame:
    """Return the sum of the devices' mean powers in each bin that has them all, and the mean of their utilisations."""
    ticks = [d["ts_utc"].dt.timestamp("us").to_numpy() // period_us for d in devices]
    bins = np.unique(min(ticks, key=len))  # a bin that one device lacks is left out in any case
    power, load, loaded, complete = (np.zeros(bins.size) for _ in range(4))
    for rows, tick in zip(devices, ticks, strict=True):
        at = np.minimum(np.searchsorted(bins, tick), bins.size - 1)
        inside = bins[at] == tick
        at = at[inside]
        count = np.bincount(at, minlength=bins.size)
        power += np.bincount(at, weights=rows["power_w"].to_numpy()[inside], minlength=bins.size) / np.maximum(count, 1)
        complete += count > 0
        busy = rows["utilization_ratio"].fill_null(np.nan).to_numpy()[inside]
        told = np.isfinite(busy)
        tellers = np.bincount(at[told], minlength=bins.size)
        load += np.bincount(at[told], weights=busy[told], minlength=bins.size) / np.maximum(tellers, 1)
        loaded += tellers > 0
    kept = complete == len(devices)
    mean = np.divide(load, loaded, out=np.full(bins.size, np.nan), where=loaded > 0)
    stamps = pl.Series("ts_utc", bins[kept] * period_us).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return pl.DataFrame(
        {"ts_utc": stamps, "power_w": power[kept], "utilization_ratio": pl.Series(mean[kept]).fill_nan(None)}
    )
