"""Integration with intervals against a bare trapezoid of the same numbers."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.bench

MAKE = """
import sys, time
import numpy as np, polars as pl
n = int(sys.argv[1])
watts = 300 + 20 * np.random.default_rng(1).standard_normal(n)
stamps = pl.Series(np.arange(n, dtype=np.int64) * 1_000_000).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
power = pl.DataFrame({"device": pl.repeat("gpu:0", n, eager=True), "ts_utc": stamps, "power_w": watts})
out = {}
"""

OURS = (
    MAKE
    + """
from joulebook import energy
began = time.perf_counter()
energy.integrate(power, start_utc=stamps[0], end_utc=stamps[-1])
out["seconds"] = time.perf_counter() - began
"""
)

BARE = (
    MAKE
    + """
began = time.perf_counter()
np.trapezoid(power["power_w"].to_numpy(), power["ts_utc"].to_physical().to_numpy() / 1e6)
out["seconds"] = time.perf_counter() - began
"""
)

PANDAS = (
    MAKE
    + """
import pandas as pd
series = pd.Series(watts, index=pd.DatetimeIndex(stamps.to_numpy()))
began = time.perf_counter()
step = series.index.to_series().diff().dt.total_seconds()
((series + series.shift()) / 2 * step).where(step <= step.median()).resample("1h").sum().sum()
out["seconds"] = time.perf_counter() - began
"""
)


def test_integration_with_intervals(bench):
    n = 10_000_000
    best = bench.least(2, ours=(OURS, (n,)), bare=(BARE, (n,)), pandas=(PANDAS, (n,)))
    ours = best["ours"]["seconds"]
    bench.row(
        "energy of 10⁷ readings with interval, gaps and coverage, over numpy's bare trapezoid",
        "",
        f"{ours / best['bare']['seconds']:.0f} × its time",
    )
    bench.row("the same, against a pandas series integrated by hour", "", f"{best['pandas']['seconds'] / ours:.2f} ×")
    bench.row("its peak memory", "", f"{best['ours']['peak_mb'] / 1000:.2f} GB")
