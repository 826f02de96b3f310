"""The stamps of a meter's table: what makes them up, in which zone they are, and numbers that are no times."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from zoneinfo import available_timezones

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import calendar_columns, local_time, stamp_spellings, stamps
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Options
from joulebook_pipelines.logs.dialect import Dialect
from joulebook_pipelines.logs.meter_columns import Layout

SPREADSHEET_DAYS = (36_526.0, 73_050.0)
"""Years 2000 to 2099 as spreadsheets number days from 1899-12-30."""

LONGEST_STEP_DAYS = 0.0105
"""A quarter of an hour: a time axis in seconds that begins after half a day and moves by less than 0.01 s a line is none."""

DIGIT_SHARE = 0.2
"""Largest share of the step between rows that the last digit of a day number may stand for."""

LEAST_GROWN, FAR_STEPS = 3, 10.0
"""A part of a log has at least so many rows; lines out of order fall back by a few steps, a new start by more."""

_DATE_ONLY = r"^(\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{2,4}|\d{1,2}[- ][A-Za-z]{3,9}[- ]\d{2,4})$"
_CLOCKS = (
    r"^\d{1,2}:\d{1,2}(:\d{1,2}([.,]\d+)?)?(\s*[AaPp][Mm])?$",
    r"^\d{1,2}[:.]\d{2}([:.]\d{2}([.,]\d+)?)?(\s*[AaPp][Mm])?$",
)
"""Times of day; those with points may be numbers, so colons are looked for first."""


def in_zone(options: Options, zone: str) -> Options:
    """Return the options with the zone or offset that the title of the stamps names."""
    if zone[0] in "+-":
        hours, minutes = zone[1:].split(":")
        return replace(options, utc_offset_s=float(f"{zone[0]}1") * (3600 * int(hours) + 60 * int(minutes)))
    return replace(options, timezone=zone, utc_offset_s=None) if zone in available_timezones() else options


def with_clock(sample: pl.DataFrame, layout: Layout, written: Dialect) -> Layout:
    """Return the layout with the column of the times of day, where the stamps are dates only and no title says more.

    A column of milliseconds that counts beyond a second is none of a time of day.
    """
    if layout.millis is not None:
        within = (
            sample[layout.millis]
            .str.strip_chars(' "')
            .str.replace(r"\.0*$", "")
            .str.contains(calendar_columns.OF_SECOND)
        )
        return layout if within.mean() == 1 else replace(layout, millis=None)
    if len(layout.time) != 1 or layout.end is not None:
        return layout
    dates = sample[layout.time[0]].str.strip_chars(' "')
    if not dates.str.contains(_DATE_ONLY).all() or dates.n_unique() == len(dates):
        return layout
    taken = {*layout.time, layout.device, layout.host, layout.value, layout.unit, *(f.column for f in layout.fields)}
    for clock, column in itertools.product(_CLOCKS, (n for n in written.names if n not in taken)):
        if sample[column].str.strip_chars(' "').str.contains(clock).all():
            return replace(layout, time=(layout.time[0], column))
    return layout


def are_months(sample: pl.DataFrame, layout: Layout) -> bool:
    """Tell whether the stamps are months."""
    if len(layout.time) != 1 or layout.end is not None:
        return False
    return stamp_spellings.is_month(sample[layout.time[0]].str.strip_chars(' "'))


def day_numbers(log: Log, like: list[str]) -> stamps.StampForm | None:
    """Return the form of what a spreadsheet writes for dates, ``None`` where the numbers are none: days since 1899-12-30.

    Raises
    ------
    LogRefusedError
        The spreadsheet wrote so few digits that neighbouring rows cannot be told apart in time.
    """
    days = pl.Series("d", like).str.replace(",", ".", literal=True).cast(pl.Float64, strict=False).drop_nulls()
    if len(days) < 2 or not (days != days.round()).any():
        return None
    first, last = (float(str(days[i])) for i in (0, -1))
    step = (last - first) / (len(days) - 1)
    if not SPREADSHEET_DAYS[0] <= first <= SPREADSHEET_DAYS[1] or not 0 <= step < LONGEST_STEP_DAYS:
        return None
    digits = max(len(re.split(r"[.,]", text)[-1]) if re.search(r"[.,]", text) else 0 for text in like)
    if 10.0**-digits > DIGIT_SHARE * step:
        raise LogRefusedError(
            f"{log.name}: the stamps ({like[0]!r}) are a spreadsheet's day numbers with too few digits to tell the rows apart; give the "
            "column of the times the format YYYY-MM-DD HH:MM:SS in the spreadsheet and save the CSV again"
        )
    return stamps.StampForm("days", aware=False, unit_us=86_400e6)


def about_days(name: str, form: stamps.StampForm) -> tuple[Finding, ...]:
    """Return the finding about stamps that are day numbers."""
    if form.pattern != "days":
        return ()
    return (Finding(
        "spreadsheet-days", Severity.NOTE, name,
        "The stamps are a spreadsheet's day numbers and were read as days since 1899-12-30. A workbook in the calendar of old Macs counts "
        "from 1904 and is 4 years and a day later; energies hold in both.", {},
    ),)  # fmt: skip


def refuse_durations(log: Log, written: Dialect, layout: Layout, like: list[str]) -> None:
    """Seconds since a start only grow; a column of durations does not, and is no time axis."""
    seconds = pl.Series("s", like).str.replace(",", ".", literal=True).cast(pl.Float64, strict=False).drop_nulls()
    steps = seconds.diff().drop_nulls()
    falls = int((steps < 0).sum())
    _refuse_restarts(log, written.titles[written.names.index(layout.time[0])], seconds, steps)
    if falls > 0.05 * len(seconds) or len(seconds) < 2:
        title = written.titles[written.names.index(layout.time[0])]
        raise LogRefusedError(
            f"{log.name}: {title!r} holds small numbers that do not grow from line to line, so they are no times; "
            f"name the column of "
            'the times: columns = { time = "…", power_w = "…" }'
        )


def _refuse_restarts(log: Log, title: str, seconds: pl.Series, steps: pl.Series) -> None:
    """Seconds that begin again after many that grew are those of another start: how far the two lie apart is not known."""
    usual = steps.filter(steps > 0).median()
    falls = [int(i) for i in (steps < 0).arg_true()]
    if not falls or not isinstance(usual, float) or len(seconds) < LEAST_GROWN * (len(falls) + 1):
        return
    at = falls[0]
    if float(steps[at]) > -FAR_STEPS * usual and float(seconds[at + 1]) > 0:
        return
    raise LogRefusedError(
        f"{log.name}: {title!r} starts again: after {seconds[at]:g} comes {seconds[at + 1]:g} (row {at + 2}). The logger was restarted or "
        "two logs were joined, and how long it was away is not told: make a file of each part, "
        "with the day of its start as date = YYYY-MM-DD"
    )


def form_of(log: Log, like: list[str], *, clock_only: bool) -> stamps.StampForm:
    """Return how the stamps are written.

    Raises
    ------
    LogRefusedError
        They are times of day and nobody says the day, or their form cannot be known.
    """
    if clock_only:
        if log.options.date is None:
            raise LogRefusedError(
                f"{log.name}: the stamps ({like[0]!r}) are times of day without a date; add date = YYYY-MM-DD of the "
                f"first line to this [[source]]"
            )
        like = [f"{log.options.date} {t}" for t in like]
    return local_time.form(log, like)
