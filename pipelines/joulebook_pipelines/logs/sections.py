"""Text logs made of sections, each under a line with its time: the lines of a section get the stamp above them."""

from __future__ import annotations

import polars as pl

from joulebook_pipelines.logs.contract import Block


def lines_of(block: Block) -> pl.DataFrame:
    """Return ``line, raw`` of the lines that hold something."""
    return block.numbered().filter(pl.col("raw").str.strip_chars(" \t\r\x00") != "")


class Carried:
    """Fills values of section heads down to the lines below, over the ends of blocks."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._last: dict[str, object] = dict.fromkeys(names)

    def down(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the frame with the named columns filled down; rows before the first head keep null."""
        if frame.is_empty():
            return frame
        filled = frame.with_columns(
            pl.col(n).forward_fill().fill_null(pl.lit(self._last[n], dtype=frame.schema[n])) for n in self._names
        )
        self._last = {n: filled[n][-1] for n in self._names}
        return filled
