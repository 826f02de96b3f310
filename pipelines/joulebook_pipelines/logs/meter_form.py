"""What holds for a whole table of a meter, and its rows and stamps read by that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from joulebook.findings import Finding
from joulebook_pipelines.logs import stamps
from joulebook_pipelines.logs.contract import Block, Log
from joulebook_pipelines.logs.dialect import Dialect
from joulebook_pipelines.logs.meter_columns import Layout

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMES = f"((?i:{'|'.join(_MONTHS)}))[a-z]*"
_DAY_FIRST = rf"^(\d{{1,2}})[-/. ]{_NAMES}\.?,?[-/. ](\d{{4}})(.*)$"
_MONTH_FIRST = rf"^{_NAMES}\.? (\d{{1,2}}),? (\d{{4}}),?(.*)$"
_ZONE = r"^(.*(?:\d|[AaPp][Mm]))\s+(?:[A-FH-Z][A-Z]{1,3}T|MSK)$"
_WORDS = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)|[A-Z]{3,4}$"
MONTH = r"^(\d{4})[-/](\d{2})$"
"""A month as a stamp; it becomes the first of it."""

_APOSTROPHE = r"(\d)['’](\d{3})"


@dataclass(frozen=True)
class Understood:
    """What holds for the whole file.

    Parameters
    ----------
    decimal
        As :func:`joulebook_pipelines.logs.cells.plain_number` takes it.
    clock_only
        Stamps are times of day; ``options.date`` says the day of the first.
    label, span_s
        For values of spans: whether stamps are starts or ends, and the length where it is not in the table.
    months
        Each stamp is a month; its value is of the whole of it.
    """

    dialect: Dialect
    layout: Layout
    form: stamps.StampForm
    clock: stamps.Localiser
    decimal: str
    clock_only: bool = False
    label: str | None = None
    span_s: float | None = None
    months: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def separator(self) -> str:
        """What stands between cells after :func:`prepared`."""
        return "\t" if self.dialect.comma_decimals or self.dialect.separator == " " else self.dialect.separator


def prepared(block: Block, written: Dialect) -> Block:
    """Return the block ready to be split: where a comma is separator and decimal sign, the first one separates.

    Runs of blanks between columns become one tab.
    """
    if written.separator == " ":
        told = pl.Series("raw", block.lines, dtype=pl.String).str.strip_chars(" \r").str.replace_all(r"[ \t]+", "\t")
        return Block(block.first_line, ("\n".join(told.to_list()) + "\n").encode(), block.terminated)
    if not written.comma_decimals:
        return block
    lines = pl.Series("raw", block.lines, dtype=pl.String).str.replace(",", "\t", literal=True)
    return Block(block.first_line, ("\n".join(lines.to_list()) + "\n").encode(), block.terminated)


def rows(log: Log, written: Dialect) -> Iterator[Block]:
    """Yield the blocks below the header; the lines above the first row are left to the caller to count."""
    skip = written.first_line - 1
    for block in log.blocks():
        above = min(max(skip - block.first_line + 1, 0), block.count)
        at = 0
        for _ in range(above):
            at = block.data.find(b"\n", at) + 1
        if above < block.count:
            yield Block(block.first_line + above, block.data[at:], block.terminated) if above else block


def stamp_text(raw: pl.DataFrame, layout: Layout) -> pl.Series:
    """Return the text of the stamps: one column, or date and time of day together."""
    parts = [pl.col(c).fill_null("").str.strip_chars(' "') for c in layout.time]
    return plain_stamps(raw.select(pl.concat_str(parts, separator=" ").str.strip_chars().alias("stamp")).to_series())


def plain_stamps(text: pl.Series) -> pl.Series:
    """Return stamps with months as numbers and without the short name of a zone, which names no zone for sure.

    Examples
    --------
    >>> plain_stamps(pl.Series(["15-Mar-2026 10:00:00", "Mar 5, 2026 10:00:00 PM", "2026-03-02 10:00:00 CET"])).to_list()
    ['2026-03-15 10:00:00', '2026-03-05 10:00:00 PM', '2026-03-02 10:00:00']
    """
    if text.head(2_000).str.contains(MONTH).any():
        text = text.str.replace(MONTH, "${1}-${2}-01")
    if not text.head(2_000).str.contains(_WORDS).any():
        return text
    told = text.str.replace(_ZONE, "${1}")
    for pattern, order in ((_DAY_FIRST, "${3}-<${2}>-0${1}${4}"), (_MONTH_FIRST, "${3}-<${1}>-0${2}${4}")):
        told = told.str.replace(pattern, order)
    told = told.str.replace(r"^(\d{4}-<[A-Za-z]{3}>-)0(\d\d)", "${1}${2}")
    for number, month in enumerate(_MONTHS, 1):
        told = told.str.replace(f"<(?i:{month})>", f"{number:02d}")
    return told


def plain_cells(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the cells without apostrophes between thousands, as Swiss locales write them."""
    with_mark = [c for c in frame.columns if frame[c].dtype == pl.String and frame[c].str.contains(_APOSTROPHE).any()]
    return frame.with_columns(pl.col(c).str.replace_all(_APOSTROPHE, "${1}${2}") for c in with_mark)


def naive_stamps(text: pl.Series, found: Understood, date: str | None) -> pl.Series:
    """Return the stamps before they are put into UTC."""
    frame = text.to_frame()
    if found.clock_only:
        dated = pl.concat_str(pl.lit(f"{date} "), pl.col(text.name))
        return frame.select(stamps.parse(dated, found.form).alias("ts_utc")).to_series()
    parsed = frame.select(stamps.parse(pl.col(text.name), found.form).alias("ts_utc"))
    if found.form.pattern == "relative" and date is not None:
        since = pl.lit(f"{date} 00:00:00").str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us")
        parsed = parsed.select(since + (pl.col("ts_utc") - pl.lit(0).cast(pl.Datetime("us"))))
    return parsed.to_series().alias("ts_utc")
