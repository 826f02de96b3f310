"""Phase logs as JSON lines: one object a phase with run, phase, start and end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl

from joulebook_pipelines.logs import damage, json_text, phase_log, run_json
from joulebook_pipelines.logs.contract import Adapter, Block, Head, Log, LogRefusedError, Part


def _names(head: Head) -> dict[str, str]:
    first = next((line for line in head.lines[:20] if line.strip()), "")
    return phase_log.known([n for n, v in (json_text.members(first) or {}).items() if not isinstance(v, (dict, list))])


def _objects(head: Head) -> list[dict[str, Any]]:
    """Return the phases of a whole document: a list of them, one within an object, or an object with a member a phase."""
    stack, found = [json_text.value(head.text) if head.complete else None], list[dict[str, Any]]()
    while stack and not found:
        item = stack.pop()
        if isinstance(item, list):
            found = [o for o in item if isinstance(o, dict) and phase_log.is_whole(phase_log.known(list(o)))]
        elif isinstance(item, dict):
            inner = {k: v for k, v in item.items() if isinstance(v, dict)}
            named = [{"phase": k, **v} for k, v in inner.items() if {"start", "end"} <= set(phase_log.known(list(v)))]
            found = named if named and len(named) == len(item) else []
            stack += [v for v in item.values() if isinstance(v, (list, dict))]
    return found


def _sniff(head: Head) -> bool:
    if head.text.lstrip().startswith("{") and phase_log.is_whole(_names(head)):
        return True
    # Runs with their energies under their names have a start and an end as well.
    return head.text.lstrip()[:1] in {"{", "["} and bool(_objects(head)) and not run_json.looks(head)


def _of_document(log: Log) -> Iterator[Part]:
    """Yield the phases of a document; where in it each one stands is not told."""
    objects = _objects(log.head)
    names = phase_log.known(list(dict.fromkeys(k for o in objects for k in o)))
    reader = phase_log.Phases(
        log, names, [str(o[names["start"]]) for o in objects if o.get(names["start"]) is not None]
    )
    rows = [(1, *(None if (m := o.get(n)) is None else str(m) for n in names.values())) for o in objects]
    raw = pl.DataFrame(rows, schema={"line": pl.Int64, **dict.fromkeys(names, pl.String)}, orient="row")
    phases, rejects = reader.read(raw)
    findings = () if "run" in names else (phase_log.without_run(log),)
    yield Part(lines=sum(b.count for b in log.blocks()), phases=phases, rejects=rejects, findings=findings)


def _parse(log: Log) -> Iterator[Part]:
    names = _names(log.head)
    if not phase_log.is_whole(names) and _objects(log.head):
        yield from _of_document(log)
        return
    if not phase_log.is_whole(names):
        raise LogRefusedError(f"{log.name}:1: needs objects with phase, start and end (and run)")
    told = [o for line in log.head.lines[:200] if (o := json_text.members(line)) is not None]
    reader = phase_log.Phases(log, names, [str(o[names["start"]]) for o in told if o.get(names["start"]) is not None])
    for block in log.blocks():
        raw, odd = _split(block, names)
        phases, rejects = reader.read(raw)
        yield Part(lines=block.count, phases=phases, rejects=pl.concat([odd, rejects]))
    yield Part(findings=() if "run" in names else (phase_log.without_run(log),))


def _split(block: Block, names: dict[str, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the members of each object as text, and rejects of lines that are no object; phases are few."""
    rows: list[tuple[int | str | None, ...]] = []
    odd: list[tuple[int, str]] = []
    for number, line in enumerate(block.lines, block.first_line):
        if not line.strip():
            continue
        value = json_text.members(line)
        if value is None:
            odd.append((number, line))
            continue
        members = (value.get(n) for n in names.values())
        rows.append((number, *(None if m is None else str(m) for m in members)))
    raw = pl.DataFrame(rows, schema={"line": pl.Int64, **dict.fromkeys(names, pl.String)}, orient="row")
    bad = pl.DataFrame(odd, schema={"line": pl.Int64, "raw": pl.String}, orient="row")
    return raw, damage.odd_lines(block, bad, "not-a-json-object")


ADAPTER = Adapter(
    name="phases-jsonl",
    title="phase logs as JSON, in lines or a document (run, phase, start, end)",
    yields="phases of runs",
    sniff=_sniff,
    parse=_parse,
)
