"""Stamps in the spellings of spreadsheets, mails, Java and locales, as the plain ones that the rest of the reading knows."""

from __future__ import annotations

import polars as pl

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMES = f"((?i:{'|'.join(_MONTHS)}))[a-z]*"
_DAY = r"(?:(?i:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+)?"
_DAY_FIRST = rf"^{_DAY}(\d{{1,2}})[-/. ]{_NAMES}\.?,?[-/. ](\d{{4}})(.*)$"
_SHORT_YEAR = rf"^(\d{{1,2}})[-/. ]{_NAMES}[-/. ](\d{{2}})( .*)?$"
_MONTH_FIRST = rf"^{_DAY}{_NAMES}\.?[-/ ](\d{{1,2}})(?:,? |[-/])(\d{{4}}),?(.*)$"
_YEAR_LAST = rf"^{_DAY}{_NAMES} +(\d{{1,2}}) (\d{{1,2}}:\d{{2}}:\d{{2}}\S*)( [A-Z]{{2,5}})? (\d{{4}})$"
_WORDS = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|[A-Z]{3,4}\)?$"

MONTH = r"^(\d{4})[-/](\d{2})$"
"""A month as a stamp; it becomes the first of it."""

_NAME = r"([A-FH-Z][A-Z]{1,3}T|MSK|WET)"
_ZONE = rf"^(.*(?:\d|[AaPp][Mm]))\s+{_NAME}$"
_BESIDE_OFFSET = r"([+-]\d{2}:?\d{2})\s+\(?[A-Z]{2,5}\)?$"
"""Go and mail write the name of the zone behind its offset."""

_OFFSETS = {
    "CET": "+01:00", "CEST": "+02:00", "EET": "+02:00", "EEST": "+03:00", "WET": "+00:00", "WEST": "+01:00", "MSK": "+03:00",
    "EST": "-05:00", "EDT": "-04:00", "CDT": "-05:00", "MDT": "-06:00", "PST": "-08:00", "PDT": "-07:00", "JST": "+09:00",
    "KST": "+09:00", "AEST": "+10:00", "AEDT": "+11:00", "HKT": "+08:00", "SGT": "+08:00",
}  # fmt: skip
"""Short names of one zone only. CST, IST, BST, MST and others are of several: they say nothing, and the study's zone holds."""

_COMPACT = r"^(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])[T ]?([01]\d|2[0-3])([0-5]\d)([0-5]\d)([.,]\d+)?(Z|[+-]\d{2}:?\d{2})?$"
"""All stamps must have it: nanoseconds since a start may look like this here and there."""

_TIGHT = r"^(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])[T_ -](\d{2}:\d{2}:\d{2}.*)$"
"""A date without dashes before a time with colons."""

_DOTS = r"^(\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4})([ T])(\d{1,2})\.(\d{2})(?:\.(\d{2}))?$"
"""Finnish, Danish and Italian clocks have points."""

_BARE = r"(^|[ T:])(\d)(:|[.,]\d|$| ?[AaPp][Mm])"
_DATE = r"(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{2,4})"
_LOOSE = rf"^(?:{_DATE}[ T])?(?:\d{{1,2}}:\d:\d{{1,2}}|\d{{1,2}}:\d{{1,2}}:\d)(?:[.,]\d+)?(?: ?[AaPp][Mm])?$"
"""Clocks of microcontrollers have no zeros before minutes and seconds below ten."""

_DASHES = r"^(\d{4}[-./]\d{2}[-./]\d{2})[_-](\d{2})[:_-](\d{2})[:_-](\d{2})([.,]\d+)?$"
_HOUR = r"^(\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4}) (\d{1,2})$"
"""A day and the number of its hour, as utilities write them."""

_SIGNED = r"^(\d{4})\s*[年년]\s*(\d{1,2})\s*[月월]\s*(\d{1,2})\s*[日일]\s*"
_HALVES = ((r"上午|午前|오전|\b[aA]\.\s?[mM]\.?", "AM"), (r"下午|午後|오후|\b[pP]\.\s?[mM]\.?", "PM"))
"""Halves of the day in Chinese, Japanese and Korean, and with points as Spanish writes them."""

_COMMA = r"^(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}),\s*"
"""What JavaScript writes behind a date."""

_FEW = 2_000
"""Stamps that are looked at for a spelling: a log keeps to one."""


