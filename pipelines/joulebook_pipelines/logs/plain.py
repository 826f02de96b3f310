"""Large tables of plain rows: numbers at machine speed, and everything that is not plain handed back as it stands.

The rows that fit come as columns; runs of lines that do not come as small blocks, for a reader that looks at every cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from joulebook_pipelines.logs import plain_scan
from joulebook_pipelines.logs.contract import Block
from joulebook_pipelines.logs.stamps import StampForm

LEAST_BYTES = 1 << 22
"""Blocks smaller than this are read sooner than the machine code is made for the first time."""

MOST_ODD_RUNS = 16
"""A block with more runs of odd lines is read with care as a whole: each run costs as much as some thousand rows."""

MOST_ODD_BYTES = 1 << 22
"""A run of odd lines longer than this is another table, to be read with care as a whole."""

_PLACES = {"%Y": 4, "%m": 2, "%d": 2, "%H": 2, "%M": 2, "%S": 2}


@dataclass(frozen=True)
class Cell:
    """One cell of every row.

    Parameters
    ----------
    name
        Column of the answer; ``""`` where the cell is only passed over.
    kind
        One of the kinds of :mod:`joulebook_pipelines.logs.plain_scan`.
    text
        The unit that may follow a number, or the word that a label is.
    """

    name: str = ""
    kind: int = plain_scan.SKIPPED
    text: str = ""


@dataclass(frozen=True)
class Rows:
    """Rows that fit.

    Parameters
    ----------
    block
        The lines that they stand in, in case they need a second look.
    frame
        ``line``, the stamps as naive datetimes where there are any, and the numbers.
    words
        By column the number of each row's word in ``texts``.
    texts
        By column the words that were seen so far in the file.
    """

    block: Block
    frame: pl.DataFrame
    words: Mapping[str, np.ndarray]
    texts: Mapping[str, tuple[str, ...]]

    def word(self, name: str, instead: Mapping[str, str] | None = None) -> pl.Series:
        """Return a column of words as text, or what stands in the place of those that occur."""
        texts = [t if instead is None else instead.get(t) for t in self.texts[name]]
        return pl.Series(name, texts, dtype=pl.String).gather(pl.Series(self.words[name]))

    def occurring(self, name: str) -> list[str]:
        """Return the words of a column that these rows have; a word of a damaged line is known, and may be none of them."""
        return [self.texts[name][code] for code in np.unique(self.words[name])]

    def together(self, one: str, other: str) -> list[tuple[str, str]]:
        """Return the pairs of words of two columns that stand in one row, in the order in which the words were first seen."""
        width = len(self.texts[other])
        codes = np.unique(self.words[one].astype(np.int64) * width + self.words[other]).tolist()
        return [(self.texts[one][code // width], self.texts[other][code % width]) for code in codes]

    def first_lines(self, name: str) -> dict[str, str]:
        """Return the first line of each word of a column that occurs in these rows."""
        codes, first = np.unique(self.words[name], return_index=True)
        ends = np.flatnonzero(np.frombuffer(self.block.data, dtype=np.uint8) == ord("\n"))
        starts = [int(ends[i - 1]) + 1 if i else 0 for i in first]
        lines = [
            self.block.data[a : int(ends[i])].decode("utf-8", errors="replace")
            for a, i in zip(starts, first, strict=True)
        ]
        return {self.texts[name][c]: line for c, line in zip(codes, lines, strict=True)}


@dataclass
class Scanner:
    """Reads the plain rows of one file; keeps the words that it has seen.

    Parameters
    ----------
    cells
        The cells of a row, in order.
    separator
        One byte.
    form
        How the stamps are written, if there are any: digits at fixed places.
    """

    cells: Sequence[Cell]
    separator: str
    form: StampForm | None = None

    def __post_init__(self) -> None:
        """Lay out what the machine code works on."""
        texts = [c.text.encode() for c in self.cells]
        self._kinds = np.array([c.kind for c in self.cells], dtype=np.int8)
        self._texts = np.zeros((len(texts), max(map(len, texts), default=0) + 1), dtype=np.uint8)
        for i, text in enumerate(texts):
            self._texts[i, : len(text)] = np.frombuffer(text, dtype=np.uint8)
        self._text_lengths = np.array([len(t) for t in texts], dtype=np.int64)
        self._places, self._between = _layout(
            self.form.pattern if self.form and self.form.fixed else "%Y-%m-%d %H:%M:%S%.f"
        )
        self._numbers = [c.name for c in self.cells if c.kind == plain_scan.NUMBER]
        self._words = [c.name for c in self.cells if c.kind == plain_scan.WORD]
        shape = (len(self._words), plain_scan.MOST_WORDS)
        self._known = np.zeros((*shape, plain_scan.LONGEST_WORD), dtype=np.uint8)
        self._lengths = np.zeros(shape, dtype=np.int64)
        self._states = np.zeros((len(self._words), 2), dtype=np.int64)

    @cached_property
    def _stamp(self) -> str | None:
        return next((c.name for c in self.cells if c.kind == plain_scan.STAMP), None)

    def read(self, block: Block) -> Iterator[Rows | Block]:
        """Yield the rows that fit and, as blocks, the lines that do not, in the order of the file."""
        if len(block.data) < LEAST_BYTES or not block.terminated:
            yield block
            return
        data = np.frombuffer(block.data, dtype=np.uint8)
        count = block.count
        stamps = np.empty(count if self._stamp else 1, dtype=np.int64)
        numbers = np.empty((len(self._numbers), count))
        words = np.empty((len(self._words), count), dtype=np.uint32)
        pieces = self._pieces(data, stamps, numbers, words)
        if pieces is None:
            yield block
            return
        line, begin = block.first_line, 0
        for row, rows, start, end in pieces:
            if rows:
                lines = block if start == len(data) and not begin else Block(line, block.data[begin:start])
                own = slice(row, row + rows)
                yield self._rows(lines, stamps[own], numbers[:, own], words[:, own])
                line += rows
            begin = end
            if end > start:
                odd = Block(line, block.data[start:end])
                yield odd
                line += odd.count

    def _pieces(
        self, data: np.ndarray, stamps: np.ndarray, numbers: np.ndarray, words: np.ndarray
    ) -> list[tuple[int, int, int, int]] | None:
        """Return first row and number of rows, and first and last byte of the odd lines behind; ``None`` for too many."""
        pieces: list[tuple[int, int, int, int]] = []
        at = row = 0
        aware = self.form is not None and self.form.aware
        while at < len(data):
            upto, stop = plain_scan.rows(
                data, at, row, ord(self.separator), self._kinds, self._texts, self._text_lengths, self._places, self._between, aware,
                self._known, self._lengths, self._states, stamps, numbers, words,
            )  # fmt: skip
            behind = stop
            if stop < len(data):
                behind = stop + 1 + int(np.argmax(data[stop : stop + (1 << 16)] == ord("\n")))
                if data[behind - 1] != ord("\n"):  # a line as long as that is no row of a table
                    return None
            if upto == row and pieces:
                pieces[-1] = (*pieces[-1][:3], behind)
                if behind - pieces[-1][2] > MOST_ODD_BYTES:
                    return None
            else:
                pieces.append((row, upto - row, stop, behind))
            if len(pieces) > MOST_ODD_RUNS:
                return None
            at, row = behind, upto
        return pieces

    def _rows(self, block: Block, stamps: np.ndarray, numbers: np.ndarray, words: np.ndarray) -> Rows:
        columns = [
            pl.int_range(block.first_line, block.first_line + numbers.shape[1], eager=True, dtype=pl.Int64).alias(
                "line"
            )
        ]
        if self._stamp:
            columns.append(pl.Series(self._stamp, stamps).cast(pl.Datetime("us")))
        columns += [pl.Series(name, values) for name, values in zip(self._numbers, numbers, strict=True)]
        texts = {
            name: tuple(
                bytes(self._known[i, j, : self._lengths[i, j]]).decode("utf-8", errors="replace")
                for j in range(self._states[i, 0])
            )
            for i, name in enumerate(self._words)
        }
        return Rows(block, pl.DataFrame(columns), dict(zip(self._words, words, strict=True)), texts)


def _layout(pattern: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the offsets of year, month, day, hour, minute and second, and the bytes between them (0: a digit)."""
    places, between, at = {}, np.zeros(19, dtype=np.uint8), 0
    rest = pattern.split("%.f", maxsplit=1)[0]
    while rest:
        if rest[:2] in _PLACES:
            places[rest[:2]] = at
            at, rest = at + _PLACES[rest[:2]], rest[2:]
        else:
            between[at] = ord(rest[0])
            at, rest = at + 1, rest[1:]
    return np.array([places[p] for p in _PLACES], dtype=np.int64), between
