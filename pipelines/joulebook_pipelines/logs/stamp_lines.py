"""Stamps that a collector writes between the outputs of a tool that prints none: own lines, or before each line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

import polars as pl

from joulebook_pipelines.logs import local_time, relative, stamps
from joulebook_pipelines.logs.contract import Log, LogRefusedError

_DAY, _MONTH = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)", r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
FORMS = {
    "iso": r"\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\s?[AaPp][Mm]\b)?(?:\s?(?:Z|[+-]\d\d:?\d\d|UTC|GMT)\b)?",
    "date": rf"{_DAY}[a-z]*,?\s+(?:{_MONTH}[a-z]*\s+\d{{1,2}}|\d{{1,2}}\s+{_MONTH}[a-z]*),?(?:\s+\d{{4}})?\s+\d{{1,2}}:\d\d:\d\d"
    r"(?:\s+[AP]M)?(?:\s+[A-Z]{1,5})?(?:\s+\d{4})?",
    "slashed": stamps.SLASHED,
    "epoch": r"(?:1\d{12}|1\d{9}(?:\.\d{1,9})?)\b",
    "ts": rf"{_MONTH}\s+\d{{1,2}}\s+\d\d:\d\d:\d\d(?:\.\d{{1,6}})?(?=\s)",
}
"""What a collector writes: ``date -Is`` and the like, plain ``date``, that of Windows, ``date +%s``, ``ts`` of moreutils (which has no
year)."""

OF_DAY = rf"\d{{1,2}}:\d\d:\d\d(?:[.,]\d{{1,9}})?{stamps.HALF_DAY}"
"""What ``date +%T`` and ``date +%r`` write; looked for where nothing else is a stamp."""

_POLARS = {**FORMS, "of-day": OF_DAY, "ts": FORMS["ts"].removesuffix(r"(?=\s)") + r"\b"}
"""The same without a look ahead."""

LEAD = r"^[\s#=*\[<>-]*(?:(?i:date|time|timestamp|ts|stamp|at)\s*[:=]\s*)?"
TAIL = r"[\]\s#=*>,;|]*(?:-{2,}\s*)?(.*)$"
_BROKEN = r"^\s*(?:(?:#|={3,}|\*{3,}|-{3,}).*(?:\d{4}-|\d\d:|:\d\d)|\[?\d{4}[-/]|1\d{8,12}\b)"
"""How a line begins that was meant as a stamp, whatever became of it."""

_UTC_TAIL = r"\s*(?:UTC|GMT)$"

_UTC_NAMES = frozenset({"UTC", "GMT", "Z"})


@dataclass(frozen=True)
class StampLines:
    """How a file's collector stamps are written.

    Parameters
    ----------
    pattern
        Groups: the stamp, the rest of its line.
    style
        ``iso``, ``date``, ``slashed``, ``epoch``, ``ts`` or ``of-day``.
    form
        As in :mod:`joulebook_pipelines.logs.stamps`.
    clock
        Turns naive stamps into UTC.
    began
        Day of the first line, where the stamps have no year.
    """

    pattern: str
    style: str
    form: stamps.StampForm
    clock: local_time.Localiser
    began: date | None = None
    of_day: relative.OfDay | None = None

    def split(self, texts: pl.Expr) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
        """Return the stamp (null where none), the rest of the line, and whether a line was meant as a stamp."""
        stamp = texts.str.extract(self.pattern, 1)
        rest = pl.when(stamp.is_not_null()).then(texts.str.extract(self.pattern, 2)).otherwise(texts)
        return stamp, rest, stamp.is_not_null() | texts.str.contains(_BROKEN)

    def naive(self, texts: pl.Expr) -> pl.Expr:
        """Return naive datetimes (UTC where ``form.aware``)."""
        if self.style == "date":
            return printed(texts)
        if self.began is not None:
            return _in_year(texts, self.began)
        return stamps.parse(texts.str.replace(_UTC_TAIL, "Z"), self.form)

    def utc(self, frame: pl.DataFrame, texts: pl.Expr) -> pl.Series:
        """Return the moments of the stamps of a frame as ``ts_utc``; those of times of day in the order of the file."""
        if self.of_day is not None:
            return self.of_day.utc(frame.select(texts.alias("t")).to_series()).alias("ts_utc")
        return self.clock.utc(frame, self.naive(texts))


def printed(texts: pl.Expr) -> pl.Expr:
    """Return the naive datetimes of what ``date`` and ``ctime`` print, in any order of day and year."""
    month = texts.str.extract(rf"({_MONTH})", 1)
    day = texts.str.extract(r"(?:^|[\s,])(\d{1,2})(?:[\s,]|$)", 1)
    year = texts.str.extract(r"(?:^|[\s,])(\d{4})(?:\s|$)", 1)
    time = texts.str.extract(r"(\d{1,2}:\d\d:\d\d)", 1)
    half = texts.str.extract(r"\s([AP]M)(?:\s|$)", 1)
    date = pl.concat_str(year, month, day, separator=" ")
    whole = pl.concat_str(date, time, separator=" ").str.to_datetime("%Y %b %d %H:%M:%S", time_unit="us", strict=False)
    halved = pl.concat_str(date, time, half, separator=" ").str.to_datetime(
        "%Y %b %d %I:%M:%S %p", time_unit="us", strict=False
    )
    return pl.when(half.is_null()).then(whole).otherwise(halved)


def _in_year(texts: pl.Expr, began: date) -> pl.Expr:
    """Return the naive datetimes of stamps without a year: a month before that of the first line lies in the next one."""
    months = {m: i for i, m in enumerate(_MONTH.strip("(?:)").split("|"), 1)}
    month = texts.str.slice(0, 3).replace_strict(months, default=None, return_dtype=pl.Int32)
    year = (began.year + (month < began.month).cast(pl.Int32)).cast(pl.String)
    whole = pl.concat_str(year, texts.str.replace_all(r"\s+", " "), separator=" ")
    return whole.str.to_datetime("%Y %b %d %H:%M:%S%.f", time_unit="us", strict=False)


def find(log: Log, ignore: re.Pattern[str], *, of_day: bool = False) -> StampLines | None:
    """Return how the collector stamps of a file are written, ``None`` where it has none.

    Parameters
    ----------
    log
        The file.
    ignore
        Lines of the tool itself that hold a time.
    of_day
        Times of day are stamps as well, where there are no others.

    Raises
    ------
    LogRefusedError
        The stamps carry no zone and study.toml names none, or their form cannot be known.
    """
    found: dict[str, list[tuple[int, str]]] = {}
    for number, line in enumerate(log.head.lines, 1):
        if ignore.search(line):
            continue
        for style, form in FORMS.items():
            match = re.match(f"{LEAD}({form}){TAIL}", line)
            if match:
                found.setdefault(style, []).append((number, match[1]))
                break
    if not found:
        return _times_of_day(log, ignore) if of_day else None
    style = max(found, key=lambda s: len(found[s]))
    first, sample = found[style][0]
    texts = [t for _, t in found[style][:200]]
    began = None
    if style == "ts":
        if log.options.date is None:
            raise LogRefusedError(
                f"{log.name}:{first}: the stamps ({sample!r}) have no year; add date = 2026-03-02 (the day of its first line) to this "
                "[[source]]"
            )
        began, form_ = date.fromisoformat(log.options.date), stamps.StampForm("ts", aware=False)
    elif style == "date":
        zones = {m[1] for t in texts if (m := re.search(r":\d\d(?:\s+[AP]M)?\s+([A-Z]{1,5})(?:\s|$)", t))}
        form_ = stamps.StampForm("date", aware=bool(zones) and zones <= _UTC_NAMES)
    else:
        form_ = local_time.form(log, [re.sub(_UTC_TAIL, "Z", t) for t in texts])
    clock = local_time.localiser(log, form_, first, sample)
    return StampLines(f"{LEAD}({_POLARS[style]}){TAIL}", style, form_, clock, began)


def stands_alone(line: str) -> bool:
    """Tell whether a line holds a stamp and nothing else."""
    forms = (*FORMS.values(), OF_DAY)
    return any((m := re.match(f"{LEAD}({form}){TAIL}", f"{line} ")) and not m[2].strip() for form in forms)


def _times_of_day(log: Log, ignore: re.Pattern[str]) -> StampLines | None:
    """Return how times of day are written that begin lines, ``None`` where none do.

    Raises
    ------
    LogRefusedError
        study.toml does not give the day of the first line, or the zone.
    """
    lines = ((n, line) for n, line in enumerate(log.head.lines, 1) if not ignore.search(line))
    first = next(((n, m[1]) for n, line in lines if (m := re.match(f"{LEAD}({OF_DAY}){TAIL}", line))), None)
    if first is None:
        return None
    clock = relative.OfDay(log, *first)
    form_ = stamps.StampForm("of-day", aware=False)
    return StampLines(f"{LEAD}({OF_DAY}){TAIL}", "of-day", form_, local_time.Localiser(None), of_day=clock)
