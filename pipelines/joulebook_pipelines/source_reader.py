"""One source into the store: its parts as they come, then what only the whole of it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import polars as pl

from joulebook import own_time, rules
from joulebook.findings import Finding, Severity
from joulebook.wording import counted
from joulebook_pipelines import source_doubts, tally, undated
from joulebook_pipelines.logs import clock_set, table
from joulebook_pipelines.logs.ahead import ahead
from joulebook_pipelines.logs.contract import Adapter, Channel, Log, LogRefusedError, Part
from joulebook_pipelines.logs.gathered import gathered
from joulebook_pipelines.store import Store

COARSE_SHARE = 0.05
"""From this share of equal stamps on, the logger is faster than its stamps; below, equal stamps are repeated lines."""

FEWEST_OF_ANOTHER = 3
"""Readings that differ from those of the same moment from which on they are of another log."""

SET_BACK_SHARE = 0.02
"""Up to this share of a file's readings they are of a clock that was set back: two logs share more of their time."""

MOST_LINES = 2**32 - 1
"""Lines of a file that can be numbered where readings are kept; more are of a log of 40 GB at the least."""

ABOVE_LIMIT = "above-power-limit"

OF_ALL = frozenset({
    ABOVE_LIMIT, source_doubts.WITHOUT_POWER, source_doubts.NO_SUCH_TIME, source_doubts.ZERO_DURATION, source_doubts.SECOND,
    source_doubts.TOO_LARGE,
})  # fmt: skip
"""The findings that are made over all rows of a source, however often it grew."""

Progress = Callable[[str, int], None]
"""Told the name of the file and the bytes that were read since the last call."""


@dataclass
class Taken:
    """What the parts of a source said besides their rows.

    Attributes
    ----------
    spans
        Some readings are over a span.
    gone
        Readings that stood twice and were set aside: ``line, device, same``.
    strays
        Readings that were set aside because their clock was not set.
    """

    count: tally.Tally
    lines: int = 0
    channels: dict[str, Channel] = field(default_factory=dict)
    version: str = ""
    rejects: int = 0
    findings: list[Finding] = field(default_factory=list)
    spans: bool = False
    gone: pl.DataFrame = field(default_factory=pl.DataFrame)
    strays: int = 0


def take(log: Log, adapter: Adapter, store: Store, source_id: int, count: tally.Tally, progress: Progress) -> Taken:
    """Write the rows of a source as its adapter yields them; return the rest of what it said."""
    taken = Taken(count)
    with store.appending():
        _take_parts(log, adapter, store, source_id, taken, progress)
    return taken


def _take_parts(log: Log, adapter: Adapter, store: Store, source_id: int, taken: Taken, progress: Progress) -> None:
    told, begin = 0, undated.begin(store)

    def counted(part: Part) -> Part:
        """Count the readings of a part where it is made: what is written waits for nothing else then."""
        part = undated.later(part, begin)
        if part.readings is not None and part.readings.height:
            taken.count.add(part.readings, part.devices)
            taken.spans |= (
                "span_s" in part.readings.columns and part.readings["span_s"].null_count() < part.readings.height
            )
        return part

    for part in ahead(map(counted, gathered(map(_in_file_order, adapter.parse(log))))):
        taken.lines += part.lines
        if taken.lines > MOST_LINES:
            raise LogRefusedError(f"{log.name}: has more than {MOST_LINES} lines; split it into several files")
        taken.channels.update({c.device: c for c in part.channels})
        taken.version = taken.version or part.tool_version
        taken.findings += part.findings
        taken.rejects += _write(part, source_id, store)
        passed = log.passed.bytes
        progress(log.name, passed - told)
        told = passed


def settle(log: Log, store: Store, source_id: int, taken: Taken) -> None:
    """Move readings that stand twice to the rejects, with their text, and note what the order of the stamps says."""
    _set_strays_aside(log, store, source_id, taken)
    taken.findings += clock_set.never(log.name, taken.count.last, {f.code for f in taken.findings})
    back_line = None if taken.count.sorted else store.first_line_set_back(source_id)
    taken.gone = _set_aside(log, store, source_id, taken)
    taken.rejects += taken.gone.height
    taken.findings += [*_order_findings(log.name, taken, back_line), *_scope_findings(log.name, taken.channels)]
    if taken.count.sorted and not (log.options.device or log.options.devices):
        taken.findings += source_doubts.rounds(log.name, taken.count.steps())
    taken.findings += _limit_findings(log.name, store.above_limit(source_id))
    taken.findings += _reject_findings(log, store, source_id, taken)


