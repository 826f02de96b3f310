"""Reports of ``perf stat`` in one file, as ``--append`` writes them: when each began, and how long its command ran."""

from __future__ import annotations

import re
from datetime import datetime

import polars as pl

from joulebook_pipelines.logs.contract import Log, LogRefusedError
from joulebook_pipelines.logs.sections import Carried

STARTED = r"^# started on \w{3} (\w{3}\s+\d+ \d\d:\d\d:\d\d \d{4})"
ELAPSED = r"^\s*([\d.,]+)\s+(?:\+-\s+[\d.,]+\s+)?seconds time elapsed"
_FORM = "%b %d %H:%M:%S %Y"


def first_start(log: Log) -> datetime | None:
    """Return the local time at which the first command began, where the file says it.

    Raises
    ------
    LogRefusedError
        That time does not exist.
    """
    found = re.search(STARTED, log.head.text, re.MULTILINE)
    try:
        return datetime.strptime(re.sub(r"\s+", " ", found[1]), _FORM) if found else None
    except ValueError:
        raise LogRefusedError(
            f"{log.name}: the time of its start ({found[0] if found else ''!r}) does not exist"
        ) from None


def _since(start: datetime | None) -> pl.Expr:
    """Return the seconds from the first start to the one that a line of ``raw`` tells; null where it tells none."""
    told = pl.col("raw").str.extract(STARTED, 1).str.replace_all(r"\s+", " ")
    began = told.str.to_datetime(_FORM, time_unit="us", strict=False)
    return (began - pl.lit(start, pl.Datetime("us"))).dt.total_seconds()


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
