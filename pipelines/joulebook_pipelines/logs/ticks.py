"""Logs without a device column: several lines a sampling round ("tick"), told apart only by their order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

APART = 5.0
"""Steps between ticks are at least this much longer than steps inside one; otherwise the lines are of one device."""

INSIDE_US = 50_000
"""Steps inside a tick are shorter [µs]: one call reads all cards, at some 5 to 30 ms each; longer steps are a poll of one."""

MOST_CARDS = 16
"""No machine holds more cards; a longer row of lines is one card in bursts."""

REGULAR = 0.5
"""Share of the ticks that hold the usual number of lines; with less, the long steps are hiccups in a log of one device."""


def lines_per_tick(stamps_us: Sequence[int]) -> int:
    """Return how many lines a tick has, from the first stamps of a file: 1 for a single device.

    Steps inside a tick are a few milliseconds, steps between ticks the polling interval: five times longer at least.

    Examples
    --------
    >>> lines_per_tick([0, 4, 8, 1000, 1004, 1008, 2000, 2004, 2008])
    3
    """
    times = np.asarray(stamps_us, dtype=np.int64)
    if times.size < 4:
        return 1
    steps = np.diff(times).clip(min=0)
    starts = _starts(steps)
    if starts is None:
        return 1
    sizes = np.diff(np.flatnonzero(np.concatenate(([True], starts))))
    if not sizes.size:
        return 1
    counts = np.bincount(sizes)
    usual = int(counts.argmax())
    inside = np.median(steps[~starts]) < INSIDE_US
    return usual if inside and usual <= MOST_CARDS and counts[usual] >= REGULAR * sizes.size else 1


def _starts(steps: NDArray[np.int64]) -> NDArray[np.bool_] | None:
    """Return where a new tick begins, or ``None`` where the steps do not fall into two groups.

    The split is the one that leaves the least variance of the logarithms within the groups (Otsu): stray steps between
    the groups, from a delayed poll, do not hide it.
    """
    logs = np.log(steps + 1.0)
    counts, edges = np.histogram(logs, bins=200)
    centres = (edges[1:] + edges[:-1]) / 2
    below, above = np.cumsum(counts), counts.sum() - np.cumsum(counts)
    total = np.cumsum(counts * centres)
    with np.errstate(divide="ignore", invalid="ignore"):
        between = below * above * (total / below - (total[-1] - total) / above) ** 2
    if not np.isfinite(between).any():
        return None
    threshold = edges[1 + int(np.nanargmax(between))]
    long = logs > threshold
    if long.all() or not long.any():
        return None
    if np.median(steps[long]) < APART * max(float(np.median(steps[~long])), 1.0):
        return None
    return np.asarray(long)


def assign(stamps: pl.Series, devices: Sequence[str], *, final: bool) -> tuple[pl.DataFrame, int]:
    """Give each line the device of its place in its tick.

    Parameters
    ----------
    stamps
        UTC stamps in file order.
    devices
        Devices of a full tick, in order.
    final
        The file ends with these lines; otherwise the last tick may go on and is left for the next block.

    Returns
    -------
    tuple
        ``device`` per line, null where the tick has another number of lines than there are devices; and how many
        lines at the end belong to a tick that may go on.
    """
    us = stamps.to_physical().cast(pl.Int64).to_numpy()
    steps = np.diff(us).clip(min=0) if us.size > 1 else np.zeros(0, dtype=np.int64)
    found = _starts(steps)
    # Without two groups of steps, equal stamps make a tick (whole-second logs).
    begins = np.concatenate(([True], found if found is not None else steps > 0)) if us.size else np.zeros(0, dtype=bool)
    tick = np.cumsum(begins) - 1
    place = np.arange(us.size) - np.flatnonzero(begins)[tick] if us.size else tick
    size = np.bincount(tick)[tick] if us.size else tick
    names = pl.Series("device", list(devices), dtype=pl.String)
    picked = pl.Series("place", np.where(size == len(devices), place, len(devices)))
    padded = names.append(pl.Series("device", [None], dtype=pl.String))
    open_lines = 0 if final or not us.size else int((tick == tick[-1]).sum())
    return pl.DataFrame({"device": padded.gather(picked.cast(pl.UInt32))}), open_lines
