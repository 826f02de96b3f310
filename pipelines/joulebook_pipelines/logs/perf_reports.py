"""Reports of ``perf stat`` in one file, as ``--append`` or a loop writes them: when each began, and how long its command ran."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

import polars as pl

from joulebook_pipelines.logs import prefixes, stamp_lines
from joulebook_pipelines.logs.contract import Block, Log, LogRefusedError
from joulebook_pipelines.logs.sections import Carried
from joulebook_pipelines.logs.text import head as head_of

STARTED = r"^# started on \w{3} (\w{3}\s+\d+ \d\d:\d\d:\d\d(?:\.\d{1,6})? \d{4})"
ELAPSED = r"^\s*([\d.,]+)\s+(?:\+-\s+[\d.,]+\s+)?seconds time elapsed"
_FORM = "%b %d %H:%M:%S%.f %Y"
_OF_REPORT = re.compile(r"^\s+\S|^# started|^$")
"""Lines of perf, which hold no stamp of a collector."""


def first_start(log: Log) -> datetime | None:
    """Return the local time at which the first command began, where the file says it.

    Raises
    ------
    LogRefusedError
        That time does not exist.
    """
    found = re.search(STARTED, log.head.text, re.MULTILINE)
    try:
        plain = "" if found is None else re.sub(r"\s+", " ", found[1])
        return datetime.strptime(plain, _FORM.replace("%.f", ".%f" if "." in plain else "")) if plain else None
    except ValueError:
        raise LogRefusedError(
            f"{log.name}: the time of its start ({found[0] if found else ''!r}) does not exist"
        ) from None


def is_dated(log: Log) -> bool:
    """Tell whether a collector wrote the time before each report, as ``date; perf stat …`` in a loop does."""
    first = re.search(ELAPSED, log.head.text, re.MULTILINE)
    if first is None or re.search(STARTED, log.head.text, re.MULTILINE):
        return False
    above = log.head.text[: first.start()].split("\n")
    return any(stamp_lines.stands_alone(line) for line in above if not _OF_REPORT.match(line))


@contextmanager
def dated(log: Log) -> Generator[Log]:
    """Give the file with the collector's times as perf writes the starts of its reports, in UTC; line numbers stay.

    Raises
    ------
    LogRefusedError
        The stamps carry no zone, or no day, and study.toml names none.
    """
    found = stamp_lines.find(log, _OF_REPORT, of_day=True)

    def started(lines: list[str]) -> list[str]:
        texts = pl.DataFrame({"raw": lines})
        if found is None:
            return lines
        stamp, rest, _ = found.split(pl.col("raw"))
        own = ~pl.col("raw").str.contains(_OF_REPORT.pattern) & (rest.str.strip_chars() == "")
        told = texts.with_columns(stamp=pl.when(own).then(stamp))
        utc = found.utc(told, pl.col("stamp")).dt.strftime("# started on %a %b %d %H:%M:%S%.6f %Y")
        return told.select(pl.coalesce(utc, "raw")).to_series().to_list()

    def rows(block: Block) -> list[bytes]:
        return [line.encode() for line in started(block.lines)]

    in_utc = replace(log, options=replace(log.options, timezone="UTC", utc_offset_s=None))
    with prefixes.copied(in_utc, rows, log.head) as copy:
        yield replace(copy, head=head_of(copy.path, log.name))


def _since(start: datetime | None) -> pl.Expr:
    """Return the seconds from the first start to the one that a line of ``raw`` tells; null where it tells none."""
    told = pl.col("raw").str.extract(STARTED, 1).str.replace_all(r"\s+", " ")
    began = told.str.to_datetime(_FORM, time_unit="us", strict=False)
    return (began - pl.lit(start, pl.Datetime("us"))).dt.total_microseconds() / 1e6


def totals(text: str, log: Log) -> pl.DataFrame:
    """Return the reports of totals: ``line`` of the time elapsed at the end of each, ``since`` the first start and ``elapsed`` [s].

    Raises
    ------
    LogRefusedError
        No report says how long its command ran, or several do and not each says when it began.
    """
    lines = (
        pl.DataFrame({"raw": text.split("\n")})
        .with_row_index("line", offset=1)
        .with_columns(pl.col("line").cast(pl.Int64))
    )
    elapsed = pl.col("raw").str.extract(ELAPSED, 1).str.replace_all(",", "").cast(pl.Float64, strict=False)
    ends = lines.with_columns(_since(first_start(log)).alias("since"), elapsed=elapsed)
    ends = ends.with_columns(report=pl.col("elapsed").is_not_null().cast(pl.Int64).cum_sum().shift(1, fill_value=0))
    found = ends.group_by("report", maintain_order=True).agg(
        pl.col("line").filter(pl.col("elapsed").is_not_null()).first(), pl.col("since").drop_nulls().last(),
        pl.col("elapsed").drop_nulls().first(),
    ).filter(pl.col("elapsed").is_not_null())  # fmt: skip
    if found.is_empty():
        raise LogRefusedError(
            f"{log.name}: the totals lack the line of the time elapsed, so they are energies of an unknown time"
        )
    lost = found.filter(pl.col("since").is_null())
    if found.height > 1 and lost.height:
        raise LogRefusedError(
            f"{log.name}: {found.height} reports of perf stat in one file, and the one that ends in line {lost['line'][0]} does not "
            "say when it began; perf stat -o FILE --append writes it. Or make a file of each, or a table of the runs "
            "(run_id,start_time,end_time,energy_j)"
        )
    return found.with_columns(pl.col("since").fill_null(0)).select("line", "since", "elapsed").sort("line")


class Begun:
    """The report that each line of a log of intervals belongs to, carried over the ends of blocks."""

    def __init__(self, log: Log) -> None:
        self._start = first_start(log)
        self._carried = Carried("since")

    def placed(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Return lines with ``since``, the seconds [s] from the first start to that of their report."""
        return self._carried.down(lines.with_columns(_since(self._start).alias("since"))).with_columns(
            pl.col("since").fill_null(0)
        )