def plain(text: pl.Series) -> pl.Series:
    """Return stamps with months as numbers, and known short names of zones as offsets.

    Examples
    --------
    >>> plain(pl.Series(["15-Mar-2026 10:00:00", "Mar 5, 2026 10:00:00 PM", "2026-03-02 10:00:00 CET"])).to_list()
    ['2026-03-15 10:00:00', '2026-03-05 10:00:00 PM', '2026-03-02 10:00:00+01:00']
    >>> plain(pl.Series(["Tue, 05 Mar 2024 10:00:00 +0100", "5.3.2024 10.00.07"])).to_list()
    ['2024-03-05 10:00:00 +0100', '5.3.2024 10:00:07']
    >>> plain(pl.Series(["2026/3/13 下午 10:00:07", "13/03/2026 10:00:07 p. m.", "3/13/2026, 9:00:07 AM"])).to_list()
    ['2026/3/13 10:00:07 PM', '13/03/2026 10:00:07 PM', '3/13/2026 9:00:07 AM']
    >>> plain(pl.Series(["13/Mar/2026:10:00:07 +0100"])).to_list()
    ['2026-03-13 10:00:07 +0100']
    >>> plain(pl.Series(["20240305T100000Z"])).to_list()
    ['2024-03-05 10:00:00Z']
    >>> plain(pl.Series(["20240305T10:00:07", "Apr-09-2024 08:18", "2024/7/9 14:3:5", "4:3:5 PM"])).to_list()
    ['2024-03-05 10:00:07', '2024-04-09 08:18', '2024/7/9 14:03:05', '04:03:05 PM']
    """
    text = _western(text)
    few = text.head(_FEW)
    if few.str.contains(MONTH).any():
        text = text.str.replace(MONTH, "${1}-${2}-01")
    if len(few) and few.str.contains(_COMPACT).all():
        return text.str.replace(_COMPACT, "${1}-${2}-${3} ${4}:${5}:${6}${7}${8}")
    for pattern, told in (
        (_TIGHT, "${1}-${2}-${3} ${4}"), (_DOTS, "${1}${2}${3}:${4}:${5}"), (_DASHES, "${1} ${2}:${3}:${4}${5}"),
        (_HOUR, "${1} ${2}:00"),
    ):  # fmt: skip
        if few.str.contains(pattern).any():
            # The point's clock may have no seconds.
            text = text.str.replace(pattern, told).str.strip_suffix(":")
    if few.str.contains(_LOOSE).any():
        text = _padded(text)
    return _without_words(text) if few.str.contains(_WORDS).any() else text


def _padded(text: pl.Series) -> pl.Series:
    """Return stamps whose clocks have two digits for minutes and seconds."""
    for _ in range(2):  # neighbours share their colon
        text = text.str.replace_all(_BARE, "${1}0${2}${3}")
    return text


def _western(text: pl.Series) -> pl.Series:
    """Return stamps with the half of the day as AM or PM behind the time, dashes between the parts of a date, and no comma behind it."""
    few = text.head(_FEW)
    if few.str.contains(_SIGNED).any():
        text = text.str.replace(_SIGNED, "${1}-${2}-${3} ").str.replace_all(r"\s+", " ")
    # A log that begins in the morning goes on in the afternoon.
    if few.str.contains("|".join(p for p, _ in _HALVES)).any():
        for pattern, half in _HALVES:
            before = rf"^(.*?)\s*(?:{pattern})\s*(\d{{1,2}}:.*)$"
            text = text.str.replace(before, f"${{1}} ${{2}} {half}").str.replace(rf"\s*(?:{pattern})\s*$", f" {half}")
    return text.str.replace(_COMMA, "${1} ") if few.str.contains(_COMMA).any() else text


def _without_words(text: pl.Series) -> pl.Series:
    """Return stamps without names of months and zones."""
    told = text.str.replace(_YEAR_LAST, "${1} ${2}, ${5} ${3}${4}")
    told = told.str.replace(_BESIDE_OFFSET, "${1}").str.replace(_ZONE, "${1}<${2}>")
    for name, offset in _OFFSETS.items():
        told = told.str.replace(f"<{name}>", offset, literal=True)
    told = told.str.replace(r"<[A-Z]+>$", "")
    orders = (
        (_DAY_FIRST, "${3}-<${2}>-0${1}${4}"),
        (_SHORT_YEAR, "20${3}-<${2}>-0${1}${4}"),
        (_MONTH_FIRST, "${3}-<${1}>-0${2}${4}"),
    )
    for pattern, order in orders:
        told = told.str.replace(pattern, order)
    told = told.str.replace(r"^(\d{4}-<[A-Za-z]{3}>-)0(\d\d)", "${1}${2}")
    for number, month in enumerate(_MONTHS, 1):
        told = told.str.replace(f"<(?i:{month})>", f"{number:02d}")
    # Web servers write a colon between date and time.
    return told.str.replace(r"^(\d{4}-\d\d-\d\d):(\d\d:)", "${1} ${2}")


def is_month(text: pl.Series) -> bool:
    """Tell whether most stamps are months."""
    return bool(text.str.contains(MONTH).sum() * 2 > len(text))
