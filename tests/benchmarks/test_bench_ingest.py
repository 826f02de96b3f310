"""Ingest of an eight-card nvidia-smi CSV against bare parses of the same file."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import polars as pl
import pytest

DATA = Path(__file__).resolve().parents[2] / "benchmarks-data"

pytestmark = pytest.mark.bench

HEADER = (
    "timestamp, index, uuid, power.draw [W], utilization.gpu [%], memory.used [MiB], temperature.gpu, "
    "clocks.current.sm [MHz], power.limit [W]\n"
)
COLUMNS = (
    "{'ts': 'TIMESTAMP', 'g': 'INTEGER', 'uuid': 'VARCHAR', 'p': 'DOUBLE', 'u': 'DOUBLE', 'mem': 'DOUBLE', 'temp': 'DOUBLE', "
    "'c': 'DOUBLE', 'lim': 'DOUBLE'}"
)

OURS = """
import sys, time, tempfile, pathlib
from joulebook_pipelines.ingest import SourceFile, ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import open_store
out = {}
with tempfile.TemporaryDirectory() as folder:
    with open_store(pathlib.Path(folder) / "s.duckdb", read_only=False, memory_limit="1GB") as store:
        began = time.perf_counter()
        ingest((SourceFile(pathlib.Path(sys.argv[1]), "log", "node", None, Options(timezone="UTC")),), store)
    out["seconds"] = time.perf_counter() - began
"""

DUCKDB = """
import sys, time, tempfile, pathlib, duckdb
out = {}
with tempfile.TemporaryDirectory() as folder:
    con = duckdb.connect(str(pathlib.Path(folder) / "b.duckdb"))
    began = time.perf_counter()
    con.execute("create table a as select * from read_csv('" + sys.argv[1] + "', header=true, columns=" + sys.argv[2] + ")")
    con.close()
    out["seconds"] = time.perf_counter() - began
"""

POLARS = """
import sys, time, polars as pl
out = {}
began = time.perf_counter()
pl.read_csv(sys.argv[1], infer_schema=False)
out["seconds"] = time.perf_counter() - began
"""

PANDAS = """
import sys, time, pandas as pd
out = {}
began = time.perf_counter()
frame = pd.read_csv(sys.argv[1], skipinitialspace=True)
frame["timestamp"] = pd.to_datetime(frame["timestamp"])
out["seconds"] = time.perf_counter() - began
"""


def _log(rows: int):
    path = DATA / f"nvidia-smi-{rows}.csv"
    if path.is_file():
        return path
    DATA.mkdir(exist_ok=True)
    rng, start = np.random.default_rng(1), dt.datetime(2026, 11, 2, 9)
    with path.open("w") as file:
        file.write(HEADER)
        for done in range(0, rows, 1_000_000):
            count = min(1_000_000, rows - done)
            i = np.arange(done, done + count)
            at = pl.Series(np.asarray((i // 8) * 1_000_000 + (i % 8) * 2000)).cast(pl.Duration("us")) + pl.Series(
                [start]
            )
            frame = pl.DataFrame({
                "t": at.dt.strftime("%Y/%m/%d %H:%M:%S%.3f"), "g": i % 8,
                "uuid": pl.Series(i % 8).cast(pl.String).str.replace(r"^", "GPU-1111-2222-3333-44444444444"),
                "p": np.round(600 + 50 * rng.standard_normal(count), 2), "u": rng.integers(90, 100, count),
                "mem": rng.integers(60_000, 70_000, count), "temp": rng.integers(50, 70, count),
                "c": rng.integers(1_700, 1_980, count), "lim": 700.0,
            })  # fmt: skip
            lines = frame.select(pl.concat_str(pl.all().cast(pl.String), separator=", ")).to_series()
            file.write("\n".join(lines) + "\n")
    return path


def test_ingest_against_bare_parses(bench):
    path = _log(8_000_000)
    best = bench.least(3, ours=(OURS, (path,)), duckdb=(DUCKDB, (path, COLUMNS)), polars=(POLARS, (path,)))
    best["pandas"] = bench.process(PANDAS, path)
    ours = best["ours"]["seconds"]
    against = {name: figures["seconds"] / ours for name, figures in best.items()}
    size = path.stat().st_size / 1e9
    what = f"ingest of 8 M rows, {size:.2f} GB, with full accounting"
    bench.row(f"{what}, against DuckDB's typed read_csv into a table", "≥ 0.6 ×", f"{against['duckdb']:.2f} ×")
    bench.row(f"{what}, against polars reading text", "", f"{against['polars']:.2f} ×")
    bench.row(f"{what}, against a usual pandas parse", "≥ 12 ×", f"{against['pandas']:.1f} ×")
    bench.row("its peak memory", "< 2 GB", f"{best['ours']['peak_mb'] / 1000:.2f} GB")
    assert against["duckdb"] >= 0.6
    assert against["pandas"] >= 12
    assert best["ours"]["peak_mb"] < 2000


def test_time_per_row_does_not_grow(bench):
    few, many = _log(1_000_000), _log(8_000_000)
    best = bench.least(2, few=(OURS, (few,)), many=(OURS, (many,)))
    ratio = best["many"]["seconds"] / 8 / best["few"]["seconds"]
    bench.row("ingest time per row, 8 M rows over 1 M rows", "≤ 1.3", f"{ratio:.2f}")
    assert ratio <= 1.3
