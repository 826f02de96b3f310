"""Rows of a meter's table that stand under another header, or under a clock that was not set yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import table

SET_FROM = datetime(2001, 1, 2, tzinfo=UTC)
"""Clocks without a battery begin in 1970, 1980 or 2000, until somebody tells them the time."""

SET_UNTIL = datetime(2100, 1, 1, tzinfo=UTC)
"""All bits of a 32-bit clock set are a day in 2106."""

UNSET_BEFORE = datetime(1971, 1, 1, tzinfo=UTC)

DATED_FROM = datetime(2005, 1, 1, tzinfo=UTC)
"""A row from here on shows that the log itself is of another time."""


@dataclass
class Clock:
    """Rows before the logger's clock was set, beside others."""

    dated: bool = False
    rows: int = 0
    first_line: int = 0
    old: int = 0

    def doubtful(self, stamps: pl.Series) -> bool:
        """Return whether a block with these stamps needs a second look."""
        first, last = stamps.min(), stamps.max()
        early = isinstance(first, datetime) and first < SET_FROM
        return early or (isinstance(last, datetime) and last >= SET_UNTIL)

    def split(self, timed: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the rows under a set clock, and the others; all rows where none is of a year of logs."""
        self.dated |= bool(timed["ts_utc"].is_between(DATED_FROM, SET_UNTIL, closed="left").any())
        sound = pl.col("ts_utc").is_between(SET_FROM, SET_UNTIL, closed="left")
        early = timed.filter(~sound) if self.dated else timed.clear()
        if not self.dated:
            self.old += int((timed["ts_utc"] < UNSET_BEFORE).sum())
        if early.is_empty():
            return timed, early
        self.first_line = self.first_line or int(early["line"][0])
        self.rows += early.height
        return timed.filter(sound), early

    def findings(self, name: str, *, relative: bool = False) -> list[Finding]:
        """Return what to know of the rows that were set aside, or of a log whose clock was never set."""
        if self.old and not self.dated and not relative:
            return [Finding(
                "clock-never-set", Severity.WARNING, name,
                "All stamps are of 1970: the clock behind them was never set. The steps between them are used, so energies hold, but "
                "nothing can be compared in time with other files. If another column tells the time, name it: columns = { time = … }.",
                {"rows": self.old},
            )]  # fmt: skip
        if not self.rows:
            return []
        are = "row is" if self.rows == 1 else "rows are"
        return [Finding(
            "clock-not-set", Severity.WARNING, name,
            f"{self.rows} {are} stamped before 2001 or after 2100, first in line {self.first_line}: the logger's clock was not set. They "
            "are set aside, as nothing tells when they were; what they measured is in no number.", {"rows": self.rows},
        )]  # fmt: skip


@dataclass
class Headers:
    """Headers inside a table: that of the first line again, or another one, under which the columns mean other things."""

    columns: Sequence[str]
    titles: Sequence[str]
    time: str
    foreign: bool = False
    rows: int = 0
    first: tuple[int, str] = (0, "")

    @property
    def title(self) -> str:
        """Title of the time, by which a header inside the table is known."""
        return self.titles[list(self.columns).index(self.time)] if self.time in self.columns else ""

    def split(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the rows under the first header or its like, and rejects of those under another one."""
        cells = {c: pl.col(c).fill_null("").str.strip_chars(' "#') for c in self.columns}
        head = cells[self.time] == self.title
        like = pl.all_horizontal([cells[c] == t.strip(' "#') for c, t in zip(self.columns, self.titles, strict=True)])
        marked = frame.with_columns(_head=head, _other=pl.when(head).then(~like))
        marked = marked.with_columns(pl.col("_other").forward_fill().fill_null(self.foreign))
        others = marked.filter("_head" if self.first[0] else pl.col("_head") & pl.col("_other")).filter("_other")
        if others.height and not self.first[0]:
            self.first = (int(others["line"][0]), ",".join(others.select(self.columns).row(0)))
        if marked.height:
            self.foreign = bool(marked["_other"][-1])
        rows = marked.filter(~pl.col("_head"))
        lost = rows.filter("_other")
        self.rows += lost.height
        text = pl.concat_str([pl.col(c).fill_null("") for c in self.columns], separator=",")
        rejects = table.whole_lines(lost.select("line", raw=text), "under-another-header")
        return rows.filter(~pl.col("_other")).drop("_head", "_other"), rejects

    def findings(self, name: str) -> list[Finding]:
        """Return what to know of the rows that were set aside."""
        if not self.rows:
            return []
        line, text = self.first
        stand = "row stands" if self.rows == 1 else "rows stand"
        return [Finding(
            "another-header", Severity.WARNING, name,
            f"{self.rows} {stand} under another header than the first one (line {line}: {text[:120]!r}): columns or units are others. "
            "They are set aside; make a file of each part.", {"rows": self.rows, "line": line},
        )]  # fmt: skip
