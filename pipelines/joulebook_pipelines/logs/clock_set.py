"""Lines under a clock that was not set, as rejects and findings, whatever they tell of."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from joulebook import own_time
from joulebook.findings import Finding, Severity
from joulebook.wording import counted

RULE = "clock-not-set"

UNDATED = frozenset({"relative-time", "no-times", "times-assumed", "one-moment"})
"""Findings of logs that have no date, which are laid on 1970."""


def split(lines: pl.DataFrame, stamp: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the lines of the log's own time, and the others; lines without a stamp stay.

    Parameters
    ----------
    lines
        All lines of a log, with ``line`` and the column ``stamp`` [UTC].
    """
    known = lines.select("line", ts_utc=stamp).drop_nulls()
    stray = own_time.stray_days(own_time.by_day(known))
    if stray.is_empty():
        return lines, lines.clear()
    gone = pl.col(stamp).dt.truncate("1d").is_in(stray.implode()).fill_null(value=False)
    return lines.filter(~gone), lines.filter(gone)


def finding(name: str, gone: pl.DataFrame, what: str, stamp: str) -> Finding:
    """Say that lines were set aside because their stamps cannot be right.

    Parameters
    ----------
    name
        The file.
    gone
        ``line`` and ``stamp`` of each, in file order.
    what
        What each of them is: ``reading``, ``step``.
    """
    first = gone.row(0, named=True)
    return Finding(
        RULE, Severity.WARNING, name,
        f"{counted(gone.height, what)} set aside: stamped {first[stamp]:%Y-%m-%d} (first line {first['line']}), more than a year from the "
        "rest of the log. The clock was not set then (a start without a battery, before the time was fetched): what they say is in no "
        "number. If they are of that time in truth, put them into a file of their own.",
        {f"{what}s": gone.height, "line": first["line"]},
    )  # fmt: skip


def never(name: str, last_utc: datetime | None, codes: set[str]) -> tuple[Finding, ...]:
    """Say that all stamps of a log are of a clock that nobody set, where the log is not one without dates (told by ``codes``)."""
    if last_utc is None or last_utc >= own_time.UNSET_BEFORE or codes & UNDATED:
        return ()
    return (Finding(
        "clock-never-set", Severity.WARNING, name,
        "All stamps are of 1970: the clock behind them was never set. The steps between them are used, so energies hold, but nothing can "
        "be compared in time with other files. If another column tells the time, name it: columns = { time = … }.",
    ),)  # fmt: skip
