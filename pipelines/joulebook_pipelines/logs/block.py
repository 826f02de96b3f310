"""A block of whole lines of a file, which of its lines is which, and the lines as a column."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl


@dataclass(frozen=True)
class Block:
    r"""Whole lines of a file.

    Parameters
    ----------
    first_line
        Physical number of the first line, from 1.
    data
        UTF-8 with ``\n`` line ends; ends with ``\n`` always.
    terminated
        False for the last block of a file whose last line has no end.
    """

    first_line: int
    data: bytes
    terminated: bool = True

    @cached_property
    def count(self) -> int:
        """Number of physical lines."""
        return int(np.count_nonzero(np.frombuffer(self.data, dtype=np.uint8) == 10))

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends."""
        return self.data.decode("utf-8", errors="replace").split("\n")[:-1]

    @property
    def last_line(self) -> int:
        """Physical number of the last line."""
        return self.first_line + self.count - 1

    @property
    def cut_line(self) -> int:
        """Physical number of a last line that has no end, so that it may be half of itself; -1 where all have one."""
        return -1 if self.terminated else self.last_line

    @property
    def numbers(self) -> pl.Series:
        """``line``: the physical number of each line."""
        return pl.int_range(self.first_line, self.last_line + 1, eager=True, dtype=pl.Int64).alias("line")

    def numbered(self, name: str = "raw") -> pl.DataFrame:
        """Return ``line`` and the text of each line, under the name."""
        return pl.DataFrame({"line": self.numbers, name: self.lines})

    def filled(self, name: str = "raw") -> pl.DataFrame:
        """Return ``line`` and the text of each line that holds anything, under the name."""
        return self.numbered(name).filter(pl.col(name).str.strip_chars() != "")
