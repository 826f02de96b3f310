"""Ingest of an eight-card nvidia-smi CSV against bare parses of the same file."""

from __future__ import annotations

import datetime as dt
import os
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
    with open_store(pathlib.Path(folder) / "s.duckdb", read_only=False, memory_limit="750MB") as store:
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
UNITS = {"power.draw": " W", "utilization.gpu": " %", "memory.used": " MiB", "clocks.current.sm": " MHz", "power.limit": " W"}
out = {}
began = time.perf_counter()
frame = pd.read_csv(sys.argv[1], **READ)
frame.columns = [c.split("[")[0].strip() for c in frame.columns]
frame["timestamp"] = pd.to_datetime(frame["timestamp"])
for column in frame.columns[3:]:
    if frame[column].dtype.kind not in "if":
        frame[column] = frame[column].str.replace(UNITS[column], "").astype(float)
out["seconds"] = time.perf_counter() - began
"""
"""As notebooks do it: the units that nvidia-smi writes by default are cut off, most often by ``str.replace``."""

PANDAS_BLANKS = PANDAS.replace("**READ", "sep=', ', engine='python'")
"""With the separator that the file has, a comma and a blank: only the reader written in Python knows such a one."""

PANDAS_QUICK = PANDAS.replace(", **READ", "")
"""With the reader written in C; the blanks stay in the titles and texts."""

UNITS = ("", "", "", " W", " %", " MiB", "", " MHz", " W")

GROWN = """
import sys, time, tempfile, pathlib
from joulebook_pipelines.ingest import SourceFile, ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import open_store
out, log, whole = {}, pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
source = (SourceFile(log, "log", "node", None, Options(timezone="UTC")),)
with tempfile.TemporaryDirectory() as folder:
    with open_store(pathlib.Path(folder) / "s.duckdb", read_only=False, memory_limit="750MB") as store:
        ingest(source, store)
        with log.open("ab") as file, whole.open("rb") as rest:
            rest.seek(log.stat().st_size)
            file.write(rest.read())
        began = time.perf_counter()
        (outcome,) = ingest(source, store)
        out["grown"], out["status"] = time.perf_counter() - began, outcome.status
    with open_store(pathlib.Path(folder) / "w.duckdb", read_only=False, memory_limit="750MB") as store:
        began = time.perf_counter()
        ingest(source, store)
    out["whole"] = time.perf_counter() - began
"""


def _log(rows: int, *, units: bool = False):
    path = DATA / f"nvidia-smi-{rows}{'-units' if units else ''}.csv"
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
            cells = [
                pl.concat_str(pl.col(c).cast(pl.String), pl.lit(u if units else ""))
                for c, u in zip(frame.columns, UNITS, strict=True)
            ]
            lines = frame.select(pl.concat_str(cells, separator=", ")).to_series()
            file.write("\n".join(lines) + "\n")
    return path


def test_ingest_against_bare_parses(bench):
    path = _log(8_000_000)
    best = bench.least(3, ours=(OURS, (path,)), duckdb=(DUCKDB, (path, COLUMNS)), polars=(POLARS, (path,)))
    ours = best["ours"]["seconds"]
    against = {name: figures["seconds"] / ours for name, figures in best.items()}
    with_units = _log(8_000_000, units=True)
    same = bench.least(2, ours=(OURS, (with_units,)), quick=(PANDAS_QUICK, (with_units,)))
    against["quick"] = same["quick"]["seconds"] / same["ours"]["seconds"]
    usual = bench.least(1, usual=(PANDAS_BLANKS, (with_units,)))["usual"]["seconds"]
    against["pandas"] = usual / same["ours"]["seconds"]
    size = path.stat().st_size / 1e9
    what = f"ingest of 8 M rows, {size:.2f} GB, with full accounting"
    bench.row(f"{what}, against DuckDB's typed read_csv into a table", "≥ 0.6 ×", f"{against['duckdb']:.2f} ×")
    bench.row(f"{what}, against polars reading text", "", f"{against['polars']:.2f} ×")
    bench.row(
        "the same log with units, against pandas told of the separator `, `, units cut off",
        "≥ 12 ×",
        f"{against['pandas']:.1f} ×",
    )
    bench.row("the same, against pandas' reader in C, units cut off", "", f"{against['quick']:.1f} ×")
    bench.row("its peak memory", "< 2 GB", f"{best['ours']['peak_mb'] / 1000:.2f} GB")
    assert against["duckdb"] >= 0.6
    assert against["pandas"] >= 12
    assert best["ours"]["peak_mb"] < 2000


def _other(name: str, rows: int) -> Path:
    """Write a log of one meter or one machine as PTDaemon or a powercap poll would."""
    path = DATA / f"{name}-{rows}.csv"
    if path.is_file():
        return path
    DATA.mkdir(exist_ok=True)
    rng, start = np.random.default_rng(2), dt.datetime(2026, 11, 2, 9)
    i = np.arange(rows)
    at = pl.Series(i * 100_000).cast(pl.Duration("us")) + pl.Series([start])
    watts = np.round(400 + 30 * rng.standard_normal(rows), 2)
    if name == "ptdaemon":
        cells = ["Time", at.dt.strftime("%m-%d-%Y %H:%M:%S%.3f"), "Watts", watts, "Volts", 230.1, "Amps",
                 np.round(watts / 230.1, 3), "PF", 0.98, "Mark", "notset"]  # fmt: skip
        header = ""
    else:
        cells = [at.dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ"), np.cumsum(watts * 1e5).astype(np.int64),
                 np.cumsum(watts * 2e4).astype(np.int64), np.cumsum(watts * 3e4).astype(np.int64)]  # fmt: skip
        header = "timestamp,package-0_uj,dram_uj,package-1_uj\n"
    columns = [pl.Series(str(k), c) if isinstance(c, np.ndarray | pl.Series) else pl.Series(str(k), [c]).new_from_index(0, rows)
               for k, c in enumerate(cells)]  # fmt: skip
    lines = pl.DataFrame(columns).select(pl.concat_str(pl.all().cast(pl.String), separator=",")).to_series()
    path.write_text(header + "\n".join(lines) + "\n")
    return path


OTHERS = {
    "ptdaemon": (
        "{'w0': 'VARCHAR', 'ts': 'VARCHAR', 'w1': 'VARCHAR', 'p': 'DOUBLE', 'w2': 'VARCHAR', 'v': 'DOUBLE', 'w3': 'VARCHAR', "
        "'a': 'DOUBLE', 'w4': 'VARCHAR', 'pf': 'DOUBLE', 'w5': 'VARCHAR', 'mark': 'VARCHAR'}",
        "false",
    ),
    "powercap": ("{'ts': 'TIMESTAMP', 'p0': 'BIGINT', 'd': 'BIGINT', 'p1': 'BIGINT'}", "true"),
}  # fmt: skip

TYPED = """
import sys, time, tempfile, pathlib, duckdb
out = {}
kind = sys.argv[2]
columns, header = sys.argv[3], sys.argv[4]
chosen = "* replace (strptime(ts, '%m-%d-%Y %H:%M:%S.%g') as ts)" if kind == "ptdaemon" else "*"
with tempfile.TemporaryDirectory() as folder:
    con = duckdb.connect(str(pathlib.Path(folder) / "b.duckdb"))
    began = time.perf_counter()
    con.execute(f"create table a as select {chosen} from read_csv('{sys.argv[1]}', header={header}, columns={columns})")
    con.close()
    out["seconds"] = time.perf_counter() - began
