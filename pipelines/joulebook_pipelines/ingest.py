"""From files to the store: each source in one transaction, read once, with full accounting.

Unchanged files are skipped; of a file that grew only what was added is read, where that gives the same.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from joulebook import own_time
from joulebook.findings import Finding, Severity
from joulebook_pipelines import __version__, recognise, source_reader, tally
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.contract import Adapter, Log, LogRefusedError, Options
from joulebook_pipelines.source_reader import Progress
from joulebook_pipelines.store import Store

_UTC = pl.Datetime("us", "UTC")
_HASHED_AT_ONCE = 1 << 20


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


class _ReadWholeError(Exception):
    """What was added cannot be told from the rest: the file must be read again from its first line."""


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
        One a file: read, grown (only what was added was read), unchanged, or refused with the reason.
    """
    known = {r["path"]: r for r in store.table("sources").iter_rows(named=True)}
    for gone in sorted(set(known) - {s.name for s in sources}):
        with store.transaction():
            store.forget_source(known[gone]["source_id"])
    return [_ingest_one(s, store, known.get(s.name), progress) for s in sources]


def _ingest_one(source: SourceFile, store: Store, known: dict[str, Any] | None, progress: Progress) -> Outcome:
    try:
        if known is not None and _same_reading(source, store, known):
            size = source.path.stat().st_size
            now, before = _sha256(source.path, size, int(known["bytes"]))
            if now == known["sha256"]:
                return Outcome(
                    source.name, known["adapter"], "unchanged", *(known[k] for k in ("lines", "readings", "rejects"))
                )
            if before == known["sha256"]:
                try:
                    return _grown(source, store, known, (size, now), progress)
                except _ReadWholeError:
                    pass
        log, adapter = recognised(source)
        with store.transaction():
            if known is not None:
                store.forget_source(known["source_id"])
            return _whole(source, log, adapter, store, progress)
    except LogRefusedError as error:
        with store.transaction():
            if known is not None:
                store.forget_source(known["source_id"])
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


def _same_reading(source: SourceFile, store: Store, known: dict[str, Any]) -> bool:
    """Tell whether the file was read with the same settings, by this version."""
    return store.study.get(f"source:{source.name}") == _settings(source) and known["clock"] == source.clock


def _settings(source: SourceFile) -> str:
    told = [__version__, source.adapter, source.clock, source.options.__dict__]
    return json.dumps(told, sort_keys=True, default=str)


def _sha256(path: Path, size: int, first_bytes: int = 0) -> tuple[str, str]:
    """Return the digest of ``size`` bytes of a file, and that of its first bytes (``""`` where it has no more than those)."""
    digest, before, passed = hashlib.sha256(), "", 0
    with path.open("rb") as file:
        while passed < size:
            end = first_bytes if passed < first_bytes else size
            piece = file.read(min(_HASHED_AT_ONCE, end - passed))
            if not piece:
                break
            digest.update(piece)
            passed += len(piece)
            if passed == first_bytes:
                before = digest.copy().hexdigest()
    return digest.hexdigest(), before if passed > first_bytes else ""


def _whole(source: SourceFile, log: Log, adapter: Adapter, store: Store, progress: Progress) -> Outcome:
    """Read a file from its first line to its last."""
    source_id = store.next_source_id()
    size = source.path.stat().st_size
    log = replace(log, to_byte=size)
    digest = _begin_hashing(source.path, size)
    taken = source_reader.take(log, adapter, store, source_id, tally.Tally(), progress)
    source_reader.settle(log, store, source_id, taken)
    store.insert("channels", source_reader.channel_rows(store, source_id, taken))
    count, readings = taken.count, taken.count.readings - taken.gone.height - taken.strays
    row = {
        "source_id": source_id, "path": source.name, "sha256": digest.result()[0], "bytes": size, "adapter": adapter.name,
        "tool_version": taken.version, "host": source.options.host, "clock": source.clock, "timezone": source.options.timezone or "",
        "lines": taken.lines, "readings": readings, "rejects": taken.rejects, "first_utc": count.first, "last_utc": count.last,
        "ingested_utc": datetime.now(UTC),
    }  # fmt: skip
    _note(store, row)
    store.remember({f"source:{source.name}": _settings(source)})
    store.insert("findings", finding_rows(taken.findings, stage="ingest", source_id=source_id))
    return Outcome(
        source.name, adapter.name, "read", taken.lines, readings, taken.rejects, findings=tuple(taken.findings)
    )