def channel_rows(store: Store, source_id: int, taken: Taken) -> pl.DataFrame:
    """Return the rows of table ``channels`` for a source that was read from its first line to its last."""
    if taken.count.sorted and taken.gone.is_empty() and not taken.strays:
        rows = tally.channel_rows(taken.count.steps(), taken.count.spans(), taken.channels)
        return rows.with_columns(source_id=pl.lit(source_id, pl.Int32))
    return stored_channel_rows(store, source_id, taken.channels)


def stored_channel_rows(store: Store, source_id: int, channels: dict[str, Channel]) -> pl.DataFrame:
    """Return the rows of table ``channels`` as the readings in the store have it."""
    steps = store.steps_of(source_id)
    us = [pl.col(f"{c}_utc").dt.timestamp("us").alias(f"{c}_us") for c in ("first", "last")]
    spans = (
        steps.with_columns(us)
        .group_by("device")
        .agg(n=pl.col("count").sum(), first_us=pl.col("first_us").min(), last_us=pl.col("last_us").max())
    )
    rows = tally.channel_rows(steps.select("device", "step_ms", "count"), spans, channels)
    return rows.with_columns(source_id=pl.lit(source_id, pl.Int32))


def _in_file_order(part: Part) -> Part:
    """Return a part whose readings stand in the order of their lines; tables with several devices a line come in columns."""
    if part.readings is None or part.devices or part.readings["line"].is_sorted():
        return part
    return replace(part, readings=part.readings.sort("line", maintain_order=True))


def _write(part: Part, source_id: int, store: Store) -> int:
    """Append a part to the store and return its number of rejects."""
    own = pl.lit(source_id, dtype=pl.Int32).alias("source_id")
    if part.readings is not None:
        store.append(part.readings.with_columns(own), part.devices)
    for name, frame in (("logged_runs", part.runs), ("steps", part.steps), ("phases", part.phases)):
        if frame is not None:
            store.insert(name, frame.with_columns(own))
    if part.rejects is None:
        return 0
    store.insert("rejects", part.rejects.with_columns(own))
    return part.rejects.height


def _set_strays_aside(log: Log, store: Store, source_id: int, taken: Taken) -> None:
    """Move readings whose clock was not set to the rejects: one of them would make a log of an hour one of decades."""
    count = taken.count
    if count.first is None or count.last is None or (count.last - count.first).days <= own_time.APART_DAYS:
        return
    gone = store.settle_strays(source_id)
    if gone.is_empty():
        return
    texts = pl.DataFrame(
        _lines_of(log, gone["line"].unique().to_list()), schema={"line": pl.Int64, "raw": pl.String}, orient="row"
    )
    store.insert("rejects", gone.join(texts, on="line", how="left").select(
        "line", "device", column_name=pl.lit(""), rule=pl.lit(clock_set.RULE), raw="raw", source_id=pl.lit(source_id, pl.Int32)
    ))  # fmt: skip
    taken.strays, taken.rejects = gone.height, taken.rejects + gone.height
    count.first, count.last = store.reach(source_id)
    count.first_back_line = store.first_back_line(source_id)
    count.sorted = count.first_back_line is None
    taken.findings.append(clock_set.finding(log.name, gone, "reading", "ts_utc"))


def _set_aside(log: Log, store: Store, source_id: int, taken: Taken) -> pl.DataFrame:
    count = taken.count
    coarse = count.equal_stamps > COARSE_SHARE * max(count.readings, 1)
    if count.sorted and (count.equal_stamps == 0 or (coarse and not taken.spans)):
        return pl.DataFrame(schema={"line": pl.Int64, "device": pl.String, "same": pl.Boolean})
    gone = store.settle_duplicates(source_id, spans=count.sorted and coarse, crowded=count.crowded())
    if gone.height:
        texts = pl.DataFrame(
            _lines_of(log, gone["line"].unique().to_list()), schema={"line": pl.Int64, "raw": pl.String}, orient="row"
        )
        rule = pl.when("same").then(pl.lit("duplicate-reading")).otherwise(pl.lit("conflicting-duplicate"))
        rejects = gone.join(texts, on="line", how="left").select(
            "line", "device", column_name=pl.lit(""), rule=rule, raw="raw", source_id=pl.lit(source_id, pl.Int32)
        )
        store.insert("rejects", rejects)
    return gone


