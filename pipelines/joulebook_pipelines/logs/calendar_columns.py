"""Times that are spread over several columns: a year, a month, a day, an hour; or digits of the second beside a time of day."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

_CALENDAR = (
    ("year", ("year", "yyyy", "yr", "jahr")), ("month", ("month", "mon", "mo", "monat")), ("day", ("day", "dd", "dom", "tag")),
    ("hour", ("hour", "hr", "hh", "stunde")), ("minute", ("minute", "min", "minutes")),
    ("second", ("second", "sec", "seconds", "ss", "sekunde")),
)  # fmt: skip
"""The parts of a moment, each with the titles that name it alone."""

FEWEST = 4
"""A moment to the hour: a year, a month and a day alone are a date, which has a form of its own."""

MILLIS = ("millisecond", "milliseconds", "millis", "msec", "ms", "millisekunden")
"""Titles of milliseconds; they belong behind a time of day where none counts to a thousand."""

OF_SECOND = r"^\d{1,3}$"
"""Milliseconds within a second."""


def of_titles(titles: Sequence[str]) -> tuple[int, ...]:
    """Return the places of year, month, day, hour and what is finer; empty where titles do not name them in full.

    Examples
    --------
    >>> of_titles(["year", "month", "day", "hour", "minute", "power_w"])
    (0, 1, 2, 3, 4)
    >>> of_titles(["Date", "hour", "power_w"])
    ()
    """
    bare = [t.strip().strip("#").strip().casefold() for t in titles]
    places: list[int] = []
    for _, names in _CALENDAR:
        at = next((bare.index(n) for n in names if n in bare), None)
        if at is None:
            break
        places.append(at)
    return tuple(places) if len(places) >= FEWEST else ()


def is_part(title: str) -> bool:
    """Tell whether a title names a part of a moment and nothing else.

    Examples
    --------
    >>> is_part("Hour"), is_part("Date")
    (True, False)
    """
    return any(title.strip().casefold() in names for _, names in _CALENDAR)


def millis(titles: Sequence[str]) -> int | None:
    """Return the place of a column of milliseconds, ``None`` where there is none."""
    bare = [t.strip().casefold() for t in titles]
    return next((bare.index(n) for n in MILLIS if n in bare), None)


def joined(columns: Sequence[str]) -> pl.Expr:
    """Return the stamps of columns of year, month, day, hour …; a part that is no number makes a stamp that cannot be read."""
    year, *parts = (_digits(c) for c in columns)
    clock = [*parts[2:], *[pl.lit("00")] * (5 - len(parts))]
    return pl.concat_str(year, *parts[:2], separator="-") + pl.lit(" ") + pl.concat_str(clock, separator=":")


def with_millis(stamps: pl.Expr, column: str) -> pl.Expr:
    """Return stamps with the milliseconds of their own column behind them; what is no such number makes one that cannot be read."""
    digits = _cell(column)
    told = pl.when(digits.str.contains(OF_SECOND)).then(pl.lit(".") + digits.str.zfill(3))
    return stamps + told.otherwise(pl.lit("?") + digits)


def _cell(column: str) -> pl.Expr:
    """Return the text of a part without the nought behind a point that spreadsheets add."""
    return pl.col(column).fill_null("").str.strip_chars(' "').str.replace(r"\.0*$", "")


def _digits(column: str) -> pl.Expr:
    return _cell(column).str.replace(r"^(\d)(\.|$)", "0${1}${2}")
