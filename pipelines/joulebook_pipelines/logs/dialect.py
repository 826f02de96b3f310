"""How a table of text is written: what separates cells, where the header is, whether units have a line of their own.

Found from the beginning of the file, for tables whose titles mean something to the caller. Preambles of instruments,
``sep=;`` lines and comments before the header are passed over.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from joulebook_pipelines.logs import cells
from joulebook_pipelines.logs.contract import Head

SEPARATORS = ("\t", ";", "|", ",")
"""Tried in this order: a comma may also be a decimal sign, so it comes last."""

HEADER_WITHIN = 300
"""Lines in which the header must stand: the longest preambles of instruments have some two hundred."""

LATEST_TITLES = 20
"""Lines in which titles may stand that only the units of the cells below explain."""

FIRST_ROWS = 20
"""Lines from the titles on that tell whether the units may stand in the cells."""

_RULED = re.compile(r"[\s=_+*~-]*")
"""Nothing, or a line drawn under titles."""

_SEP_LINE = re.compile(r"^\s*sep=(.)\s*$", re.IGNORECASE)
_NUMERIC = re.compile(r"^[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?$")
_WITH_UNIT = re.compile(r"^[+-]?\d[\d.,]*(?:[eE][+-]?\d+)?\s*([A-Za-zµ°][A-Za-z]*)$")
_UNITS = {u.lower() for q in cells._FAMILIES for u in cells.units_of(q)} | {
    "s", "ms", "hz", "hh:mm:ss", "yyyy-mm-dd", "yyyymmdd", "idx", "c",
}  # fmt: skip


_NOTES = {
    "",
    "note",
    "notes",
    "comment",
    "comments",
    "remark",
    "remarks",
    "kommentar",
    "bemerkung",
    "bemerkungen",
    "anmerkung",
}


@dataclass(frozen=True)
class Dialect:
    """How a table is written.

    Parameters
    ----------
    separator
        What stands between cells.
    header_line
        Physical line of the titles, from 1; 0 where there are none.
    titles
        Titles as they stand in the file, ``""`` where a column has none.
    units
        What the line of units says, column by column; empty where there is no such line.
    first_line
        Physical line of the first row.
    quoted
        Cells may stand in quotes.
    comma_decimals
        A table of two columns whose decimal comma is also its separator.
    """

    separator: str
    header_line: int
    titles: tuple[str, ...]
    units: tuple[str, ...]
    first_line: int
    quoted: bool = False
    comma_decimals: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns in the raw frame."""
        return tuple(f"c{i}" for i in range(len(self.titles)))


def split_line(line: str, separator: str) -> list[str]:
    """Return the cells of one line, without quotes and blanks around them."""
    if '"' not in line:
        return [c.strip() for c in line.split(separator)]
    try:
        row = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:  # a cell beyond all measure
        row = line.split(separator)
    return [c.strip().strip('"').strip() for c in row]


def is_number(cell: str) -> bool:
    """Tell whether a cell is a bare number in any notation."""
    return bool(_NUMERIC.match(cell))


def find(head: Head, knows: Callable[[Sequence[str]], bool], *, delimiter: str | None = None) -> Dialect | None:
    """Return how the table is written, ``None`` where no line has titles that are known.

    Parameters
    ----------
    head
        Beginning of the file.
    knows
        Whether a line of titles is the header that is looked for.
    delimiter
        What stands between cells, where the user says so.
    """
    lines = _whole_lines(head)
    hint = next((m[1] for line in lines[:5] if (m := _SEP_LINE.match(line))), None)
    choices = (delimiter,) if delimiter else (hint,) if hint else SEPARATORS
    for separator in choices:
        for at, line in enumerate(lines[:HEADER_WITHIN]):
            titles = split_line(line.lstrip("#").strip("\x00"), separator)
            if len(titles) < 2 or any(map(is_number, titles)):
                continue
            if knows(titles):
                return _with_rows(lines, at, titles, separator)
            if at < LATEST_TITLES and _knows_units(_with_rows(lines[: at + FIRST_ROWS], at, titles, separator), knows):
                written = _with_rows(lines, at, titles, separator)
                if _knows_units(written, knows):
                    return written
    return None if delimiter or hint else _of_blanks(lines, knows)


def _of_blanks(lines: Sequence[str], knows: Callable[[Sequence[str]], bool]) -> Dialect | None:
    """Return how a table with blanks between its columns is written: titles over rows of as many words, most of them numbers."""
    for at, line in enumerate(lines[:LATEST_TITLES]):
        titles = line.lstrip("#").split()
        rows = [row.split() for row in lines[at + 1 : at + 20] if not _RULED.fullmatch(row)]
        like = [row for row in rows if len(row) == len(titles) and any(map(is_number, row[1:]))]
        if len(titles) >= 2 and 2 <= len(like) == len(rows) and not any(map(is_number, titles)) and knows(titles):
            return Dialect(" ", at + 1, tuple(titles), (), at + 2)
    return None


