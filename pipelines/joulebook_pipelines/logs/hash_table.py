"""Tables in blank-separated columns under ``#`` header lines that come again: ``nvidia-smi dmon`` and ``pmon``, ``dcgmi dmon``.

A header line may come again with other columns (another call appended to the file): from there on it is in force. One
that merely looks like the header in force with a word spoilt is damage, and changes nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from joulebook_pipelines.logs import table

UNIT_NAMES = frozenset({"idx", "id", "yyyymmdd", "hh:mm:ss"})
"""First word of the second header line, in lower case: it names units, not columns."""


SPOILT_WORDS = 2
"""A header of the same length that differs in no more words than this from the one in force is the same one, damaged."""


@dataclass(frozen=True)
class Header:
    """Columns in force: names in lower case, and the units below them (``""`` where none)."""

    names: tuple[str, ...]
    units: tuple[str, ...]


def words(line: str) -> list[str]:
    """Return the words of a header line in lower case, without its sign; ``--format csv`` puts commas between them."""
    return line.strip().lstrip("#").lower().replace(",", " ").split()


def is_units(line: str) -> bool:
    """Tell whether a line names the units below a header: blank-separated, its first word is one of :data:`UNIT_NAMES`."""
    found = words(line)
    return bool(found) and found[0] in UNIT_NAMES


def first(lines: Sequence[str]) -> Header | None:
    """Return the header that comes first: a ``#`` line with a line of units below."""
    for line, below in itertools.pairwise(line for line in lines if line.strip()):
        if line.lstrip().startswith("#") and len(words(line)) > 1 and not is_units(line) and is_units(below):
            return header(line, below)
    return None


def header(names: str, below: str) -> Header:
    """Return the header of two lines."""
    found, units = words(names), below.strip().lstrip("#").replace(",", " ").split()
    return Header(tuple(found), tuple(units) if len(units) == len(found) else ("",) * len(found))


class Splitter:
    """Splits lines under the header in force.

    Parameters
    ----------
    start
        Header in force where a file begins without one.
    rest_in_last
        The last column may hold blanks (commands).
    """

    def __init__(self, start: Header, *, rest_in_last: bool = False) -> None:
        self._header = start
        self._rest = rest_in_last

    def split(self, lines: pl.DataFrame) -> Iterator[tuple[Header, table.Raw]]:
        """Yield header and lines of each header in force.

        Parameters
        ----------
        lines
            ``line, raw`` and whatever else goes along, blank lines left out.

        Yields
        ------
        tuple
            A header; its lines with a text column ``c0, c1 …`` per column, and the odd ones.
        """
        comment = pl.col("raw").str.strip_chars_start().str.starts_with("#")
        units = pl.col("raw").str.to_lowercase().str.contains(rf"^\s*#?\s*({'|'.join(sorted(UNIT_NAMES))})\b")
        marked = lines.with_columns(_head=comment & ~units, _units=units, _below=pl.col("raw").shift(-1))
        body = marked.filter(~pl.col("_head") & ~pl.col("_units")).drop("_head", "_units", "_below")
        heads = marked.filter("_head").select("line", "raw", "_below")
        behind = body["line"].search_sorted(heads["line"]).to_list()
        found, begins = [self._header], []
        for (number, text, below), at in zip(heads.iter_rows(), behind, strict=True):  # headers only
            made = header(text, below or "")
            row = body["raw"][at] if at < body.height else ""
            if is_units(below or "") and self._takes_over(made, found[-1], row):
                found.append(made)
                begins.append(number)
        self._header = found[-1]
        layouts = list(dict.fromkeys(found))
        which = pl.Series([layouts.index(h) for h in found], dtype=pl.Int64)
        place = pl.Series(begins, dtype=pl.Int64).search_sorted(body["line"])
        body = body.with_columns(_layout=which.gather(place) if body.height else pl.lit(0))
        for i, layout in enumerate(layouts):
            rows = body.filter(pl.col("_layout") == i).drop("_layout")
            if rows.height:
                yield layout, self._cells(rows, len(layout.names))

    def _takes_over(self, made: Header, current: Header, row: str) -> bool:
        """Tell whether a header is another one, not the one in force with a word spoilt; ``row`` is the line behind it."""
        width, words_ = len(made.names), len(row.replace(",", " ").split())
        if width == len(current.names):
            differing = sum(a != b for a, b in zip(made.names, current.names, strict=True))
            return differing == 0 or differing > SPOILT_WORDS
        return words_ >= width if self._rest else words_ == width

    def _cells(self, rows: pl.DataFrame, width: int) -> table.Raw:
        names = [f"c{i}" for i in range(width)]
        text = pl.col("raw").str.strip_chars()
        if self._rest:
            pattern = r"^" + r"(\S+?),?\s+" * (width - 1) + r"(.*)$"
            parts = rows.with_columns(text.str.extract_groups(pattern).struct.rename_fields(names).alias("_s")).unnest(
                "_s"
            )
            regular = pl.col("c0").is_not_null()
            return table.Raw(parts.filter(regular), parts.filter(~regular))
        parts = rows.with_columns(_s=text.str.replace_all(r"[\s,]+", " ").str.split(" "))
        regular = pl.col("_s").list.len() == width
        cells = [pl.col("_s").list.get(i, null_on_oob=True).alias(n) for i, n in enumerate(names)]
        good = parts.filter(regular).with_columns(cells).drop("_s")
        return table.Raw(good, parts.filter(~regular))
