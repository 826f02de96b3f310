"""Rows of a meter's table that stand under another header."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import table


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
