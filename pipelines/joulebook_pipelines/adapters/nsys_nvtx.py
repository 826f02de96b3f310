"""NVTX ranges of Nsight Systems: the SQLite export, or the CSV of ``nsys stats --report nvtx_pushpop_trace``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import polars as pl

from joulebook_pipelines.logs import dialect, phase_log, table
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.dialect import Dialect

ORIGIN = "NVTX range"

_SQLITE = "SQLite format 3"
_UNITS_NS = {"ns": 1, "nsec": 1, "us": 1e3, "µs": 1e3, "usec": 1e3, "ms": 1e6, "msec": 1e6, "s": 1e9, "sec": 1e9}
_MOST_STEPS = 2_000_000_000
"""Steps of the database's machine before a query is given up: a hostile file can be made to count for ever."""

_RANGES = """
select coalesce(e.text, s.value), e.start, e."end" from NVTX_EVENTS e left join StringIds s on s.id = e.textId
where e."end" is not null order by e.start
"""
_RANGES_PLAIN = 'select text, start, "end" from NVTX_EVENTS where "end" is not null order by start'


def _columns(titles: tuple[str, ...] | list[str]) -> dict[str, tuple[int, float]]:
    """Return place and unit [ns] of name, start and end."""
    found: dict[str, tuple[int, float]] = {}
    for at, title in enumerate(titles):
        bare, _, unit = title.strip().rstrip(")").partition("(")
        role = {"name": "name", "range": "name", "start": "start", "end": "end", "start time": "start"}.get(
            bare.strip().lower()
        )
        if role == "name":
            found.setdefault("name", (at, 1.0))
        elif role and unit.strip().lower() in _UNITS_NS:
            found.setdefault(role, (at, float(_UNITS_NS[unit.strip().lower()])))
    return found


def _knows(titles: list[str] | tuple[str, ...]) -> bool:
    folded = {t.strip().lower() for t in titles}
    ours = folded & {"lvl", "nametree", "rangestack", "rangeid", "numchild", "durchild (ns)", "durchild"}
    return set(_columns(tuple(titles))) == {"name", "start", "end"} and bool(ours)


def _header(head: Head) -> Dialect | None:
    return dialect.find(head, lambda titles: _knows(tuple(titles))) if "(" in head.text[:8192] else None


def _sniff(head: Head) -> bool:
    return head.text.startswith(_SQLITE) or _header(head) is not None


def _parse(log: Log) -> Iterator[Part]:
    yield from _of_database(log) if log.head.text.startswith(_SQLITE) else _of_table(log)


# CSV


def _of_table(log: Log) -> Iterator[Part]:
    found = _header(log.head)
    if found is None:
        raise LogRefusedError(f"{log.name}: needs the columns Start (ns), End (ns) and Name of an NVTX trace report")
    places = _columns(found.titles)
    spans = _Spans(log)
    for block in log.blocks():
        raw = table.split(block, found.names, found.separator, quoted=b'"' in block.data)
        frame = raw.frame.filter(pl.col("line") >= found.first_line)
        odd = table.whole_lines(raw.odd.filter(pl.col("line") >= found.first_line), "wrong-number-of-fields")
        told = frame.select("line", **{q: pl.col(f"c{at}").str.strip_chars(' "') for q, (at, _) in places.items()})
        rows = told.with_columns(_ns(q, places[q][1]).alias(f"{q}_ns") for q in ("start", "end"))
        good = pl.col("start_ns").is_not_null() & pl.col("end_ns").is_not_null() & (pl.col("name") != "")
        text = rows.filter(~good).select("line", raw=pl.concat_str("start", "end", "name", separator=","))
        spans.rows += rows.filter(good).select("name", "start_ns", "end_ns").rows()
        yield Part(lines=block.count, rejects=pl.concat([odd, table.whole_lines(text, "not-a-range")]))
    yield Part(phases=spans.phases(0), findings=(phase_log.without_run(log),))


