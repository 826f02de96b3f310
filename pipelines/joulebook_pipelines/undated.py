"""Tables of runs that do not say when these were: each is laid behind those before it.

All laid on the same time, one would be taken for another instrument of the other's runs.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import polars as pl

from joulebook_pipelines.logs.contract import Part
from joulebook_pipelines.store import Store

CODE = "no-times"
"""The finding of a table whose runs were laid one after another."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""Where the first of them begins."""

APART = timedelta(seconds=1)
"""Time between two tables."""


def begin(store: Store) -> timedelta:
    """Return how long after 1970 the next table of runs without times begins."""
    before = store.table("sources").filter(pl.col("source_id").is_in(store.sources_with({CODE})))
    last = max(before["last_utc"].drop_nulls().to_list(), default=None)
    return timedelta(0) if last is None else last - EPOCH + APART


def later(part: Part, by: timedelta) -> Part:
    """Return a part moved by so much where its times were laid, else as it is."""
    if not by or all(f.code != CODE for f in part.findings):
        return part
    return replace(part, readings=_moved(part.readings, by), runs=_moved(part.runs, by), phases=_moved(part.phases, by))


def _moved(frame: pl.DataFrame | None, by: timedelta) -> pl.DataFrame | None:
    return None if frame is None else frame.with_columns(pl.col(pl.Datetime("us", "UTC")) + by)
