"""From files to the store: each source in one transaction, read once, with full accounting; unchanged files are skipped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines import recognise, tally
from joulebook_pipelines.logs import table, text
from joulebook_pipelines.logs.ahead import ahead
from joulebook_pipelines.logs.contract import Adapter, Channel, Log, LogRefusedError, Options, Part
from joulebook_pipelines.logs.gathered import gathered
from joulebook_pipelines.store import Store

COARSE_SHARE = 0.05
"""From this share of equal stamps on, the logger is faster than its stamps; below, equal stamps are repeated lines."""


@dataclass(frozen=True)
class SourceFile:
    """A file of the study with what study.toml says of it."""

    path: Path
    name: str
    clock: str
    adapter: str | None = None
    options: Options = field(default_factory=Options)


@dataclass(frozen=True)
class Outcome:
    """What became of one file."""

    name: str
    adapter: str = ""
    status: str = "read"
    lines: int = 0
    readings: int = 0
    rejects: int = 0
    reason: str = ""
    findings: tuple[Finding, ...] = ()


Progress = Callable[[str, int], None]
"""Told the name of the file and the bytes that were read since the last call."""


def ingest(
    sources: tuple[SourceFile, ...], store: Store, progress: Progress = lambda _name, _bytes: None
) -> list[Outcome]:
    """Read every source that is new or changed into the store.

    Parameters
    ----------
    sources
        The files of the study.
    store
        Open for writing.
    progress
        Called while reading.

    Returns
    -------
    list of Outcome
        One a file: read, unchanged or refused with the reason.
    """
    known = {r["path"]: r for r in store.table("sources").iter_rows(named=True)}
    for gone in sorted(set(known) - {s.name for s in sources}):
        with store.transaction():
            store.forget_source(known[gone]["source_id"])
    return [_ingest_one(s, store, known.get(s.name), progress) for s in sources]


def _ingest_one(source: SourceFile, store: Store, known: dict[str, object] | None, progress: Progress) -> Outcome:
    if known is not None and known["sha256"] == _sha256(source.path) and _same_reading(source, store, known):
        lines, readings, rejects = (int(str(known[k])) for k in ("lines", "readings", "rejects"))
        return Outcome(source.name, str(known["adapter"]), "unchanged", lines, readings, rejects)
    try:
        log, adapter = recognised(source)
        with store.transaction():
            if known is not None:
                store.forget_source(int(str(known["source_id"])))
            return _read(source, log, adapter, store, progress)
    except LogRefusedError as error:
        with store.transaction():
            if known is not None:
                store.forget_source(int(str(known["source_id"])))
        finding = Finding("source-refused", Severity.ERROR, source.name, str(error))
        return Outcome(source.name, source.adapter or "", "refused", reason=str(error), findings=(finding,))


def recognised(source: SourceFile) -> tuple[Log, Adapter]:
    """Return the file as its adapter sees it.

    Raises
    ------
    LogRefusedError
        It cannot be read, or no single adapter claims it.
    """
    head = text.head(source.path, source.name)
    if source.adapter:
        adapter = recognise.named(source.adapter)
    else:
        adapter = recognise.adapter_for(head, columns_given=bool(source.options.columns))
    return Log(source.path, head, source.options), adapter


def _same_reading(source: SourceFile, store: Store, known: dict[str, object]) -> bool:
    """Tell whether the file was read with the same settings."""
    return store.study.get(f"source:{source.name}") == _settings(source) and known["clock"] == source.clock


def _settings(source: SourceFile) -> str:
    return json.dumps([source.adapter, source.clock, source.options.__dict__], sort_keys=True, default=str)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(source: SourceFile, log: Log, adapter: Adapter, store: Store, progress: Progress) -> Outcome:
    source_id = store.next_source_id()
    hashing = ThreadPoolExecutor(1)
    digest = hashing.submit(_sha256, source.path)
    hashing.shutdown(wait=False)
    count, channels, version = tally.Tally(), dict[str, Channel](), ""
    lines = rejects = 0
    findings: list[Finding] = []
    spans = False
    size = source.path.stat().st_size
    for part in ahead(gathered(map(_in_file_order, adapter.parse(log)))):
        lines += part.lines
        channels.update({c.device: c for c in part.channels})
        version = version or part.tool_version
        findings += part.findings
        rejects += _write(part, source_id, store)
        if part.readings is not None and part.readings.height:
            count.add(part.readings)
            spans = spans or (
                "span_s" in part.readings.columns and part.readings["span_s"].null_count() < part.readings.height
            )
        progress(source.name, min(part.lines and text.BLOCK_BYTES, size))
    gone = _settle(source, log, store, source_id, count, spans=spans)
    findings += _order_findings(source, count, gone)
    rejects += gone.height
    store.insert("channels", _channels(store, source_id, count, channels, settled=gone.height > 0))
    findings += _channel_findings(source, channels)
    row = {
        "source_id": source_id, "path": source.name, "sha256": digest.result(), "bytes": size, "adapter": adapter.name,
        "tool_version": version, "host": source.options.host, "clock": source.clock, "timezone": source.options.timezone or "",
        "lines": lines, "readings": count.readings - gone.height, "rejects": rejects, "first_utc": count.first,
        "last_utc": count.last, "ingested_utc": datetime.now(UTC),
    }  # fmt: skip
    store.insert(
        "sources", pl.DataFrame([row], schema_overrides={"source_id": pl.Int32, "first_utc": _UTC, "last_utc": _UTC})
    )
    store.remember(f"source:{source.name}", _settings(source))
    store.insert("findings", finding_rows(findings, stage="ingest", source_id=source_id))
    return Outcome(
        source.name, adapter.name, "read", lines, count.readings - gone.height, rejects, findings=tuple(findings)
    )


_UTC = pl.Datetime("us", "UTC")


def _in_file_order(part: Part) -> Part:
    """Return a part whose readings stand in the order of their lines; tables with several devices a line come in columns."""
    if part.readings is None or part.readings["line"].is_sorted():
        return part
    return replace(part, readings=part.readings.sort("line", maintain_order=True))


def _write(part: Part, source_id: int, store: Store) -> int:
    """Append a part to the store and return its number of rejects."""
    own = pl.lit(source_id, dtype=pl.Int32).alias("source_id")
    if part.readings is not None:
        store.insert("readings", part.readings.with_columns(own))
    for name, frame in (("logged_runs", part.runs), ("steps", part.steps), ("phases", part.phases)):
        if frame is not None:
            store.insert(name, frame.with_columns(own))
    if part.rejects is None:
        return 0
    store.insert("rejects", part.rejects.with_columns(own))
    return part.rejects.height


def _settle(
    source: SourceFile, log: Log, store: Store, source_id: int, count: tally.Tally, *, spans: bool
) -> pl.DataFrame:
    """Move readings that stand twice to the rejects, with their text."""
    coarse = count.equal_stamps > COARSE_SHARE * max(count.readings, 1)
    if count.sorted and (count.equal_stamps == 0 or (coarse and not spans)):
        return pl.DataFrame(schema={"line": pl.Int64, "device": pl.String, "same": pl.Boolean})
    gone = store.settle_duplicates(source_id, spans=count.sorted and coarse)
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


def _channels(
    store: Store, source_id: int, count: tally.Tally, channels: dict[str, Channel], *, settled: bool
) -> pl.DataFrame:
    if count.sorted and not settled:
        rows = tally.channel_rows(count.steps(), count.spans(), channels)
    else:
        steps = store.steps_of(source_id)
        us = [pl.col(f"{c}_utc").dt.timestamp("us").alias(f"{c}_us") for c in ("first", "last")]
        spans = (
            steps.with_columns(us)
            .group_by("device")
            .agg(n=pl.col("count").sum(), first_us=pl.col("first_us").min(), last_us=pl.col("last_us").max())
        )
        rows = tally.channel_rows(steps.select("device", "step_ms", "count"), spans, channels)
    return rows.with_columns(source_id=pl.lit(source_id, pl.Int32))


def _order_findings(source: SourceFile, count: tally.Tally, gone: pl.DataFrame) -> list[Finding]:
    found = []
    if not count.sorted:
        found.append(Finding(
            "time-goes-back", Severity.WARNING, source.name,
            f"Stamps go back in time, first at line {count.first_back_line}: lines were appended twice or the clock was set back. "
            "Readings are used in order of time.", {"line": count.first_back_line},
        ))  # fmt: skip
    if gone.height:
        same = int(gone["same"].sum())
        found.append(Finding(
            "duplicate-readings", Severity.WARNING, source.name,
            f"{gone.height} readings repeat the stamp of an earlier line of their device ({same} with the same values) and were set "
            f"aside, first at line {int(gone['line'][0])}.", {"readings": gone.height, "same": same},
        ))  # fmt: skip
    elif count.equal_stamps > COARSE_SHARE * max(count.readings, 1):
        found.append(Finding(
            "coarse-stamps", Severity.WARNING, source.name,
            f"{count.equal_stamps} of {count.readings} readings carry the stamp of the reading before: the logger is faster than its "
            "stamps, so times are known to one stamp step only.", {"readings": count.equal_stamps},
        ))  # fmt: skip
    return found


def _channel_findings(source: SourceFile, channels: dict[str, Channel]) -> list[Finding]:
    unknown = sorted(d for d, c in channels.items() if c.scope == "")
    if not unknown:
        return []
    return [Finding(
        "scope-unknown", Severity.ERROR, source.name,
        f"Nothing says what {', '.join(unknown)} covers, so its power belongs to no boundary and no energy is given. "
        'Add scope = "node" (or board, package, rack, facility) to this [[source]].', {"devices": unknown},
    )]  # fmt: skip


def finding_rows(
    findings: list[Finding], *, stage: str, run_id: str = "", source_id: int | None = None
) -> pl.DataFrame:
    """Return findings as rows of the store."""
    rows = [
        (
            run_id,
            source_id,
            stage,
            f.code,
            str(f.severity),
            f.subject,
            f.message,
            json.dumps(dict(f.evidence), sort_keys=True, default=str),
        )
        for f in findings
    ]
    names = ("run_id", "source_id", "stage", "code", "severity", "subject", "message", "evidence")
    types = [pl.String, pl.Int32, *[pl.String] * 6]
    return pl.DataFrame(rows, schema=dict(zip(names, types, strict=True)), orient="row")