def _ns(name: str, unit: float) -> pl.Expr:
    text = pl.col(name).str.replace_all(",", "", literal=True)
    if unit == 1.0:
        return text.cast(pl.Int64, strict=False)
    number = text.cast(pl.Float64, strict=False) * unit
    return pl.when(number.abs() < 9e18).then(number).cast(pl.Int64, strict=False)


@dataclass
class _Spans:
    """Ranges of a session in nanoseconds of its own clock."""

    log: Log
    rows: list[tuple[str, int, int]] = field(default_factory=list)

    def phases(self, base_ns: int) -> pl.DataFrame:
        """Return the phases.

        Raises
        ------
        LogRefusedError
            There is no range, or nothing says when the session began.
        """
        ranges = [r for r in self.rows if r[2] - r[1] >= 1000]
        if not ranges:
            raise LogRefusedError(
                f"{self.log.name}: has no closed NVTX range; mark phases with torch.cuda.nvtx.range_push and profile with --trace=nvtx"
            )
        first = min(r[1] for r in ranges)
        base_ns = 0 if phase_log.moment(first) is not None else base_ns
        if phase_log.moment(first + base_ns) is None:
            raise LogRefusedError(
                f"{self.log.name}: the times count from the start of the session, which the file does not give; use the SQLite export "
                "(nsys export --type sqlite), or one with --ts-normalize=true"
            )
        told = [
            ("", phase_log.word(name), begin, end) for name, start, stop in ranges
            if (begin := phase_log.moment(start + base_ns)) and (end := phase_log.moment(stop + base_ns))
        ]  # fmt: skip
        return phase_log.frame(told, ORIGIN)


# SQLite


def _of_database(log: Log) -> Iterator[Part]:
    try:
        with closing(sqlite3.connect(f"{log.path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as base:
            base.set_progress_handler(_Budget(_MOST_STEPS // 1_000_000).spent, 1_000_000)
            base.text_factory = lambda raw: raw.decode("utf-8", errors="replace")
            base.execute("pragma trusted_schema = off")
            spans, start_ns = _Spans(log), _session_start(base)
            spans.rows = [
                (name, start, end) for name, start, end in base.execute(_query(log, base))
                if isinstance(name, str) and name.strip() and isinstance(start, int) and isinstance(end, int)
            ]  # fmt: skip
    except (sqlite3.Error, OverflowError, MemoryError, UnicodeDecodeError) as error:  # the latter from a damaged schema
        raise LogRefusedError(
            f"{log.name}: cannot be read as an SQLite database ({error}); export it again with nsys export --type sqlite, not packed"
        ) from None
    yield Part(lines=0, phases=spans.phases(start_ns), findings=(phase_log.without_run(log),))


class _Budget:
    """Ends a query that takes too long."""

    def __init__(self, turns: int) -> None:
        self._left = turns

    def spent(self) -> int:
        """Return whether to give up."""
        self._left -= 1
        return int(self._left < 0)


def _tables(base: sqlite3.Connection) -> set[str]:
    # Views are left out: they may be anything.
    return {str(n) for (n,) in base.execute("select name from sqlite_master where type = 'table'")}


def _query(log: Log, base: sqlite3.Connection) -> str:
    tables = _tables(base)
    if "NVTX_EVENTS" not in tables:
        raise LogRefusedError(
            f"{log.name}: is a database without NVTX_EVENTS; profile with --trace=nvtx and export again"
        )
    return _RANGES if "StringIds" in tables else _RANGES_PLAIN


def _session_start(base: sqlite3.Connection) -> int:
    """Return the Unix time at which the session began [ns], 0 where the database does not say."""
    if "TARGET_INFO_SESSION_START_TIME" not in _tables(base):
        return 0
    row = base.execute("select utcEpochNs from TARGET_INFO_SESSION_START_TIME limit 1").fetchone()
    return int(row[0]) if row and isinstance(row[0], int) else 0


ADAPTER = Adapter(
    name="nsys-nvtx",
    title="NVTX ranges of Nsight Systems: SQLite export, CSV of nvtx_pushpop_trace",
    yields="phases with absolute times",
    sniff=_sniff,
    parse=_parse,
)
