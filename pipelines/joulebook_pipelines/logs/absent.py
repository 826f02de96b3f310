"""Columns of things that a machine does not have: a tool writes 0 for them all along, which is no measurement."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import cells
from joulebook_pipelines.logs.contract import Log


def stays_zero(rows: Sequence[Sequence[str]], place: int) -> bool:
    """Tell whether a column is 0 in all the first rows of a file: what it names is not measured there.

    Examples
    --------
    >>> stays_zero([["1", "0.0"], ["2", "0.0"]], 1), stays_zero([["1", "0"], ["2", "5"]], 1)
    (True, False)
    """
    values = pl.DataFrame({"v": [r[place] for r in rows]}).select(cells.plain_number(pl.col("v"))).to_series()
    values = values.drop_nulls()
    return len(values) > 0 and bool((values == 0).all())


def told(log: Log, columns: Sequence[str]) -> tuple[Finding, ...]:
    """Return the finding that says which columns were not read for it."""
    if not columns:
        return ()
    return (Finding(
        "domain-absent", Severity.NOTE, log.name,
        f"Not read, as the machine does not measure it (0 all along): {', '.join(columns)}.", {"columns": list(columns)},
    ),)  # fmt: skip
