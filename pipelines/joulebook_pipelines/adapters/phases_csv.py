"""Phase logs as CSV: run, phase, start, end."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import dialect, phase_log, table
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part

_SEPARATORS = (",", ";", "\t")


def _header(head: Head) -> tuple[str, list[str]] | None:
    """Return separator and names of a header that has a phase with start and end."""
    line = head.top[1]
    for separator in _SEPARATORS:
        names = dialect.split_line(line, separator)
        if phase_log.is_whole(phase_log.known(names)):
            return separator, names
    return None


def _parse(log: Log) -> Iterator[Part]:
    found = _header(log.head)
    if found is None:
        raise LogRefusedError(f"{log.name}:1: needs a header with phase, start and end (and run)")
    separator, names = found
    members = phase_log.known(names)
    columns = {q: f"c{names.index(n)}" for q, n in members.items()}
    rows = [dialect.split_line(line, separator) for line in log.head.lines[log.head.top[0] : 200]]
    start = names.index(members["start"])
    reader = phase_log.Phases(log, members, [r[start] for r in rows if len(r) == len(names)][:100])
    for block in log.blocks():
        raw = table.split(block, [f"c{i}" for i in range(len(names))], separator, quoted=b'"' in block.data)
        told = raw.frame.filter(pl.col("line") > log.head.top[0])
        told = told.select("line", **{q: pl.col(c).str.strip_chars(' "') for q, c in columns.items()})
        phases, rejects = reader.read(told)
        odd = table.whole_lines(raw.odd.filter(pl.col("line") > log.head.top[0]), "wrong-number-of-fields")
        yield Part(lines=block.count, phases=phases, rejects=pl.concat([odd, rejects]))
    yield Part(findings=() if "run" in members else (phase_log.without_run(log),))


ADAPTER = Adapter(
    name="phases-csv",
    title="phase logs as CSV (run, phase, start, end)",
    yields="phases of runs",
    sniff=lambda head: _header(head) is not None,
    parse=_parse,
)
