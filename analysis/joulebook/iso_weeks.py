"""ISO weeks as text: 2026-W47 is the week that begins on Monday, 16 November 2026."""

from __future__ import annotations

import datetime as dt

import polars as pl


def of_instant(stamp: pl.Expr) -> pl.Expr:
    """Return the ISO week of a UTC time stamp as text.

    Examples
    --------
    >>> pl.select(of_instant(pl.lit(dt.datetime(2027, 1, 1, tzinfo=dt.UTC)))).item()
    '2026-W53'
    """
    return stamp.dt.strftime("%G-W%V")


def monday(week: str) -> dt.date:
    """Return the first day of an ISO week.

    Raises
    ------
    ValueError
        It is no ISO week.

    Examples
    --------
    >>> monday("2026-W47")
    datetime.date(2026, 11, 16)
    """
    year, mark, number = week.partition("-W")
    try:
        if not (mark and len(year) == 4 and len(number) == 2):
            raise ValueError
        return dt.date.fromisocalendar(int(year), int(number), 1)
    except ValueError:
        raise ValueError(f"{week!r} is no ISO week; write it as 2026-W47") from None


def before(week: str, count: int) -> list[str]:
    """Return the names of the weeks before a week, oldest first.

    Examples
    --------
    >>> before("2027-W01", 2)
    ['2026-W52', '2026-W53']
    """
    first = monday(week)
    return [(first - dt.timedelta(weeks=i)).strftime("%G-W%V") for i in range(count, 0, -1)]
