"""Time stamps: which form a file uses, and which moments its texts are.

A stamp is either read by one pattern for the whole file or not at all; a date that does not exist is not rolled over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

HALF_DAY = r"(?:\s?[AaPp][Mm]\b)?"
"""What a clock of twelve hours writes behind the time; a stamp that is read without it is half a day off."""

ISO = rf"\d{{4}}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?{HALF_DAY}(?:Z|[+-]\d\d:?\d\d)?"
"""How a line of text holds a whole stamp."""

SLASHED = rf"\b\d{{1,2}}/\d{{1,2}}/\d{{4}} \d{{1,2}}:\d\d:\d\d{HALF_DAY}"
"""The same as Windows writes it."""

_TIME = r"[ T]\s*(\d{1,2}):(\d{2})(:(\d{2})([.,:]\d+)?)?(\s*[AaPp][Mm])?"
_OFFSET = r"\s*(Z|[+-]\d{2}(?::?\d{2})?|UTC|GMT)?"
_YMD = re.compile(rf"^(\d{{4}})([-/.])(\d{{1,2}})[-/.](\d{{1,2}})({_TIME})?{_OFFSET}$")
_XXY = re.compile(rf"^(\d{{1,2}})([-/.])(\d{{1,2}})[-/.](\d{{4}}|\d{{2}})({_TIME})?{_OFFSET}$")
_COMPACT = re.compile(r"^(\d{8})[ T](\d{2}):(\d{2}):(\d{2})$")
_CTIME = re.compile(r"^[A-Z][a-z]{2} [A-Z][a-z]{2}\s+\d{1,2} \d{2}:\d{2}:\d{2}( UTC| GMT)? \d{4}$")
_OF_DAY = re.compile(r"^\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?(\s*[AaPp][Mm])?$")
_NUMBER = re.compile(r"^\d+([.,]\d+)?$")
_DIGITS = re.compile(r"^20\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-3])[0-5]\d[0-5]\d$")
"""Date and time of day as digits alone: nanoseconds since a start may look so here and there, not in every line."""

_SCIENTIFIC = re.compile(r"^\d[.,]\d+[eE]\+?\d+$")

EPOCH_2000_S = 946_684_800
"""Numbers from here on are taken for Unix time: no log is older, and no relative clock runs for thirty years."""

EPOCH_UNITS_US = (1e6, 1e3, 1.0, 1e-3)
"""Unix time is counted in seconds, milliseconds, microseconds or nanoseconds; their ranges do not meet."""

LAST_EPOCH_S = 4_102_444_800
"""The year 2100: a number beyond is damage."""

SPREADSHEET_EPOCH_DAYS = 25_569
"""1970-01-01 as spreadsheets number days, from 1899-12-30."""

_FIXED = 19
"""Width of ``YYYY-mm-dd HH:MM:SS``."""


class StampError(ValueError):
    """The form of the stamps cannot be known; the message says what to add to study.toml."""


@dataclass(frozen=True)
class StampForm:
    """How the stamps of a file are written.

    Parameters
    ----------
    pattern
        A strptime pattern, or ``epoch`` / ``relative`` / ``days`` (of a spreadsheet) for plain numbers.
    aware
        The stamps carry their own offset, or are Unix time.
    unit_us
        For numbers: microseconds per unit.
    fixed
        The first 19 characters are date and time, digits of a second follow: the fast way to read them.
    odd_fraction
        Digits of a second follow a comma or a colon.
    """

    pattern: str
    aware: bool
    unit_us: float = 0.0
    fixed: bool = False
    odd_fraction: bool = False


def detect(samples: Sequence[str], *, day_first: bool | None = None) -> StampForm:
    """Return the form that all the samples have.

    Parameters
    ----------
    samples
        Some stamps of the file, not empty.
    day_first
        For ``a/b/year``: whether the day comes first, where the user says so.

    Raises
    ------
    StampError
        Day and month cannot be told apart, or the stamps have no known form.

    Examples
    --------
    >>> detect(["2026/11/02 09:01:17.000"]).pattern
    '%Y/%m/%d %H:%M:%S%.f'
    """
    texts = [s.strip() for s in samples if s.strip()]
    if not texts:
        raise StampError("there is no time stamp to read")
    if all(_DIGITS.match(t) for t in texts):
        return StampForm("%Y%m%d%H%M%S", aware=False)
    if all(_NUMBER.match(t) for t in texts):
        return _number_form([float(t.replace(",", ".")) for t in texts])
    if all(_CTIME.match(t) for t in texts):
        zone = _zone_of_all([m[1] or "" for t in texts if (m := _CTIME.match(t))])
        return StampForm(f"%a %b %e %H:%M:%S{zone} %Y", aware=bool(zone))
    if all(_COMPACT.match(t) for t in texts):
        return StampForm("%Y%m%d %H:%M:%S", aware=False)
    years = [m for t in texts if (m := _YMD.match(t))]
    if years and len(years) * 2 >= len(texts):
        return _form([m.group(0) for m in years], years, f"%Y{years[0][2]}%m{years[0][2]}%d", groups=5)
    others = [m for t in texts if (m := _XXY.match(t))]
    if len(others) * 2 > len(texts):
        return _day_month_form(others, day_first)
    if _SCIENTIFIC.match(texts[0]):
        raise StampError(
            f"the time stamp {texts[0]!r} was rounded by a spreadsheet: its seconds are lost; export the log again without opening "
            "it in one"
        )
    raise StampError(f"cannot read the time stamp {texts[0]!r}; name the time column with columns = {{ time = … }}")


def is_time_of_day(text: str) -> bool:
    """Tell whether a stamp is a time without a date."""
    return bool(_OF_DAY.match(text.strip()))


def _zone_of_all(zones: Sequence[str]) -> str:
    """Return the zone that all stamps name, ``""`` where they name none.

    Raises
    ------
    StampError
        Some name one and some do not.
    """
    if len(set(zones)) > 1:
        raise StampError("some time stamps name a zone and others do not; give the file in one form")
    return zones[0]


def _number_form(values: list[float]) -> StampForm:
    top = max(values)
    for unit_us in EPOCH_UNITS_US:
        scale = 1e6 / unit_us
        if EPOCH_2000_S * scale <= top < 4 * EPOCH_2000_S * scale + EPOCH_2000_S * scale:
            return StampForm("epoch", aware=True, unit_us=unit_us)
    return StampForm("relative", aware=True, unit_us=1e6)


def _day_month_form(matches: list[re.Match[str]], day_first: bool | None) -> StampForm:
    sep, first, second = matches[0][2], [int(m[1]) for m in matches], [int(m[3]) for m in matches]
    if day_first is None:
        if max(first) > 12:
            day_first = True
        elif max(second) > 12:
            day_first = False
        elif sep == ".":
            day_first = True  # a dotted date is day-month-year in every locale that writes one
        else:
            raise StampError(
                f"{matches[0][0]!r}: day and month cannot be told apart; add day_first = true or false to this [[source]]"
            )
    order = ("%d", "%m") if day_first else ("%m", "%d")
    year = "%Y" if len(matches[0][4]) == 4 else "%y"
    return _form([m[0] for m in matches], matches, sep.join((*order, year)), groups=5)


def _form(texts: list[str], matches: list[re.Match[str]], date: str, *, groups: int) -> StampForm:
    time, offset = matches[0][groups], matches[0][groups + 7]
    if time is None:
        return StampForm(date, aware=False)
    half_day, fraction = matches[0][groups + 6], matches[0][groups + 5]
    clock = "%H:%M" if matches[0][groups + 3] is None else "%H:%M:%S"
    if half_day:
        clock = clock.replace("%H", "%I")
    sub = "%.f" if clock.endswith("%S") else ""
    odd = (fraction or "").startswith((":", ","))
    tail = " %p" if half_day else ""
    pattern = f"{date}{time[0]}{clock}{sub}{tail}"
    two_digits = all(len(m[0]) >= _FIXED and m[3] and len(m[3]) == 2 for m in matches)
    # What stands behind the digits of the second is not looked at the fast way, so halves of the day go the slow one.
    fixed = two_digits and date.startswith("%Y") and sub != "" and not odd and not half_day
    if offset is None:
        return StampForm(pattern, aware=False, fixed=fixed, odd_fraction=odd)
    plain = all(t.endswith("Z") for t in texts)
    return StampForm(pattern + ("" if plain else "%#z"), aware=True, fixed=fixed and plain, odd_fraction=odd)


def parse(column: pl.Expr, form: StampForm) -> pl.Expr:
    """Return naive datetimes [µs] (UTC where ``form.aware``); null where a stamp does not fit or does not exist."""
    text = column.str.strip_chars()
    if form.pattern in {"epoch", "relative", "days"}:
        number = text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
        number = number - SPREADSHEET_EPOCH_DAYS if form.pattern == "days" else number
        us = within_epoch((number * form.unit_us).round(), form)
        if form.pattern == "epoch":  # some loggers change from seconds to milliseconds with an update
            others = [u for u in EPOCH_UNITS_US if u != form.unit_us]
            us = pl.coalesce(us, *(within_epoch((number * u).round(), form) for u in others))
        return us.cast(pl.Int64, strict=False).cast(pl.Datetime("us"))
    if form.odd_fraction:
        text = text.str.replace(r"(:\d{2}:\d{2})[,:](\d+)", "${1}.${2}")
    if form.fixed:
        return _parse_fixed(text, form)
    pattern = form.pattern
    if form.aware and not pattern.endswith("%#z"):
        text = text.str.strip_suffix("Z")
    if pattern.endswith("%#z"):
        text = text.str.replace(r"\s*(?:UTC|GMT|Z)$", "+0000")
    parsed = text.str.to_datetime(pattern, time_unit="us", strict=False)
    return parsed.dt.replace_time_zone(None) if pattern.endswith("%#z") else parsed


def within_epoch(us: pl.Expr, form: StampForm | None) -> pl.Expr:
    """Return microseconds, null where Unix time lies outside of what a log can hold."""
    if form is None or form.pattern != "epoch":
        return us
    return pl.when(us.is_between(EPOCH_2000_S * 1e6, LAST_EPOCH_S * 1e6)).then(us)


def _parse_fixed(text: pl.Expr, form: StampForm) -> pl.Expr:
    """Read date and time once per distinct second (cached) and the digits behind it as a number: thrice as fast."""
    text = text.str.strip_suffix("Z") if form.aware else text
    seconds = text.str.head(_FIXED).str.to_datetime(form.pattern.replace("%.f", ""), time_unit="us", strict=False)
    digits = text.str.slice(_FIXED + 1).str.head(6).str.pad_end(6, "0").cast(pl.Int64, strict=False)
    dot = text.str.slice(_FIXED, 1)
    return pl.when(dot.is_in(["", "."])).then(seconds + pl.duration(microseconds=digits))