def _grown(
    source: SourceFile, store: Store, known: dict[str, Any], now: tuple[int, str], progress: Progress
) -> Outcome:
    """Read the lines that were added to a file.

    Raises
    ------
    _ReadWholeError
        Reading the whole file at once would, or might, say something else.
    """
    log, adapter = recognised(source)
    if not adapter.appendable or not text.can_resume(source.path, log.head, known["bytes"]):
        raise _ReadWholeError
    source_id = known["source_id"]
    log = replace(log, from_byte=known["bytes"], from_line=known["lines"] + 1, to_byte=now[0])
    said = store.findings_of_source(source_id)
    channels = store.channels_of_source(source_id)
    with store.transaction():
        taken = source_reader.take(log, adapter, store, source_id, tally.Tally(latest=known["last_utc"]), progress)
        source_reader.settle(log, store, source_id, taken)
        count = taken.count
        apart = count.last and known["last_utc"] and (count.last - known["last_utc"]).days > own_time.APART_DAYS
        # What was said of the first part counts its lines; the same words about both parts are those about neither.
        rows = finding_rows(taken.findings, stage="ingest", source_id=source_id)
        same = _of_lines(rows).equals(_of_lines(said))
        if (
            not same
            or apart
            or not count.sorted
            or count.equal_stamps
            or taken.strays
            or set(taken.channels) - set(channels)
        ):
            raise _ReadWholeError
        store.forget_rows("findings", source_id)
        store.insert("findings", rows)
        store.forget_rows("channels", source_id)
        store.insert("channels", source_reader.stored_channel_rows(store, source_id, channels))
        readings, rejects = known["readings"] + count.readings, known["rejects"] + taken.rejects
        lines = known["lines"] + log.passed.lines
        store.forget_rows("sources", source_id)
        _note(store, known | {
            "sha256": now[1], "bytes": now[0], "lines": lines, "readings": readings, "rejects": rejects,
            "last_utc": count.last or known["last_utc"], "ingested_utc": datetime.now(UTC),
        })  # fmt: skip
    return Outcome(source.name, adapter.name, "grown", lines, readings, rejects, findings=tuple(taken.findings))


def _of_lines(findings: pl.DataFrame) -> pl.DataFrame:
    """Return the findings that speak of the lines that were read, not of all readings of the source in the store."""
    return findings.filter(~pl.col("code").is_in(source_reader.OF_ALL)).sort("code", "subject")


def _begin_hashing(path: Path, size: int) -> Future[tuple[str, str]]:
    hashing = ThreadPoolExecutor(1)
    digest = hashing.submit(_sha256, path, size)
    hashing.shutdown(wait=False)
    return digest


def _note(store: Store, row: dict[str, Any]) -> None:
    types: dict[str, pl.DataType | type[pl.DataType]] = {"source_id": pl.Int32, "first_utc": _UTC, "last_utc": _UTC}
    store.insert("sources", pl.DataFrame([row], schema_overrides=types))


def finding_rows(
    findings: list[Finding], *, stage: str, run_id: str = "", source_id: int | None = None
) -> pl.DataFrame:
    """Return findings as rows of the store."""
    rows = [
        (
            run_id, source_id, stage, f.code, str(f.severity), f.subject, f.message,
            json.dumps(dict(f.evidence), sort_keys=True, default=str),
        )
        for f in findings
    ]  # fmt: skip
    names = ("run_id", "source_id", "stage", "code", "severity", "subject", "message", "evidence")
    types = [pl.String, pl.Int32, *[pl.String] * 6]
    return pl.DataFrame(rows, schema=dict(zip(names, types, strict=True)), orient="row")
