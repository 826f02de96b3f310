"""Rows of CodeCarbon as JSON objects: what its logger output, its HTTP output and ``json.dump`` of its data class write.

The members are the columns of emissions.csv, so the rows are read as those of a table.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from joulebook_pipelines.logs import table
from joulebook_pipelines.logs.contract import Head, Log
from joulebook_pipelines.logs.emissions_rows import COLUMNS, NEEDED, Rows

MOST_BROKEN = 1_000
"""After so many objects that end nowhere the rest is damage."""

_DECODER = json.JSONDecoder()


def looks(head: Head) -> bool:
    """Tell whether a file holds objects with the members of every version.

    Examples
    --------
    >>> looks(Head("e.json", '{"timestamp":"2026-11-02T09:10:00","duration":1,"emissions":1e-6,"energy_consumed":1e-5}', "utf-8", True))
    True
    """
    if "Energy consumed for " in head.text:  # the tracker's own messages, which hold the same
        return False
    return "{" in head.text and all(f'"{name}"' in head.text for name in NEEDED)


def read(log: Log) -> Rows:
    """Return the objects of a file as rows; an object that is cut is set aside.

    Raises
    ------
    LogRefusedError
        The file is larger than a file of one object per run can be.
    """
    text = log.whole_text()
    objects, odd = _objects(text)
    known = dict.fromkeys(COLUMNS, pl.String)
    frame = pl.DataFrame([[_text(o.get(c)) for c in COLUMNS] for _, _, o in objects], schema=known, orient="row")
    frame = frame.select(
        pl.Series("line", [at for at, _, _ in objects], dtype=pl.Int64),
        pl.Series("raw", [raw[: table.LONGEST_RAW] for _, raw, _ in objects], dtype=pl.String),
        *COLUMNS,
    )
    lost = pl.DataFrame(odd, schema={"line": pl.Int64, "raw": pl.String}, orient="row")
    present = frozenset(c for c in COLUMNS if any(c in o for _, _, o in objects))
    lines = text.count("\n") + (not text.endswith("\n"))
    return Rows(frame, table.whole_lines(lost, "not-a-json-object"), lines, present, (), ())


def _objects(text: str) -> tuple[list[tuple[int, str, dict[str, Any]]], list[tuple[int, str]]]:
    """Return line, text and members of each object that is a row, and lines of objects that end nowhere."""
    found: list[tuple[int, str, dict[str, Any]]] = []
    odd: list[tuple[int, str]] = []
    at, line, counted = text.find("{"), 1, 0
    broken = 0
    while at >= 0 and broken < MOST_BROKEN:
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            value, end, broken = None, at + 1, broken + 1
        if isinstance(value, dict) and set(value) >= NEEDED:
            found.append((line, " ".join(text[at:end].split()), value))
        else:
            if value is None and '"timestamp"' in (rest := text[at : at + table.LONGEST_RAW].split("\n}", 1)[0]):
                odd.append((line, rest.split("\n", 1)[0]))
            end = at + 1  # rows may lie inside an object that is none
        at = text.find("{", end)
    return found, odd


def _text(value: object) -> str | None:
    return None if value is None or isinstance(value, dict | list) else str(value)
