"""Training logs as JSON lines: one object a step with its time, and what it knows of tokens, loss and batch size."""

from __future__ import annotations

import json
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import stamps, table, work
from joulebook_pipelines.logs.contract import Adapter, Block, Head, Log, LogRefusedError, Part

_ENOUGH_NAMES = 2
"""A line must name a time or step and one more thing of a training step."""


def _first_object(head: Head) -> dict[str, object] | None:
    for line in head.lines[:20]:
        if line.strip():
            try:
                value = json.loads(line)
            except ValueError:
                return None
            return value if isinstance(value, dict) else None
    return None


def _sniff(head: Head) -> bool:
    first = _first_object(head)
    if first is None:
        return False
    known = work.known_names(tuple(first))
    return "end_utc" in known and "step" in known and len(known) > _ENOUGH_NAMES


def _parse(log: Log) -> Iterator[Part]:
    first = _first_object(log.head)
    if first is None:
        raise LogRefusedError(f"{log.name}:1: is not a JSON object")
    names = work.known_names(tuple(first))
    samples = [str(json.loads(line)[names["end_utc"]]) for line in _whole_lines(log.head)[:100] if _is_object(line, names["end_utc"])]
    form = work.stamp_form(log, samples)
    clock = stamps.Localiser(None if form.aware else log.options.timezone)
    collected = work.Steps(log, clock)
    for block in log.blocks():
        raw, rejects = _split(block, names)
        steps, more = collected.add(raw, names, form)
        yield Part(lines=block.count, steps=steps, rejects=pl.concat([rejects, more]))
    yield Part(runs=collected.runs(), findings=collected.findings())


def _is_object(line: str, name: str) -> bool:
    try:
        value = json.loads(line)
    except ValueError:
        return False
    return isinstance(value, dict) and value.get(name) is not None


def _whole_lines(head: Head) -> list[str]:
    lines = [line for line in head.lines if line.strip()]
    return lines if head.complete else lines[:-1]


def _split(block: Block, names: dict[str, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the known fields of each line as text, and rejects of lines that are no object."""
    numbers = pl.int_range(block.first_line, block.first_line + block.count, eager=True, dtype=pl.Int64).alias("line")
    lines = pl.DataFrame({"line": numbers, "raw": block.lines}).filter(pl.col("raw").str.strip_chars() != "")
    whole = lines["raw"].str.strip_chars().str.contains(r"^\{.*\}$")
    fields = [_field(name).alias(quantity) for quantity, name in names.items()]
    frame = lines.filter(whole).select("line", "raw", *fields)
    readable = frame.filter(pl.any_horizontal([pl.col(q).is_not_null() for q in names]))
    odd = pl.concat([lines.filter(~whole), frame.join(readable, on="line", how="anti").select("line", "raw")])
    cut = pl.col("line") == (block.first_line + block.count - 1 if not block.terminated else -1)
    rule = pl.when(cut).then(pl.lit("last-line-cut")).otherwise(pl.lit("not-a-json-object"))
    return readable.drop("raw"), table.whole_lines(odd.sort("line"), rule)


def _field(name: str) -> pl.Expr:
    """Return a member of the object as text, without quotes; the text of a nested object is not looked into."""
    key = json.dumps(name)
    escaped = "".join(f"\\{c}" if c in r"\.+*?()|[]{}^$" else c for c in key)
    value = pl.col("raw").str.extract(escaped + r'\s*:\s*("(?:[^"\\]|\\.)*"|[^,}\]]+)')
    text = value.str.strip_chars()
    return pl.when(text != "null").then(text.str.strip_chars('"'))


ADAPTER = Adapter(
    name="training-jsonl",
    title="training loops that log JSON lines (time, run, step, loss, tokens, batch size …)",
    yields="runs, steps with tokens, loss, batch size and learning rate",
    sniff=_sniff,
    parse=_parse,
)