def _lines_of(log: Log, wanted: list[int]) -> Iterator[tuple[int, str]]:
    """Yield the text of some lines of a file."""
    numbers = pl.Series(sorted(wanted))
    for block in log.blocks():
        here = numbers.filter(numbers.is_between(block.first_line, block.first_line + block.count - 1))
        if len(here):
            lines = block.lines
            yield from ((n, lines[n - block.first_line][: table.LONGEST_RAW]) for n in here)


def _order_findings(name: str, taken: Taken, back_line: int | None) -> list[Finding]:
    count, gone, found = taken.count, taken.gone, []
    if back_line is not None:
        found.append(Finding(
            "time-goes-back", Severity.WARNING, name,
            f"Stamps go back in time, first at line {back_line}: lines were appended twice or the clock was set back. "
            "Readings are used in order of time.", {"line": back_line},
        ))  # fmt: skip
    if gone.height:
        same = int(gone["same"].sum())
        found.append(Finding(
            "duplicate-readings", Severity.WARNING, name,
            f"{counted(gone.height, 'reading')} with the stamp of an earlier line of the same device ({same} with the same values) "
            f"set aside, first at line {int(gone['line'][0])}.{_of_two_logs(gone, count.readings)}",
            {"readings": gone.height, "same": same},
        ))  # fmt: skip
    kept = count.equal_stamps - gone.height
    coarse = count.equal_stamps > COARSE_SHARE * max(count.readings, 1)
    if kept > 0 and (count.crowded() or (coarse and not gone.height)):
        found.append(Finding(
            "coarse-stamps", Severity.WARNING if coarse else Severity.NOTE, name,
            f"{kept} of {count.readings} readings carry the stamp of the reading before: the logger is faster than its "
            "stamps, so times are known to one stamp step only.", {"readings": kept},
        ))  # fmt: skip
    return found


def _of_two_logs(gone: pl.DataFrame, readings: int) -> str:
    """Say what stamps that come twice with other values mean."""
    others = int((~gone["same"]).sum())
    if others < FEWEST_OF_ANOTHER or others <= gone.height // 2:
        return ""
    if others <= SET_BACK_SHARE * readings:
        return (
            " Their values are others, and they are few: the clock was set back there. What passed twice by its stamps is in energies "
            "once; split the file there and give each part a clock of its own."
        )
    return (
        " Their values are others: two logs, perhaps of two machines, were put into one file. Give each a file of its own, with its "
        "host in [[source]]."
    )


def _scope_findings(name: str, channels: dict[str, Channel]) -> list[Finding]:
    unknown = sorted(d for d, c in channels.items() if c.scope == "")
    if not unknown:
        return []
    return [Finding(
        "scope-unknown", Severity.ERROR, name,
        f"Nothing says what the power of {_some(unknown)} covers, so it belongs to no boundary and no energy is given. "
        'Add scope = "node" (or board, package, rack, facility) to this [[source]].', {"devices": unknown},
    )]  # fmt: skip


def _some(names: list[str]) -> str:
    more = f" and {len(names) - source_doubts.MOST_NAMED} more" if len(names) > source_doubts.MOST_NAMED else ""
    return ", ".join(repr(n) for n in names[: source_doubts.MOST_NAMED]) + more


def _reject_findings(log: Log, store: Store, source_id: int, taken: Taken) -> list[Finding]:
    rejects = store.reject_counts(source_id)
    if rejects.is_empty():
        return []
    told = {str(d) for f in taken.findings if isinstance(ds := f.evidence.get("devices"), (list, tuple)) for d in ds}
    return source_doubts.about(
        log.name, rejects, channels=store.channels_of_source(source_id) | taken.channels,
        powered=store.powered_devices(source_id), told=told, zone=log.options.timezone or "",
    )  # fmt: skip


def _limit_findings(name: str, readings: int) -> list[Finding]:
    if not readings:
        return []
    return [Finding(
        ABOVE_LIMIT, Severity.NOTE, name,
        f"{counted(readings, 'reading')} above the power limit, at most {rules.LIMIT_FACTOR} times as high: short excursions are real and "
        "kept.",
        {"readings": readings},
    )]  # fmt: skip
