"""The power readings of a study, kept in memory between the questions of the stages where they are few enough."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

CELL_BYTES = 8
"""Memory of a number or a stamp [bytes]."""

FEW_DEVICES = 16
"""Devices of a file up to which each is picked out of the rows, in half the time that it takes to group them."""

Frames = dict[str, pl.DataFrame]


class KeptReadings:
    """Readings of whole channels, by file and device, in order of time on the file's own clock.

    Each is asked of the database once: a run's readings, and those of the next stage, are then cut out without a copy.
    Nothing is kept until :meth:`allow` says how much may be.
    """

    def __init__(self) -> None:
        self._most_bytes = 0
        self._of_source: dict[int, Frames] = {}

    def allow(self, most_bytes: int) -> None:
        """Keep readings from now on, where all of a study's are at most so many bytes."""
        self._most_bytes = most_bytes

    def forget(self) -> None:
        """Read them again when they are next asked for: readings were written or taken out."""
        self._of_source.clear()

    def has_room(self, rows: int, columns: int) -> bool:
        """Return whether so many readings with so many columns may be kept."""
        return 0 < rows * columns * CELL_BYTES <= self._most_bytes

    def known(self, source_id: int) -> Frames:
        """Return the channels of a file that are kept, by device."""
        return self._of_source.get(source_id, {})

    def keep(self, source_id: int, frames: Frames) -> None:
        """Keep channels of a file, in order of time; in one piece, since pieces would be joined for each question."""
        own = self._of_source.setdefault(source_id, {})
        for device, rows in frames.items():
            ordered = rows if rows["ts_utc"].is_sorted() else rows.sort("ts_utc", maintain_order=True)
            own[device] = ordered.rechunk()


def by_channel(rows: pl.DataFrame, numbers: Mapping[str, int]) -> Frames:
    """Return the rows of each device, in their order.

    Parameters
    ----------
    rows
        With ``channel_id``.
    numbers
        The number of each device's channel.

    Examples
    --------
    >>> rows = pl.DataFrame({"channel_id": [1, 2, 1], "power_w": [60.0, 65.0, 61.0]})
    >>> {d: r["power_w"].to_list() for d, r in by_channel(rows, {"gpu:0": 1, "gpu:1": 2}).items()}
    {'gpu:0': [60.0, 61.0], 'gpu:1': [65.0]}
    """
    if len(numbers) <= FEW_DEVICES:
        return {d: rows.filter(pl.col("channel_id") == n).drop("channel_id") for d, n in numbers.items()}
    parts = rows.partition_by("channel_id", as_dict=True, include_key=False, maintain_order=True)
    nothing = rows.clear().drop("channel_id")
    return {d: parts.get((n,), nothing) for d, n in numbers.items()}
