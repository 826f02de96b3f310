"""What holds for a whole table of a meter, and its rows and stamps read by that."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from joulebook.findings import Finding
from joulebook_pipelines.logs import calendar_columns, local_time, stamp_spellings, stamps
from joulebook_pipelines.logs.contract import Block
from joulebook_pipelines.logs.dialect import Dialect
from joulebook_pipelines.logs.meter_columns import Layout

_APOSTROPHE = r"(\d)['’](\d{3})"
_BLANK = r"(\d)[ \u{A0}\u{2009}\u{202F}](\d{3})"
_WITH_BLANKS = r"^\s*[+-]?\d{1,3}(?:[ \u{A0}\u{2009}\u{202F}]\d{3})+(?:[.,]\d*)?\s*[A-Za-zµ]*$"
"""Thousands as French, Polish, Russian and Swedish locales write them."""


END_OF_DAY = r"(^|[ T])24:00((?::00(?:[.,]0+)?)?)$"
"""Utilities and German clocks end a day so."""


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
    months, local_days
        Each stamp is a month, or a day that is not always 24 hours; its value is of the whole of it.
    """

    dialect: Dialect
    layout: Layout
    form: stamps.StampForm
    clock: local_time.Localiser
    decimal: str
    clock_only: bool = False
    label: str | None = None
    span_s: float | None = None
    months: bool = False
    local_days: bool = False
    findings: tuple[Finding, ...] = ()

    @property
    def calendar(self) -> str:
        """What each stamp is as a whole, as polars writes it: a month, a day of its zone, or nothing."""
        return "1mo" if self.months else "1d" if self.local_days else ""

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


def stamp_text(raw: pl.DataFrame, layout: Layout) -> pl.Series:
    """Return the text of the stamps: one column, date and time of day together, or the parts of a calendar."""
    if len(layout.time) >= calendar_columns.FEWEST:
        return raw.select(calendar_columns.joined(layout.time).alias("stamp")).to_series()
    parts = [pl.col(c).fill_null("").str.strip_chars(' "') for c in layout.time]
    told = pl.concat_str(parts, separator=" ").str.strip_chars()
    told = told if layout.millis is None else calendar_columns.with_millis(told, layout.millis)
    return stamp_spellings.plain(raw.select(told.alias("stamp")).to_series())


def plain_cells(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the cells without apostrophes or blanks between thousands."""
    texts = [c for c in frame.columns if frame[c].dtype == pl.String]
    swiss = [c for c in texts if frame[c].str.contains(_APOSTROPHE).any()]
    frame = frame.with_columns(pl.col(c).str.replace_all(_APOSTROPHE, "${1}${2}") for c in swiss)
    wide = [c for c in texts if frame[c].str.contains(_WITH_BLANKS).any()]
    # Twice, as two groups share the digits between them.
    closed = {c: pl.col(c).str.replace_all(_BLANK, "${1}${2}").str.replace_all(_BLANK, "${1}${2}") for c in wide}
    return frame.with_columns(
        pl.when(pl.col(c).str.contains(_WITH_BLANKS)).then(e).otherwise(c).alias(c) for c, e in closed.items()
    )


def naive_stamps(text: pl.Series, found: Understood, date: str | None) -> pl.Series:
    """Return the stamps before they are put into UTC."""
    late = text.str.contains(END_OF_DAY).fill_null(value=False)
    if late.any():  # the last moment of a day is the first of the next
        whole = naive_stamps(text.str.replace(END_OF_DAY, "${1}00:00${2}"), found, date)
        return (
            whole.to_frame()
            .select(pl.when(late).then(pl.first() + pl.duration(days=1)).otherwise(pl.first()))
            .to_series()
        )
    frame = text.to_frame()
    if found.clock_only:
        dated = pl.concat_str(pl.lit(f"{date} "), pl.col(text.name))
        return frame.select(stamps.parse(dated, found.form).alias("ts_utc")).to_series()
    parsed = frame.select(stamps.parse(pl.col(text.name), found.form).alias("ts_utc"))
    if found.form.pattern == "relative" and date is not None:
        since = pl.lit(f"{date} 00:00:00").str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us")
        parsed = parsed.select(since + (pl.col("ts_utc") - pl.lit(0).cast(pl.Datetime("us"))))
    return parsed.to_series().alias("ts_utc")
