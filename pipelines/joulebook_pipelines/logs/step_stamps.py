"""Stamps of lines about steps that say less than a moment: month and day without a year, times of day without a date."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

import polars as pl

from joulebook_pipelines.logs import relative, stamps, wall_clock
from joulebook_pipelines.logs.contract import Log, LogRefusedError

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_YEARLESS = re.compile(r"\d\d/\d\d |[IWEF]\d{4} |[A-Z][a-z]{2} ")
"""How stamps with month and day alone begin: those of detectron2, of glog and of syslog."""

_WHOLE = stamps.StampForm("%Y-%m-%d %H:%M:%S%.f", aware=True, fixed=True)


class Stamps:
    """Makes the stamps of a log whole.

    Parameters
    ----------
    log
        The file; study.toml gives the date of its first stamp where the stamps do not.
    told
        Some stamps of the file, not empty.

    Raises
    ------
    LogRefusedError
        The stamps need a date or a zone that study.toml does not give, or have no known form.
    """

    def __init__(self, log: Log, told: Sequence[str]) -> None:
        self._of_day = (
            relative.OfDay(log, 1, _plain(told[0])) if all(map(stamps.is_time_of_day, map(_plain, told))) else None
        )
        self._began = None if self._of_day else _years(log, told)
        if self._of_day is not None:
            self.form = _WHOLE
            return
        samples = pl.Series("t", list(told)).to_frame().select(_with_year(pl.col("t"), self._began)).to_series()
        self.form = wall_clock.form(log, [t.replace(",", ".") for t in samples.drop_nulls()])

    def whole(self, told: pl.Series) -> pl.Series:
        """Return the stamps of lines, in the order of the file, as text with their date."""
        if self._of_day is None:
            return told.to_frame().select(_with_year(pl.col(told.name), self._began).alias(told.name)).to_series()
        utc = self._of_day.utc(told.str.strip_chars("[( ").fill_null(""))
        return utc.dt.strftime("%Y-%m-%d %H:%M:%S%.6fZ").alias(told.name)


def _plain(text: str) -> str:
    return text.strip("[( ").replace(",", ".")


def _years(log: Log, told: Sequence[str]) -> date | None:
    """Return the day on which stamps without a year begin, ``None`` where they have one.

    Raises
    ------
    LogRefusedError
        They have none, and study.toml does not say it.
    """
    if not _YEARLESS.match(told[0]):
        return None
    if log.options.date is None:
        raise LogRefusedError(
            f"{log.name}: the stamps ({told[0]!r}) have no year; add date = 2026-03-02 (the day of its first step) to this [[source]]"
        )
    return date.fromisoformat(log.options.date)


def _with_year(stamp: pl.Expr, began: date | None) -> pl.Expr:
    """Return stamps with the year of the first: a month before that of the first lies in the next one."""
    if began is None:
        return stamp
    digits = r"^[IWEF]?(\d\d)/?(\d\d) (.*)$"
    named = stamp.str.extract(r"^([A-Z][a-z]{2})\s").replace_strict(
        dict(zip(_MONTHS, range(1, 13), strict=True)), default=None, return_dtype=pl.Int64
    )
    month = pl.coalesce(stamp.str.extract(digits, 1).cast(pl.Int64, strict=False), named)
    day = pl.coalesce(stamp.str.extract(digits, 2), stamp.str.extract(r"^[A-Z][a-z]{2}\s+(\d\d?) ").str.zfill(2))
    time = stamp.str.extract(r"(\d\d:\d\d:\d\d.*)$")
    year = began.year + (month < began.month).cast(pl.Int64)
    return pl.concat_str(
        year.cast(pl.String), pl.lit("-"), month.cast(pl.String).str.zfill(2), pl.lit("-"), day, pl.lit(" "), time
    )
