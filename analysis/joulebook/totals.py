"""Power of several devices as one series: summed at common times before anything is averaged over time."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from joulebook import ranks

Floats = NDArray[np.float64]

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
    return median_step_s([rows for _, rows in by_device(power)])


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
    known = told(power.select("device", "ts_utc", "power_w", load.alias("utilization_ratio").cast(pl.Float64)))
    devices = [rows for _, rows in by_device(known)]
    if len(devices) <= 1:
        return known.drop("device").sort("ts_utc")
    period_us = max(round(median_step_s(devices) * 1e6), 1)
    devices = in_time(devices)
    total = by_tick(devices, [d["ts_utc"].dt.timestamp("us").to_numpy() // period_us for d in devices])
    stamps = (pl.col("tick") * period_us).cast(pl.Datetime("us")).dt.replace_time_zone("UTC").alias("ts_utc")
    return total.select(stamps, "power_w", "utilization_ratio")


def told(power: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that tell a power; where all do they are not copied, which a filter would do.

    Examples
    --------
    >>> told(pl.DataFrame({"power_w": [1.0, None]})).height
    1
    """
    return power.drop_nulls("power_w") if power["power_w"].null_count() else power


def by_device(power: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Return the rows of each device, in order of name; rows that stand together are not copied.

    Examples
    --------
    >>> frame = pl.DataFrame({"device": ["gpu:1", "gpu:1", "gpu:0"], "power_w": [1.0, 2.0, 3.0]})
    >>> [(name, rows["power_w"].to_list()) for name, rows in by_device(frame)]
    [('gpu:0', [3.0]), ('gpu:1', [1.0, 2.0])]
    """
    if power.is_empty():
        return []
    first, last = power.select(pl.col("device").min(), last=pl.col("device").max()).row(0)
    if first == last and first is not None:  # a column of one name need not be written out to be compared
        return [(first, power)]
    device = power["device"]
    changes = _changes(device)
    names = device.gather(changes).to_list()
    if len(set(names)) == len(names):
        ends = [*changes[1:], power.height]
        parts = {n: power.slice(a, b - a) for n, a, b in zip(names, changes, ends, strict=True)}
    else:
        parts = {str(n): rows for (n,), rows in power.partition_by("device", as_dict=True, maintain_order=True).items()}
    return sorted(parts.items())


def _changes(device: pl.Series) -> list[int]:
    """Return where another name begins. Devices one after another are pieces of one name each, which is soon told."""
    found, at, before = [], 0, None
    for piece in (p for p in device.get_chunks() if len(p)):
        if not at or piece[0] != before:
            found.append(at)
        if not (piece == piece[0]).all():
            found += [at + k + 1 for k in (piece.slice(1) != piece.head(-1)).arg_true()]
        at, before = at + len(piece), piece[-1]
    return found


def between(power: pl.DataFrame, start_utc: datetime, end_utc: datetime) -> pl.DataFrame:
    """Return the readings from one instant to another, both included, without copying them.

    Parameters
    ----------
    power
        ``device`` and ``ts_utc``, each device's rows in order of time.
    start_utc, end_utc
        The instants.

    Examples
    --------
    >>> from datetime import UTC
    >>> stamps = [datetime(2026, 11, 2, 1, 0, s, tzinfo=UTC) for s in (0, 2, 4)]
    >>> between(pl.DataFrame({"device": "gpu:0", "ts_utc": stamps}), stamps[1], stamps[2]).height
    2
    """
    return pl.concat([power.clear(), *cut([r for _, r in by_device(power)], start_utc, end_utc)], rechunk=False)


def cut(devices: list[pl.DataFrame], start_utc: datetime, end_utc: datetime) -> list[pl.DataFrame]:
    """Return what ``between`` does of frames of one device each: for many windows of one log.

    Examples
    --------
    >>> from datetime import UTC
    >>> stamps = [datetime(2026, 11, 2, 1, 0, s, tzinfo=UTC) for s in (0, 2, 4)]
    >>> [rows.height for rows in cut([pl.DataFrame({"ts_utc": stamps})], stamps[1], stamps[2])]
    [2]
    """
    if not devices:
        return []
    start, end = pl.Series([start_utc, end_utc]).cast(devices[0].schema["ts_utc"]).to_physical()
    parts = []
    for rows in devices:
        at = rows["ts_utc"].to_physical().to_numpy()
        first, behind = int(np.searchsorted(at, start)), int(np.searchsorted(at, end, side="right"))
        parts.append(rows.slice(first, max(behind - first, 0)))
    return parts


def inside(stamps: pl.Series, windows: pl.DataFrame, *, ends: bool = True) -> NDArray[np.bool_]:
    """Return which stamps lie in any of some windows.

    Parameters
    ----------
    stamps
        Times in order.
    windows
        ``start_utc``, ``end_utc``.
    ends
        Whether the last instant of a window counts.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> stamps = pl.Series([datetime(2026, 11, 2, 1, 0, s, tzinfo=UTC) for s in range(4)])
    >>> inside(stamps, pl.DataFrame({"start_utc": [stamps[1]], "end_utc": [stamps[2]]})).tolist()
    [False, True, True, False]
    """
    at = stamps.to_physical().to_numpy()
    out = np.zeros(at.size, np.bool_)
    for start, end in windows.select(pl.col("start_utc", "end_utc").cast(stamps.dtype).to_physical()).iter_rows():
        out[np.searchsorted(at, start) : np.searchsorted(at, end, side="right" if ends else "left")] = True
    return out


def in_time(devices: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """Return each device's rows in order of time; what is in order is not copied."""
    return [d if d["ts_utc"].is_sorted() else d.sort("ts_utc", maintain_order=True) for d in devices]


def median_step_s(devices: list[pl.DataFrame]) -> float:
    """Return the usual step between readings of one device [s], 0 where no device has two."""
    steps = [np.diff(d["ts_utc"].to_physical().to_numpy()) for d in in_time(devices)]
    together = np.concatenate(steps) if steps else np.zeros(0)
    return ranks.median(together) / 1e6 if together.size else 0.0


def by_tick(devices: list[pl.DataFrame], ticks: list[NDArray[np.int64]]) -> pl.DataFrame:
    """Add devices tick by tick; a tick that one of them lacks is left out.

    Parameters
    ----------
    devices
        Each device's ``ts_utc``, ``power_w`` [W] and ``utilization_ratio``, in order of time.
    ticks
        The tick of each of their rows.

    Returns
    -------
    polars.DataFrame
        ``tick``, ``ts_utc`` (the first in the tick), ``power_w`` [W] (sum of the devices' means) and
        ``utilization_ratio`` (mean over the devices that tell it), in order.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> one = pl.DataFrame({"ts_utc": [datetime(2026, 11, 2, tzinfo=UTC)], "power_w": [60.0], "utilization_ratio": [0.5]})
    >>> by_tick([one, one], [np.array([3]), np.array([3])])["power_w"].to_list()
    [120.0]
    """
    shortest = min(ticks, key=len)  # a tick that one device lacks is left out in any case
    bins = shortest[np.diff(shortest, prepend=shortest[0] - 1) != 0]
    power, load, loaded, complete = (np.zeros(bins.size) for _ in range(4))
    first_us = np.full(bins.size, np.iinfo(np.int64).max)
    for rows, tick in zip(devices, ticks, strict=True):
        busy = rows["utilization_ratio"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        us, watts = rows["ts_utc"].dt.timestamp("us").to_numpy(), rows["power_w"].cast(pl.Float64).to_numpy()
        _add(bins, tick, us, watts, busy, first_us, power, load, loaded, complete)
    kept = complete == len(devices)
    mean = np.divide(load, loaded, out=np.full(bins.size, np.nan), where=loaded > 0)
    stamps = pl.Series(first_us[kept]).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return pl.DataFrame({
        "tick": bins[kept], "ts_utc": stamps, "power_w": power[kept], "utilization_ratio": pl.Series(mean[kept]).fill_nan(None),
    })  # fmt: skip


@njit(cache=True, nogil=True)
def _add(
    bins: NDArray[np.int64], tick: NDArray[np.int64], us: NDArray[np.int64], watts: Floats, busy: Floats,
    first_us: NDArray[np.int64], power: Floats, load: Floats, loaded: Floats, complete: Floats,
) -> None:  # fmt: skip
    """Add the means of one device's readings in each tick to the sums."""
    at, i = 0, 0
    while i < tick.size:
        first, told, sum_w, sum_load = i, 0, 0.0, 0.0
        while i < tick.size and tick[i] == tick[first]:
            sum_w += watts[i]
            if np.isfinite(busy[i]):
                told += 1
                sum_load += busy[i]
            i += 1
        while at < bins.size and bins[at] < tick[first]:
            at += 1
        if at == bins.size:
            return
        if bins[at] != tick[first]:
            continue
        first_us[at] = min(first_us[at], us[first])
        power[at] += sum_w / (i - first)
        complete[at] += 1
        if told:
            load[at] += sum_load / told
            loaded[at] += 1
