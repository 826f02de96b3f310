"""Lines of JSON objects as columns: lines that differ in their scalars only are read at once, the others one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import polars as pl

from joulebook_pipelines.logs import json_text
from joulebook_pipelines.logs.contract import Log
from joulebook_pipelines.logs.json_records import LINES_AT_ONCE, NUMBERS, Record, flat

FEW_ALIKE = 16
"""So few lines of one shape are not worth a plan of their own."""

_STRING = r'"[^"\\\x00-\x1f]*"'
_SCALAR = rf":\s*(?:{_STRING}|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)"
"""A member's value behind its colon. An escape, a bare list and anything damaged stay in the shape of the line."""

Columns = tuple[pl.DataFrame, list[tuple[int, str]], int]
"""``line`` and a text column per path of names, null where a line has none; lines that are no object; number of lines."""


def of_lines(log: Log) -> Iterator[Columns]:
    """Yield some lines at a time as columns."""
    for block in log.blocks():
        lines = block.lines
        for at in range(0, len(lines), LINES_AT_ONCE):
            some = lines[at : at + LINES_AT_ONCE]
            numbers = pl.int_range(block.first_line + at, block.first_line + at + len(some), eager=True, dtype=pl.Int64)
            frame = pl.DataFrame({"line": numbers, "raw": some}).filter(pl.col("raw").str.strip_chars() != "")
            yield (*_read(frame), len(some))


def of_records(records: Sequence[Record]) -> pl.DataFrame:
    """Return records as columns."""
    names = dict.fromkeys(n for r in records for n in r.cells)
    columns = {n: [r.cells.get(n) for r in records] for n in names if n != "line"}
    # A member of that name keeps its cells under one that no path has.
    columns |= {"": [r.cells.get("line") for r in records]} if "line" in names else {}
    schema = {"line": pl.Int64, **dict.fromkeys(columns, pl.String)}
    return pl.DataFrame({"line": [r.line for r in records], **columns}, schema=schema)


def _read(lines: pl.DataFrame) -> tuple[pl.DataFrame, list[tuple[int, str]]]:
    text = pl.col("raw").str.strip_chars().str.strip_chars_end(",")
    told = lines.with_columns(text=text).with_columns(
        shape=pl.col("text").str.replace_all(_SCALAR, ":#").hash(), scalars=pl.col("text").str.extract_all(_SCALAR)
    )
    frames: list[pl.DataFrame] = []
    left: list[pl.DataFrame] = []
    for alike in told.partition_by("shape", maintain_order=True):
        plan = _plan(alike["text"][0], alike["scalars"][0].to_list()) if alike.height >= FEW_ALIKE else None
        if plan is None:
            left.append(alike)
            continue
        numbering = [i for i, name in enumerate(plan) if name.rpartition(".")[2] in NUMBERS]
        if not numbering:
            frames.append(_filled(alike, plan))
            continue
        keys = [pl.col("scalars").list.get(i).alias(f"k{i}") for i in numbering]
        for same in alike.with_columns(keys).partition_by([f"k{i}" for i in numbering], maintain_order=True):
            named = _plan(same["text"][0], same["scalars"][0].to_list())
            if named is None or (same.height < FEW_ALIKE < alike.height):
                left.append(same.select(alike.columns))
            else:
                frames.append(_filled(same, named))
    slow, odd = _one_by_one(pl.concat(left).sort("line")) if left else ([], [])
    if slow:
        frames.append(of_records(slow))
    frames.sort(key=lambda f: int(f["line"][0]))
    if not frames:
        return pl.DataFrame(schema={"line": pl.Int64}), odd
    return pl.concat(frames, how="diagonal").sort("line"), odd


def _plan(text: str, scalars: list[str]) -> list[str] | None:
    """Return the path of each scalar of a line, ``None`` where the scalars are not what the line holds."""
    try:
        found = json.loads(text)
        values = [json.loads(s[1:]) for s in scalars]
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    cells = flat(found)
    told = ["" if v is None else str(v) for v in values]
    return list(cells) if list(cells.values()) == told and "line" not in cells else None


def _filled(alike: pl.DataFrame, plan: list[str]) -> pl.DataFrame:
    """Return the scalars of lines of one shape under their paths."""
    scalar = [pl.col("scalars").list.get(i).str.strip_prefix(":").str.strip_chars_start() for i in range(len(plan))]
    words = {"null": "", "true": "True", "false": "False"}
    cells = [
        pl.when(s.str.starts_with('"')).then(s.str.slice(1, s.str.len_chars() - 2)).otherwise(s.replace(words)).alias(n)
        for s, n in zip(scalar, plan, strict=True)
    ]
    return alike.select("line", *cells)


def _one_by_one(lines: pl.DataFrame) -> tuple[list[Record], list[tuple[int, str]]]:
    """Return the records of lines of any shape, and the lines that are none."""
    records, odd = [], []
    for line, raw, text in lines.select("line", "raw", "text").iter_rows():
        found = json_text.members(text)
        if found is not None:
            records.append(Record(line, flat(found)))
        else:
            odd.append((line, raw))
    return records, odd
