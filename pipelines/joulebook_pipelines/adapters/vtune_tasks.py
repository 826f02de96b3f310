"""Tasks of Intel VTune as CSV: intervals with UTC stamps are phases; reports of totals are refused with what would help."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import dialect, phase_log, table
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part

_CURE = (
    "write the intervals with UTC stamps (name,start_tsc.UTC,end_tsc,pid,tid), or log the phases with their times "
    "(run, phase, start, end)"
)


def _header(head: Head) -> tuple[str, list[str]] | None:
    for separator in (",", "\t", ";"):
        titles = dialect.split_line(head.lines[0], separator)
        if _intervals(titles) is not None or _totals(titles):
            return separator, titles
    return None


def _intervals(titles: list[str]) -> str | None:
    """Return the clock of a table of intervals, ``None`` for other tables."""
    if "name" not in titles or not any(t.startswith("end_tsc") for t in titles):
        return None
    start = next((t for t in titles if t.startswith("start_tsc")), None)
    return None if start is None else start.partition(".")[2] or "TSC"


def _totals(titles: list[str]) -> bool:
    return titles[0] in {"Task Type", "Task Domain"} and any(t.startswith(("Task Time", "Task Count")) for t in titles)


def _parse(log: Log) -> Iterator[Part]:
    found = _header(log.head)
    if found is None:
        raise LogRefusedError(f"{log.name}:1: is no table of VTune tasks; {_CURE}")
    separator, titles = found
    clock = _intervals(titles)
    if clock is None:
        raise LogRefusedError(f"{log.name}:1: gives totals a task type, not when each task began and ended; {_CURE}")
    if clock != "UTC":
        raise LogRefusedError(
            f"{log.name}:1: the stamps are ticks of the counter {clock}, which starts with the machine; {_CURE}"
        )
    places = {
        "phase": titles.index("name"),
        "start": next(i for i, t in enumerate(titles) if t.startswith("start_tsc")),
        "end": next(i for i, t in enumerate(titles) if t.startswith("end_tsc")),
    }
    rows = [dialect.split_line(line, separator) for line in log.head.lines[1:200]]
    samples = [r[places["start"]] for r in rows if len(r) == len(titles)]
    reader = phase_log.Phases(log, {q: titles[i] for q, i in places.items()}, samples, utc=True)
    for block in log.blocks():
        raw = table.split(block, [f"c{i}" for i in range(len(titles))], separator, quoted=b'"' in block.data)
        frame = raw.frame.filter(pl.col("line") > 1)
        told = frame.select("line", **{q: pl.col(f"c{i}").str.strip_chars(' "') for q, i in places.items()})
        phases, rejects = reader.read(told)
        phases = phases.with_columns(phase=pl.col("phase").map_elements(phase_log.word, return_dtype=pl.String))
        odd = table.whole_lines(raw.odd.filter(pl.col("line") > 1), "wrong-number-of-fields")
        yield Part(lines=block.count, phases=phases, rejects=pl.concat([odd, rejects]))
    yield Part(findings=(phase_log.without_run(log),))


ADAPTER = Adapter(
    name="vtune-tasks",
    title="Intel VTune tasks as CSV (intervals with UTC stamps)",
    yields="phases with absolute times",
    sniff=lambda head: _header(head) is not None,
    parse=_parse,
)