def without_header(head: Head, highest: int, *, delimiter: str | None = None) -> Dialect | None:
    """Return how a table without titles is written, ``None`` where no line has as many cells as positions are named.

    Parameters
    ----------
    highest
        Highest position that is needed, from 1.
    """
    lines = _whole_lines(head)
    for separator in (delimiter,) if delimiter else SEPARATORS:
        widths = [len(split_line(line, separator)) for line in lines if line.strip()]
        width = max(set(widths), key=widths.count) if widths else 0
        if width < max(highest, 2):
            continue
        for at, line in enumerate(lines):
            row = split_line(line, separator)
            if len(row) == width and sum(any(ch.isdigit() for ch in c) for c in row) >= 2:
                return Dialect(separator, 0, ("",) * width, (), at + 1, quoted='"' in head.text)
    return None


def looks_headerless(head: Head) -> int:
    """Return the number of cells of a table whose very first line is a row, 0 where the file begins otherwise."""
    first = next((line for line in _whole_lines(head) if line.strip()), "")
    for separator in SEPARATORS:
        row = split_line(first, separator)
        begins = is_number(row[0]) or bool(re.match(r"^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}", row[0]))
        if len(row) >= 2 and begins and any(is_number(c) for c in row[1:]):
            return len(row)
    return 0


def _whole_lines(head: Head) -> tuple[str, ...]:
    lines = head.lines if head.complete or len(head.lines) == 1 else head.lines[:-1]
    return lines[:-1] if lines and not lines[-1] else lines


def _with_rows(lines: Sequence[str], at: int, titles: list[str], separator: str) -> Dialect:
    following = [(i, line) for i, line in enumerate(lines[at + 1 :], at + 1) if line.strip()]
    units: tuple[str, ...] = ()
    if following and _is_unit_row(row := split_line(following[0][1].lstrip("#"), separator), len(titles)):
        units, following = tuple(row), following[1:]
    first = following[0][0] if following else at + 1
    rows = [split_line(line, separator) for _, line in following[:200]]
    wider = [row for row in rows if len(row) == len(titles) + 1]
    more = 2 * len(wider) > len(rows)
    comma = (
        separator == "," and len(titles) == 2 and more and all(re.fullmatch(r"\d{1,3}", row[2]) for row in wider)
        and all(re.fullmatch(r"[+-]?\d+", row[1]) for row in wider)
    )  # fmt: skip
    if more and not comma and all(not row[-1] for row in wider):
        titles = [*titles, ""]
    titles = _without_notes(rows, titles)
    quoted = any('"' in line for _, line in following)
    units = units or _units_in_cells(rows, titles)
    return Dialect(separator, at + 1, tuple(titles), units, first + 1, quoted, comma)


def _without_notes(rows: Sequence[Sequence[str]], titles: list[str]) -> list[str]:
    """Return the titles less those of notes at the end that no row has a cell for: some exports leave them out."""
    width = len(rows[0]) if rows else len(titles)
    lacking = 2 <= width < len(titles) and all(len(row) == width for row in rows)
    return titles[:width] if lacking and all(t.strip().casefold() in _NOTES for t in titles[width:]) else titles


def _knows_units(written: Dialect, knows: Callable[[Sequence[str]], bool]) -> bool:
    """Tell whether the units in the cells make the titles known."""
    return any(written.units) and knows(_with_units(written))


def _with_units(written: Dialect) -> list[str]:
    """Return the titles with the units that the cells below carry."""
    return [f"{t} [{u}]" if u and t else t for t, u in zip(written.titles, written.units, strict=True)]


def _units_in_cells(rows: Sequence[Sequence[str]], titles: Sequence[str]) -> tuple[str, ...]:
    """Return the unit that every number of a column carries, as exports of dashboards write them; empty where none does."""
    found = [unit_of([row[i] for row in rows if len(row) == len(titles)]) for i in range(len(titles))]
    return tuple(found) if any(found) else ()


def unit_of(texts: Sequence[str]) -> str:
    """Return the unit that every number of a column carries behind it, ``""`` where not all carry the same family.

    Examples
    --------
    >>> unit_of(["71.5 W", "", "72 W"]), unit_of(["71.5 W", "72"])
    ('W', '')
    """
    said = [m[1] for c in texts if (m := _WITH_UNIT.match(c)) and m[1].lower() in _UNITS]
    return said[0] if said and len(said) == sum(any(ch.isdigit() for ch in c) for c in texts) else ""


def _is_unit_row(row: list[str], width: int) -> bool:
    said = [bare for c in row if (bare := c.strip("[]() "))]
    return len(row) == width and bool(said) and all(c.lower() in _UNITS or c in {"-", "--"} for c in said)
