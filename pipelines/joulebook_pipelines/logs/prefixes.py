"""What collectors write before each line of a log: stamps of Docker, names of pods and hosts, headers of syslog.

Such a file is read as if the prefix were not there. Lines keep their numbers. Rows that have a time keep their own; rows
without one get that of the collector, from the prefix or from the line before them.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import polars as pl

from joulebook_pipelines.logs import stamp_lines, stamps
from joulebook_pipelines.logs.contract import Block, Head, Log, LogRefusedError
from joulebook_pipelines.logs.text import head as head_of

FEWEST_STAMPS = 2
"""One stamp is the time at which a log began, not that of all of its rows."""

LINES, LEAST_SHARE = 200, 0.9
"""Lines that are looked at, and the share of them that must begin alike: a crash leaves a few that do not."""

_ISO = stamps.ISO
_SYSLOG = r"(?:<\d+>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?"
_PREFIXES = (
    re.compile(rf"^{_ISO} (?:stdout|stderr) [FP] "),
    re.compile(rf"^(?:{_ISO}|{_SYSLOG}) (?P<who>[\w.-]+) [\w./-]+(?:\[\d+\])?: ?"),
    re.compile(r"^\[pod/(?P<who>[\w.-]+)/[\w.-]+\] (?:" + _ISO + r" )?"),
    re.compile(r"^(?P<who>[\w.-]+)\s+\| ?"),
    re.compile(r"^(?P<who>[A-Za-z][\w.-]*): "),
    re.compile(r"^ *(?P<who>\d{1,5}): "),
    re.compile(rf"^\[?{_ISO}\]?:? "),
    re.compile(rf"^{_SYSLOG} "),
)
"""From the longest to the shortest: container logs, syslog and journal, kubectl, compose, pdsh, ``srun -l``, stamps of ``ts``."""


def find(head: Head) -> re.Pattern[str] | None:
    r"""Return the prefix that nearly all lines of a file have, ``None`` where they have none.

    Examples
    --------
    >>> find(Head("gpu.log", "n1: timestamp, index\nn1: 2026, 0\n", "utf-8", True)).pattern
    '^(?P<who>[A-Za-z][\\w.-]*): '
    """
    lines = [line for line in head.lines[:LINES] if line.strip()]
    if len(lines) < 2:
        return None
    for pattern in _PREFIXES:
        with_it = [m for line in lines if (m := pattern.match(line)) is not None and m.end() < len(line)]
        if pattern.match(lines[0]) and len(with_it) >= LEAST_SHARE * len(lines):
            return pattern
    return None


def without(head: Head, prefix: re.Pattern[str]) -> Head:
    """Return the head of the file without the prefix."""
    return replace(head, text="\n".join(prefix.sub("", line, count=1) for line in head.lines))


@contextmanager
def stripped(log: Log, prefix: re.Pattern[str]) -> Generator[Log]:
    """Give the file without the prefix, as a copy that is deleted afterwards; line numbers stay."""
    pattern = re.compile(prefix.pattern.encode())

    def plain(block: Block) -> list[bytes]:
        return [pattern.sub(b"", line, count=1) for line in block.data.split(b"\n")[:-1]]

    with copied(log, plain, without(log.head, prefix)) as copy:
        yield copy


def tellers(head: Head, prefix: re.Pattern[str]) -> tuple[str, ...]:
    """Return the machines that the prefix names, in the order in which they come up; none where it names none."""
    if "who" not in prefix.groupindex:
        return ()
    found = (prefix.match(line) for line in head.lines[:LINES])
    return tuple(dict.fromkeys(match["who"] for match in found if match))


def by_host_head(head: Head, prefix: re.Pattern[str]) -> Head:
    """Return the head of a table of several machines with their names as its first column in place of the prefix."""
    titles = _titles_behind(head, prefix)
    return replace(head, text="\n".join(_with_host(line, prefix, titles) for line in head.lines))


@contextmanager
def by_host(log: Log, prefix: re.Pattern[str]) -> Generator[Log]:
    """Give the file with the names in its prefixes as its first column, as a copy that is deleted afterwards; line numbers stay."""
    titles = _titles_behind(log.head, prefix)

    def named(block: Block) -> list[bytes]:
        return [_with_host(line, prefix, titles).encode() for line in block.lines]

    with copied(log, named, by_host_head(log.head, prefix)) as copy:
        yield copy


HOST_TITLE = "hostname"
"""Title of the column of machines."""


def _titles_behind(head: Head, prefix: re.Pattern[str]) -> str:
    """Return the first line behind a prefix that begins no number: the titles of a table."""
    rests = (prefix.sub("", line, count=1).strip() for line in head.lines[:LINES] if prefix.match(line))
    return next((r for r in rests if r and not _NUMBER.search(r)), "")


def _with_host(line: str, prefix: re.Pattern[str], titles: str) -> str:
    match = prefix.match(line)
    if match is None:
        return line
    rest = line[match.end() :].strip()
    sign = max(",;\t", key=titles.count)
    return f"{HOST_TITLE if rest == titles else match['who']}{sign}{rest}" if rest else ""


TITLE = "timestamp"
"""Title of the column that a dated copy has in front."""

_NO_TOOL = re.compile(r"(?!)")
_NUMBER = re.compile(r"(?:^|[\s,;])[-+]?\d")
_OWN_CELL = re.compile(r"^\s*\"?[\d/:. TZ+-]{8,40}\"?\s*[,;\t]\s*\S")
"""A stamp with a separator behind it is a cell of the row itself."""

_BEFORE_CARD = tuple(
    re.compile(rf"{stamp_lines.LEAD}(?:{f})\]?:?\s+\d{{1,3}}\s*[,;\t]") for f in stamp_lines.FORMS.values()
)
"""Not so a stamp with a card's number and then a separator behind it."""

