"""Stamps whose decimal comma is the separator of the table as well: what ``date -Ins`` and Python's logging write into a CSV.

Each row then has one cell more than there are titles, and the second one begins with the digits of the second before it.
Such a file is read as if a point stood there. Lines keep their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from joulebook_pipelines.logs import dialect, prefixes
from joulebook_pipelines.logs.contract import Block, Head, Log

LINES, LEAST_SHARE, TITLES_WITHIN = 200, 0.9, 20
"""Lines that are looked at, the share of the rows that must be so, and the lines within which the titles stand."""

_TO_SECONDS = r"^([ \t]*\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d)"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)"
_SPLIT = re.compile(rf"{_TO_SECONDS},(\d{{3}}(?:\d{{3}}){{0,2}}{_ZONE}?)(?=,)")
_SPLIT_WITH_ZONE = re.compile(rf"{_TO_SECONDS},(\d{{3}}(?:\d{{3}}){{0,2}}{_ZONE})(?=,)")
"""A zone behind digits makes them part of a stamp, whatever the titles say."""

_IN_BYTES = re.compile(_SPLIT.pattern.encode(), re.MULTILINE)


def found(head: Head) -> bool:
    r"""Tell whether the stamps of a table are split by its separator.

    Examples
    --------
    >>> rows = "2026-03-02 10:00:00,250,71.5\n2026-03-02 10:00:01,250,71.5\n"
    >>> found(Head("p.csv", "time,power_w\n" + rows, "utf-8", True))
    True
    >>> found(Head("p.csv", "time,memory,power_w\n" + rows, "utf-8", True))
    False
    """
    lines = [line for line in head.lines[:LINES] if line.strip()]
    if not head.complete:
        lines = lines[:-1]
    if _mostly(lines, _SPLIT_WITH_ZONE):
        return True
    at = next((i for i, line in enumerate(lines[:TITLES_WITHIN]) if _SPLIT.match(line)), None)
    if at is None:
        return False
    if at == 0:
        return _mostly(lines, _SPLIT) and _padded(lines)
    titles = dialect.split_line(lines[at - 1], ",")
    rows = [line for line in lines[at:] if len(dialect.split_line(line, ",")) == len(titles) + 1]
    named = len(titles) > 1 and not any(map(dialect.is_number, titles))
    return named and len(rows) >= LEAST_SHARE * len(lines[at:]) and _mostly(rows, _SPLIT)


def _mostly(lines: list[str], pattern: re.Pattern[str]) -> bool:
    return bool(lines) and sum(bool(pattern.match(line)) for line in lines) >= LEAST_SHARE * len(lines)


def _padded(lines: list[str]) -> bool:
    """Tell whether the digits behind the second are of one width, some with a nought in front: so no number of its own is written."""
    digits = [m[2] for line in lines if (m := _SPLIT.match(line))]
    return len(set(map(len, digits))) == 1 and any(d.startswith("0") for d in digits)


def plain(head: Head) -> Head:
    """Return the head of the file with whole stamps."""
    return replace(head, text="\n".join(_SPLIT.sub(r"\1.\2", line, count=1) for line in head.lines))


@contextmanager
def joined(log: Log) -> Generator[Log]:
    """Give the file with whole stamps, as a copy that is deleted afterwards."""

    def rows(block: Block) -> list[bytes]:
        return _IN_BYTES.sub(rb"\1.\2", block.data).split(b"\n")[:-1]

    with prefixes.copied(log, rows, plain(log.head)) as copy:
        yield copy