"""


@pytest.mark.parametrize("name", OTHERS)
def test_other_plain_formats(bench, name):
    path = _other(name, 6_000_000)
    columns, header = OTHERS[name]
    best = bench.least(2, ours=(OURS, (path,)), duckdb=(TYPED, (path, name, columns, header)))
    ratio = best["duckdb"]["seconds"] / best["ours"]["seconds"]
    size = path.stat().st_size / 1e9
    bench.row(
        f"ingest of a {name} log of 6 M lines, {size:.2f} GB, against DuckDB's typed read_csv into a table",
        "≥ 0.6 ×",
        f"{ratio:.2f} ×",
    )
    bench.row("its peak memory", "< 2 GB", f"{best['ours']['peak_mb'] / 1000:.2f} GB")
    assert ratio >= 0.6
    assert best["ours"]["peak_mb"] < 2000


def test_what_was_added_to_a_log(bench, tmp_path):
    whole = _log(8_000_000)
    grown = tmp_path / "log.csv"
    text = whole.read_bytes()
    grown.write_bytes(text[: text.rindex(b"\n", 0, len(text) * 15 // 16) + 1])
    figures = bench.process(GROWN, grown, whole)
    task = "a log of 8 M rows of which a sixteenth is new, over reading it whole"
    bench.row(task, "", f"{100 * figures['grown'] / figures['whole']:.0f} %")
    assert figures["status"] == "grown"


LARGE = "BENCH_LARGE"
"""Environment variable with which logs of 10 GB are made and read too."""


@pytest.mark.parametrize("rows", [8_000_000, 100_000_000])
def test_time_per_row_does_not_grow(bench, rows):
    if rows > 10_000_000 and LARGE not in os.environ:
        pytest.skip(f"set {LARGE} to make and read a log of {rows} rows")
    few, many = _log(1_000_000), _log(rows)
    best = bench.least(2, few=(OURS, (few,)), many=(OURS, (many,)))
    ratio = best["many"]["seconds"] / (rows / 1e6) / best["few"]["seconds"]
    task = f"ingest time per row, {rows / 1e6:.0f} M rows ({many.stat().st_size / 1e9:.1f} GB) over 1 M rows"
    bench.row(task, "≤ 1.3", f"{ratio:.2f}")
    bench.row("its peak memory", "< 1.5 GB", f"{best['many']['peak_mb'] / 1000:.2f} GB")
    assert ratio <= 1.3
    assert best["many"]["peak_mb"] < 1500