_ANY_STAMP = tuple(re.compile(f"{stamp_lines.LEAD}({f}){stamp_lines.TAIL}") for f in stamp_lines.FORMS.values())


def dated_head(head: Head) -> Head | None:
    """Return the head of a file whose rows have no time of their own, with the stamps between or before them as a column.

    ``None`` where there are no such stamps. Those of the head only stand for the true ones, each later than the one before.
    """
    lines = [line for line in head.lines[:LINES] if line.strip()]
    form = next((f for f in _ANY_STAMP if lines and f.match(lines[0])), None)
    own = lines and _OWN_CELL.match(lines[0]) and not any(f.match(lines[0]) for f in _BEFORE_CARD)
    if form is None or own:
        return None
    rows, stamps, titles = [], 0, _titles(head)
    for line in head.lines:
        match = form.match(line)
        stamps += match is not None
        rows.append(_row(f"{1_700_000_000 + stamps}", match[2] if match else line, titles))
    if stamps < FEWEST_STAMPS:
        return None
    return replace(head, text="\n".join(rows), encoding="utf-8")


def _titles(head: Head) -> str:
    """Return the first line behind the stamps that holds no number: the titles of a table; ``""`` where there is none."""
    rests = ((f.match(line), line) for line in head.lines[:LINES] for f in _ANY_STAMP[:1])
    behind = (match[2].strip() if match else line.strip() for match, line in rests)
    first = next((r for r in behind if r and not any(f.match(r) for f in _ANY_STAMP)), "")
    return "" if _NUMBER.search(first) else first


def _row(stamp: str, rest: str, titles: str) -> str:
    """Return a row with its time in front; the line of titles gets a title, an empty line stays empty."""
    rest = rest.strip()
    return f"{TITLE if rest == titles else stamp},{rest}" if rest else ""


@contextmanager
def dated(log: Log) -> Generator[Log]:
    """Give the file with the collector's stamps as its first column, in UTC; line numbers stay.

    Raises
    ------
    LogRefusedError
        The stamps carry no zone and study.toml names none.
    """
    found = stamp_lines.find(log, _NO_TOOL)
    if found is None:
        raise LogRefusedError(f"{log.name}: its rows have no time")
    last, titles = "", _titles(log.head)

    def rows(block: Block) -> list[bytes]:
        nonlocal last
        texts = pl.DataFrame({"raw": block.lines})
        stamp, rest, _ = found.split(pl.col("raw"))
        told = texts.with_columns(stamp=stamp, rest=rest)
        utc = found.utc(told, pl.col("stamp"))
        iso = utc.dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
        # A line that begins with a stamp that cannot be read has no time, and not that of the stamp before.
        now = pl.when(pl.col("stamp").is_not_null()).then(pl.coalesce("iso", pl.lit("?"))).forward_fill()
        told = told.with_columns(iso=iso).with_columns(now=now.fill_null(last))
        last = str(told["now"][-1]) if told.height else last
        return [_row(t, r, titles).encode() for t, r in told.select("now", "rest").iter_rows()]

    with copied(log, rows, dated_head(log.head) or log.head) as copy:
        yield replace(copy, head=head_of(copy.path, log.name))


@contextmanager
def copied(log: Log, change: Callable[[Block], list[bytes]], head: Head) -> Generator[Log]:
    """Give the file with its lines changed, as a copy that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="joulebook-") as folder:
        copy = Path(folder) / "log"
        with copy.open("wb") as file:
            for block in log.blocks():
                file.write(b"\n".join(change(block)) + (b"\n" if block.terminated else b""))
        yield Log(copy, replace(head, encoding="utf-8"), log.options)
