"""Integration with intervals, from the store, against what peers do with the same numbers in memory.

Each does a thousand readings first, so that what is loaded once a process is not counted.
"""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.bench

MAKE = """
import sys, time
import numpy as np
n = int(sys.argv[1])
watts = 300 + 20 * np.random.default_rng(1).standard_normal(n)
seconds = np.arange(n, dtype=np.int64)
out = {}
"""

FILL = (
    MAKE
    + """
import pathlib
import polars as pl
from joulebook_pipelines.store import open_store
stamps = pl.Series(seconds * 1_000_000).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
with open_store(pathlib.Path(sys.argv[2]), read_only=False) as store:
    own = {"source_id": pl.lit(1, pl.Int32), "device": pl.lit("gpu:0")}
    power = pl.DataFrame({"line": seconds + 2, "ts_utc": stamps, "power_w": watts}).with_columns(**own)
    store.insert("readings", power)
    store.insert("sources", pl.DataFrame({"path": ["log"], "host": ["node"], "clock": ["node"]}).with_columns(source_id=own["source_id"]))
    store.insert("channels", pl.DataFrame({"device": ["gpu:0"], "scope": ["board"]}).with_columns(source_id=own["source_id"]))
    run = pl.DataFrame({"run_id": ["run"], "host": ["node"], "start_utc": stamps[:1], "end_utc": stamps[-1:]})
    store.insert("runs", run)
    used = pl.DataFrame({"run_id": ["run"], "scope": ["board"], "device": ["gpu:0"], "chosen": [True]})
    store.insert("instruments", used.with_columns(source_id=own["source_id"]))
"""
)

OURS = """
import sys, time, pathlib, datetime
from joulebook import energy
from joulebook_pipelines.store import open_store
out = {}
with open_store(pathlib.Path(sys.argv[2])) as store:
    run = store.runs().row(0, named=True)
    few = store.power("run", scope="board", end_utc=run["start_utc"] + datetime.timedelta(seconds=1000))
    energy.integrate(few, start_utc=run["start_utc"], end_utc=few["ts_utc"][-1])
    began = time.perf_counter()
    power = store.power("run", scope="board")
    energy.integrate(power, start_utc=run["start_utc"], end_utc=run["end_utc"])
    out["seconds"] = time.perf_counter() - began
    out["readings"] = power.height
"""

BARE = (
    MAKE
    + """
began = time.perf_counter()
np.trapezoid(watts, seconds)
out["seconds"] = time.perf_counter() - began
"""
)

RDTOOLS = (
    MAKE
    + """
import pandas as pd, rdtools
series = pd.Series(watts, index=pd.to_datetime(seconds, unit="s", utc=True))
rdtools.energy_from_power(series[:1000], "h", pd.Timedelta(seconds=3)).sum()
began = time.perf_counter()
rdtools.energy_from_power(series, "h", pd.Timedelta(seconds=3)).sum()
out["seconds"] = time.perf_counter() - began
"""
)


def test_integration_with_intervals(bench, tmp_path):
    n = 10_000_000
    bench.process(FILL, n, tmp_path / "s.duckdb")
    best = bench.least(5, ours=(OURS, (n, tmp_path / "s.duckdb")), bare=(BARE, (n,)))
    ours = best["ours"]["seconds"]
    assert best["ours"]["readings"] == n
    task = "energy of 10⁷ readings from the store, with interval, gaps and coverage"
    bench.row(
        f"{task}, over numpy's bare trapezoid of an array", "", f"{ours / best['bare']['seconds']:.0f} × its time"
    )
    bench.row("its peak memory", "", f"{best['ours']['peak_mb'] / 1000:.2f} GB")
    if bench.peers is None:
        pytest.skip("PEERS_PYTHON names no Python with rdtools")
    peer = min((bench.process(RDTOOLS, n, python=bench.peers) for _ in range(2)), key=lambda r: r["seconds"])
    bench.row(f"{task}, against RdTools by hour without interval", "≥ 10 ×", f"{peer['seconds'] / ours:.1f} ×")
    bench.row("RdTools' peak memory", "", f"{peer['peak_mb'] / 1000:.2f} GB")
    assert peer["seconds"] / ours >= 10
