"""The store's tables, said once: names, types, units and meaning of every column, and the words for scopes and phases.

The unit is part of the name. Times are UTC, intervals half-open, ratios 0 to 1. A reading over a span is labelled by
the span's end.
"""

from __future__ import annotations

import polars as pl

from joulebook.boundaries import SCOPES, SUMMED_SCOPES
from joulebook.schema_columns import QUANTITIES, QUANTITY_NAMES, UTC, Column, Table
from joulebook.schema_facts import FACTS
from joulebook.schema_results import RESULTS

__all__ = [
    "PHASES", "QUANTITIES", "QUANTITY_NAMES", "SCOPES", "SEGMENT_KINDS", "SUMMED_SCOPES", "TABLES", "UTC", "Column", "Table",
    "conform", "table",
]  # fmt: skip

PHASES = (
    "startup", "warmup", "data_wait", "forward", "backward", "grad_sync", "optimizer", "checkpoint", "evaluation", "idle",
)  # fmt: skip

SEGMENT_KINDS = ("warmup", "stable", "stall", "idle", "transient")

TABLES = (*FACTS, *RESULTS)
"""Every table of the store, in the order in which it is made."""

_BY_NAME = {t.name: t for t in TABLES}


def table(name: str) -> Table:
    """Return the table of that name.

    Raises
    ------
    KeyError
        There is no such table.
    """
    return _BY_NAME[name]


def conform(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the frame with exactly the columns of a table, in order and type; missing ones are null.

    Raises
    ------
    ValueError
        The frame has a column that the table does not know.
    """
    want = _BY_NAME[name].schema
    unknown = [c for c in frame.columns if c not in want]
    if unknown:
        raise ValueError(f"table {name!r} has no column {', '.join(unknown)}; it has {', '.join(want)}")
    return frame.select((pl.col(c) if c in frame.columns else pl.lit(None)).cast(t).alias(c) for c, t in want.items())
