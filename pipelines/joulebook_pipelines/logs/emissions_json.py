"""Rows of CodeCarbon as JSON objects: what its logger output, its HTTP output and ``json.dump`` of its data class write.

The members are the columns of emissions.csv, so the rows are read as those of a table.
"""

from __future__ import annotations

import polars as pl

from joulebook_pipelines.logs import json_objects, table
from joulebook_pipelines.logs.contract import Head, Log
from joulebook_pipelines.logs.emissions_rows import COLUMNS, NEEDED, Rows


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
    objects, odd = json_objects.find(text, lambda o: set(o) >= NEEDED, mark='"timestamp"')
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


def _text(value: object) -> str | None:
    return None if value is None or isinstance(value, (dict, list)) else str(value)
