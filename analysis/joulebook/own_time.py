"""Which days a log can have been written on: a clock that was not set stamps some of its lines decades from the others."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

SET_FROM = datetime(2001, 1, 2, tzinfo=UTC)
"""Clocks without a battery begin in 1970, 1980 or 2000, until somebody tells them the time."""

SET_UNTIL = datetime(2100, 1, 1, tzinfo=UTC)
"""All bits of a 32-bit clock set are a day in 2106."""

DATED_FROM = datetime(2005, 1, 1, tzinfo=UTC)
"""A line from here on shows that the log itself is of another time than a clock begins at."""

UNSET_BEFORE = datetime(1971, 1, 1, tzinfo=UTC)
"""A log that ends before this was written under a clock that counts from 1970."""

APART_DAYS = 366
"""Days without a line from which on what lies on their two sides is apart: one log is not silent for a year."""

SLIVER_SHARE = 0.02
"""Share of all lines up to which a part that stands out of its order is damage; a log that was put before or behind another has more."""


def by_day(lines: pl.DataFrame) -> pl.DataFrame:
    """Return ``day, rows, first_line, last_line`` of lines with ``line, ts_utc``."""
    days = lines.group_by(day=pl.col("ts_utc").dt.truncate("1d")).agg(
        rows=pl.len().cast(pl.Int64), first_line=pl.col("line").min(), last_line=pl.col("line").max()
    )
    return days.sort("day")


def stray_days(days: pl.DataFrame) -> pl.Series:
    """Return the days that the log cannot have been written on.

    Stray is a day on which no clock stands that was set, where other lines are of a year of logs; and a part of a few lines, apart
    from most of them by more than a year, that stands between them in the file, or out of its order. A long silence alone makes no
    day stray: a log may be continued after years.

    Parameters
    ----------
    days
        As :func:`by_day` returns.

    Returns
    -------
    polars.Series
        ``day``, in order.

    Examples
    --------
    >>> at = [datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)]
    >>> lines = pl.DataFrame({"line": [1, 2, 3], "ts_utc": [at[0], at[1], at[1]]})
    >>> stray_days(by_day(lines)).dt.year().to_list()
    [1970]
    """
    days = days.sort("day")
    dated = days["day"].is_between(DATED_FROM, SET_UNTIL, closed="left").any()
    sound = (
        days["day"].is_between(SET_FROM, SET_UNTIL, closed="left")
        if dated
        else pl.repeat(True, days.height, eager=True)
    )
    unset, kept = days.filter(~sound), days.filter(sound)
    part = (pl.col("day").diff() > pl.duration(days=APART_DAYS)).fill_null(value=False).cum_sum()
    kept = kept.with_columns(part=part)
    parts = kept.group_by("part", maintain_order=True).agg(
        pl.col("rows").sum(), pl.col("first_line").min(), pl.col("last_line").max()
    )
    if parts.height < 2:
        return unset["day"]
    main = parts.row(int(parts["rows"].arg_max() or 0), named=True)
    few = pl.col("rows") <= SLIVER_SHARE * pl.col("rows").sum()
    before = pl.col("last_line") <= main["first_line"]
    behind = pl.col("first_line") >= main["last_line"]
    in_order = pl.when(pl.col("part") < main["part"]).then(before).otherwise(behind)
    stray = parts.filter((pl.col("part") != main["part"]) & ~in_order & (few | ~(before | behind)))["part"]
    return pl.concat([unset["day"], kept.filter(pl.col("part").is_in(stray.implode()))["day"]]).sort()
