"""Stamps of a clock moved to true time, as a row of table ``alignments`` says."""

from __future__ import annotations

from typing import Any

import polars as pl


def corrected(ts_utc: pl.Expr, row: dict[str, Any]) -> pl.Expr:
    """Return stamps of a clock moved to true time.

    Parameters
    ----------
    ts_utc
        Stamps on the clock.
    row
        ``offset_s``, ``drift_ppm`` and ``anchor_utc`` of the clock; true time = stamp − offset − drift · (stamp − anchor).

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> noon = pl.DataFrame({"t": [datetime(2026, 1, 1, 12, tzinfo=timezone.utc)]})
    >>> row = {"offset_s": 30.0, "drift_ppm": None, "anchor_utc": None}
    >>> noon.select(corrected(pl.col("t"), row)).item().strftime("%H:%M:%S")
    '11:59:30'
    """
    drift = (row["drift_ppm"] or 0.0) * 1e-6
    anchor = row["anchor_utc"]
    since_us = (ts_utc - anchor).dt.total_microseconds() if anchor is not None and drift else pl.lit(0.0)
    moved_us = ((row["offset_s"] or 0.0) * 1e6 + drift * since_us).round().cast(pl.Int64)
    return ts_utc - pl.duration(microseconds=moved_us)


def spans(rows: pl.DataFrame, alignments: pl.DataFrame, *, clock: str) -> pl.DataFrame:
    """Return rows with ``start_utc`` and ``end_utc`` moved from a clock to the reference.

    Parameters
    ----------
    rows
        ``start_utc, end_utc`` on the clock; null stays null.
    alignments
        Rows of table ``alignments``. A clock that was refused, or is not there, leaves the rows as they are.
    clock
        The clock.
    """
    own = alignments.filter(pl.col("clock") == clock, pl.col("status").is_in(["aligned", "assumed"]))
    if own.is_empty():
        return rows
    row = own.row(0, named=True)
    return rows.with_columns(corrected(pl.col(c), row).alias(c) for c in ("start_utc", "end_utc"))
