"""Lines of MLPerf logs: ``:::MLLOG {"key": …, "value": …, "time_ms": …, "metadata": {…}}``, behind any prefix."""

from __future__ import annotations

import polars as pl

from joulebook_pipelines.logs.contract import Block, Head

TAG = ":::MLLOG"

EPOCH_2000_MS, LAST_EPOCH_MS = 946_684_800_000, 4_102_444_800_000
"""Stamps below are milliseconds since the start of the benchmark, not Unix time; beyond the year 2100 they are damage."""


_LAUNCHER = (":::DLPAL ", ":::SYSJSON ")
"""Tags that launch scripts of submissions print before the benchmark itself writes its first event."""


def present(head: Head) -> bool:
    """Tell whether a file holds such lines, or begins as the output of a launcher whose benchmark will write them."""
    return f"{TAG} {{" in head.text or any(tag in head.text for tag in _LAUNCHER)


def events(block: Block) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the events of a block and the lines that were meant as events but are damaged.

    Returns
    -------
    tuple of polars.DataFrame
        ``line, time_ms, key, value, metadata, raw`` (value and metadata as JSON text; null where absent), and
        ``line, raw``.
    """
    lines = block.numbered().filter(pl.col("raw").str.contains(TAG, literal=True))
    body = pl.col("raw").str.extract(TAG + r"\s+(\{.*\})\s*$")
    found = lines.with_columns(body=body).with_columns(
        time_ms=pl.col("body")
        .str.extract(r'"time_ms"\s*:\s*(-?[\d.]+(?:[eE][+-]?\d+)?)\s*[,}]')
        .cast(pl.Float64, strict=False),
        key=pl.col("body").str.extract(r'"key"\s*:\s*"([^"]*)"'),
        value=pl.col("body").str.extract(r'"value"\s*:\s*("(?:[^"\\]|\\.)*"|\{[^{}]*\}|[^,{}]+)'),
        metadata=pl.col("body").str.extract(r'"metadata"\s*:\s*(\{[^{}]*\}|"[^"]*")'),
    )
    whole = pl.col("key").is_not_null() & pl.col("time_ms").is_not_null()
    # A shell that echoes its commands repeats the line inside quotes; only the output itself counts.
    echoed = pl.col("raw").str.contains(r"^\+|echo ")
    return (
        found.filter(whole).drop("body"),
        found.filter(~whole & ~echoed & pl.col("raw").str.contains(TAG + r"\s*\{")).select("line", "raw"),
    )


def stamp(time_ms: pl.Expr) -> pl.Expr:
    """Return UTC stamps; null for times that are no Unix time."""
    us = pl.when(time_ms.is_between(EPOCH_2000_MS, LAST_EPOCH_MS)).then(
        (time_ms * 1e3).round().cast(pl.Int64, strict=False)
    )
    return us.cast(pl.Datetime("us", "UTC"))


def told(metadata: pl.Expr, name: str) -> pl.Expr:
    """Return a member of the metadata as text without quotes."""
    value = metadata.str.extract(rf'"{name}"\s*:\s*("(?:[^"\\]|\\.)*"|[^,{{}}]+)')
    return value.str.strip_chars().str.strip_chars('"')
