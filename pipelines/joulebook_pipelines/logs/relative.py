"""Stamps that say less than a moment: seconds since a start, times of day. Laid on a date where study.toml gives one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import local_time, midnight, stamps
from joulebook_pipelines.logs.contract import Log, LogRefusedError
from joulebook_pipelines.logs.local_time import Localiser
from joulebook_pipelines.logs.stamps import StampForm

_ZERO = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Stamping:
    """How the stamps of a file become moments.

    Parameters
    ----------
    naive
        Turns their text into naive datetimes.
    clock
        Turns those into UTC.
    findings
        What is not known of them.
    """

    naive: Callable[[pl.Expr], pl.Expr]
    clock: Localiser
    findings: tuple[Finding, ...] = ()

    def utc(self, frame: pl.DataFrame, text: pl.Expr) -> pl.Series:
        """Return the moments of the stamps of a frame as ``ts_utc``."""
        return self.clock.utc(frame, self.naive(text))


def stamping(log: Log, form: StampForm, line: int, sample: str, *, start: datetime | None = None) -> Stamping:
    """Return how stamps of any form become moments; seconds since a start need to know it.

    Parameters
    ----------
    log
        The file.
    form
        How its stamps are written.
    line, sample
        The first stamp, for messages.
    start
        Local time of the start, where the file says it.

    Raises
    ------
    LogRefusedError
        The stamps carry no zone and study.toml names none.
    """
    if form.pattern != "relative":
        return Stamping(lambda text: stamps.parse(text, form), local_time.localiser(log, form, line, sample))
    if start is None and log.options.date is None:
        return Stamping(lambda text: stamps.parse(text, form), Localiser(None), (unknown_start(log),))
    since = start or datetime.fromisoformat(str(log.options.date))
    clock = local_time.localiser(log, replace(form, aware=False), line, f"{since} + {sample} s")
    return Stamping(lambda text: stamps.parse(text, form) + (since - _ZERO), clock)


def unknown_start(log: Log) -> Finding:
    """Return the finding about seconds since nobody knows when."""
    return Finding(
        "relative-time", Severity.WARNING, log.name,
        "The stamps are seconds since an unknown start; they were laid on 1970-01-01. Energies hold, but nothing can be compared in time "
        "with other files; add date = YYYY-MM-DD of the start to this [[source]].", {},
    )  # fmt: skip


def repeated_hour(log: Log, clock: Localiser) -> tuple[Finding, ...]:
    """Return the finding about stamps in the hour that comes twice, where the order of lines did not tell them apart."""
    if not clock.unresolved_hours:
        return ()
    return (Finding(
        "repeated-hour", Severity.WARNING, log.name,
        f"{clock.unresolved_hours} stamps lie in the hour that comes twice when summer time ends; they were read as the first pass.",
        {"stamps": clock.unresolved_hours},
    ),)  # fmt: skip


class OfDay:
    """Times of day in the order of the file, put on the date of the first and on over midnight.

    Parameters
    ----------
    log
        The file; study.toml must give its date.
    line, sample
        The first time, for messages.

    Raises
    ------
    LogRefusedError
        There is no date or no zone.
    """

    def __init__(self, log: Log, line: int, sample: str) -> None:
        if log.options.date is None:
            raise LogRefusedError(
                f"{log.name}:{line}: the stamps ({sample.strip()!r}) are times of day without a date; add date = YYYY-MM-DD of the first "
                "line to this [[source]]"
            )
        self._date = log.options.date
        form = StampForm("%Y-%m-%d %H:%M:%S%.f", aware=False)
        self._clock = local_time.localiser(log, form, line, sample)
        self._days = midnight.Days()

    def utc(self, text: pl.Series) -> pl.Series:
        """Return the UTC stamps of times such as ``23:59:58``, ``23:59:58.9``, ``23:59:58:900`` or ``11:59:58 PM``."""
        plain = pl.col("t").str.strip_chars().str.replace(r"^(\d{1,2}:\d{2}:\d{2})[,:](\d+)$", "${1}.${2}")
        dated = pl.concat_str(pl.lit(f"{self._date} "), plain)
        halved = text.str.contains(r"(?i)[ap]m\s*$").any()
        form = "%Y-%m-%d %I:%M:%S%.f %p" if halved else "%Y-%m-%d %H:%M:%S%.f"
        dated = dated.str.replace(r"(?i)\s*([ap]m)\s*$", " ${1}") if halved else dated
        naive = text.alias("t").to_frame().select(
            dated.str.to_datetime(form, time_unit="us", strict=False).alias("ts_utc")
        ).to_series()  # fmt: skip
        return self._clock.to_utc(self._days.over(naive))
