"""Phase logs as CSV: run, phase, start, end."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from joulebook.findings import Finding, Severity

from joulebook_pipelines.logs import stamps, table, work
from joulebook_pipelines.logs.contract import Adapter, Block, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_NAMES = {
    "phase": ("phase", "name", "stage", "section"),
    "start": ("start", "start_time", "begin", "start_utc", "t_start"),
    "end": ("end", "end_time", "stop", "end_utc", "t_end"),
    "run": ("run", "run_id", "run_name"),
}
_SEPARATORS = (",", ";", "\t")


def _known(names: list[str]) -> dict[str, int]:
    folded = [n.strip().strip('"').lower() for n in names]
    return {q: next(folded.index(c) for c in choices if c in folded) for q, choices in _NAMES.items() if set(choices) & set(folded)}


def _header(head: Head) -> tuple[str, list[str]] | None:
    """Return separator and names of a header that has a phase with start and end."""
    line = head.lines[0]
    for separator in _SEPARATORS:
        names = line.split(separator)
        if {"phase", "start", "end"} <= set(_known(names)):
            return separator, names
    return None


def _sniff(head: Head) -> bool:
    return _header(head) is not None


def _parse(log: Log) -> Iterator[Part]:
    found = _header(log.head)
    if found is None:
        raise LogRefusedError(f"{log.name}:1: needs a header with phase, start and end (and run)")
    separator, names = found
    places = _known(names)
    columns = [f"c{i}" for i in range(len(names))]
    rows = [c for line in log.head.lines[1:200] if len(c := line.split(separator)) == len(names)]
    form = work.stamp_form(log, [r[places["start"]].strip().strip('"') for r in rows[:100]])
    clock = stamps.Localiser(None if form.aware else log.options.timezone)
    reader = _Reader(log, columns, names, places, form, clock)
    for block in log.blocks():
        yield reader.read(block, separator)
    yield Part(findings=reader.findings())


class _Reader:
    """State of one pass over a phase log."""

    def __init__(
        self, log: Log, columns: list[str], names: list[str], places: dict[str, int], form: stamps.StampForm, clock: stamps.Localiser
    ) -> None:  # fmt: skip
        self.log, self.columns, self.form, self.clock = log, columns, form, clock
        self.fields = {q: Field(columns[i], names[i].strip(), q) for q, i in places.items()}

    def read(self, block: Block, separator: str) -> Part:
        raw = table.split(block, self.columns, separator, quoted=b'"' in block.data)
        frame = raw.frame
        if block.first_line == 1:
            frame = frame.filter(pl.col("line") > 1)
        rejects = [table.whole_lines(raw.odd, "wrong-number-of-fields")] if raw.odd.height else []
        frame = frame.with_columns(device=pl.lit(None, pl.String))
        frame = frame.with_columns(self._utc(frame, "start"), self._utc(frame, "end"))
        for quantity in ("start", "end"):
            lost = frame.filter(pl.col(quantity).is_null())
            if lost.height:
                others = [f for q, f in self.fields.items() if q not in {"start", "end", quantity}]
                rejects.append(table.without_time(lost, others, self.fields[quantity]))
                frame = frame.filter(pl.col(quantity).is_not_null())
        backward = frame.filter(pl.col("end") <= pl.col("start"))
        if backward.height:
            text = backward.select("line", raw=pl.concat_str(self.columns, separator=separator))
            rejects.append(table.whole_lines(text, "ends-before-it-starts"))
            frame = frame.filter(pl.col("end") > pl.col("start"))
        return Part(lines=block.count, phases=self._phases(frame), rejects=pl.concat(rejects) if rejects else None)

    def _utc(self, frame: pl.DataFrame, quantity: str) -> pl.Series:
        text = pl.col(self.fields[quantity].column).str.strip_chars(' "')
        return self.clock.to_utc(frame.select(stamps.parse(text, self.form).alias(quantity)).to_series())

    def _phases(self, frame: pl.DataFrame) -> pl.DataFrame:
        run = pl.col(self.fields["run"].column).str.strip_chars(' "') if "run" in self.fields else pl.lit("")
        return frame.select(
            run_id=run, phase=pl.col(self.fields["phase"].column).str.strip_chars(' "'), start_utc="start", end_utc="end",
            origin=pl.lit("phase log"),
        )  # fmt: skip

    def findings(self) -> tuple[Finding, ...]:
        if "run" in self.fields:
            return ()
        return (
            Finding(
                "phases-without-run", Severity.NOTE, self.log.name,
                "The phase log names no run; its phases belong to every run that they fall into.",
            ),
        )  # fmt: skip


ADAPTER = Adapter(
    name="phases-csv",
    title="phase logs as CSV (run, phase, start, end)",
    yields="phases of runs",
    sniff=_sniff,
    parse=_parse,
)
