"""The number of each channel: a reading is kept with one number in place of its file and the name of its device."""

from __future__ import annotations

import duckdb
import numpy as np
import polars as pl

from joulebook_pipelines.store_tables import READING_CHANNELS
from joulebook_pipelines.turns import in_blocks, in_turn

Channel = tuple[int, str]


class ChannelKeys:
    """Numbers of the channels ``(source_id, device)`` of a store; new ones are written down as they are asked for."""

    def __init__(self, con: duckdb.DuckDBPyConnection) -> None:
        self._con = con
        self._known: dict[Channel, int] | None = None

    def forget(self) -> None:
        """Read them again when they are next asked for: what was written may have been undone."""
        self._known = None

    def known(self) -> dict[Channel, int]:
        """Return the numbers of all channels."""
        if self._known is None:
            rows = self._con.execute(f"select source_id, device, channel_id from {READING_CHANNELS}").fetchall()
            self._known = {(source_id, device): number for source_id, device, number in rows}
        return self._known

    def of_rows(self, source_id: pl.Series, device: pl.Series) -> pl.Series:
        """Return the number of each row's channel.

        Parameters
        ----------
        source_id, device
            File and device of each row.
        """
        one = len(source_id) > 0 and source_id.min() == source_id.max()
        if one and (names := in_blocks(device)):
            numbers = [self._number((int(source_id[0]), d)) for d in names]
            return pl.Series("channel_id", np.repeat(np.array(numbers, np.int32), len(device) // len(names)))
        if one and (turn := in_turn(device)):
            numbers = [self._number((int(source_id[0]), d)) for d in turn]
            repeated = np.tile(np.array(numbers, np.int32), -(-len(device) // len(turn)))
            return pl.Series("channel_id", repeated[: len(device)])
        rows = pl.DataFrame({"source_id": source_id, "device": device})
        pairs = rows.unique(maintain_order=True)
        numbers = [self._number((int(s), d)) for s, d in pairs.iter_rows()]
        numbered = pairs.with_columns(channel_id=pl.Series(numbers, dtype=pl.Int32))
        return rows.join(numbered, on=["source_id", "device"], how="left", maintain_order="left")["channel_id"]

    def _number(self, channel: Channel) -> int:
        known = self.known()
        if channel not in known:
            known[channel] = max(known.values(), default=0) + 1
            self._con.execute(f"insert into {READING_CHANNELS} values (?, ?, ?)", [known[channel], *channel])
        return known[channel]
