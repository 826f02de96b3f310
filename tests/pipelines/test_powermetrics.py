"""Samples of powermetrics that are shorter than the second that its stamps are printed in; numbers worked out by hand."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import polars as pl

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.contract import Log


def test_samples_of_a_tenth_of_a_second_follow_each_other(tmp_path: Path) -> None:
    """No sample overlaps the one before, and each ends within the second that was printed at its end."""
    ends, at, told = [], dt.datetime(2026, 3, 2, 10, 0, 0, 870_000, tzinfo=dt.UTC), ""
    for i in range(60):
        length_ms = 104.0 + i % 7
        at += dt.timedelta(milliseconds=length_ms)
        ends.append(at)
        told += f"*** Sampled system activity ({at:%a %b %e %H:%M:%S %Y} +0000) ({length_ms:.2f}ms elapsed) ***\n"
        told += f"Combined Power (CPU + GPU + ANE): {200 + i} mW\n"
    path = tmp_path / "powermetrics_log.txt"
    path.write_text(told)
    head = text.head(path, path.name)
    parts = list(recognise.adapter_for(head).parse(Log(path, head)))
    readings = pl.concat([p.readings for p in parts if p.readings is not None]).sort("line")
    gaps = readings.select(
        s=(pl.col("ts_utc").diff().dt.total_microseconds() / 1e6) - pl.col("span_s")
    ).to_series().drop_nulls()  # fmt: skip
    assert gaps.min() > -1e-5
    # The samples pin each other down: nothing is left open between them.
    assert gaps.abs().max() < 1e-5
    off = [abs((found - true).total_seconds()) for found, true in zip(readings["ts_utc"], ends, strict=True)]
    assert max(off) < 0.11
