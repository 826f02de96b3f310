"""The whole run of a node's week against a bare parse of its files, and what growing and repeating cost."""

from __future__ import annotations

import node_week
import pytest

pytestmark = pytest.mark.bench

RENDERING_S = 20.0
"""Time that pictures and notebooks may take, whatever the length of the logs."""

RUN = """
import sys, time, pathlib
from joulebook_pipelines import config, job, run
out, stages, began = {}, [], time.perf_counter()
step = lambda text: stages.append((text, time.perf_counter() - began))
study = config.load(pathlib.Path(sys.argv[1]))
job.run(study, pathlib.Path(sys.argv[2]), run.Told(step=step))
out["seconds"] = time.perf_counter() - began
at = dict(reversed(stages))
names = [t for t, _ in stages]
first_book = next(s for t, s in stages if "notebook" in t or "report" in t)
out["ingest"] = stages[1][1] if len(stages) > 1 else 0.0
out["analysis"] = first_book - out["ingest"]
out["rendering"] = out["seconds"] - first_book
out["stages"] = [(t, round(s, 2)) for t, s in stages]
"""

BARE = """
import sys, time, tempfile, pathlib, duckdb
folder, out = pathlib.Path(sys.argv[1]), {}
gpu = "{'ts': 'TIMESTAMP', 'g': 'INTEGER', 'p': 'DOUBLE', 'u': 'DOUBLE', 'mem': 'DOUBLE', 'temp': 'DOUBLE', 'c': 'DOUBLE'}"
with tempfile.TemporaryDirectory() as scratch:
    con = duckdb.connect(str(pathlib.Path(scratch) / "b.duckdb"))
    began = time.perf_counter()
    con.execute(f"create table g as select * from read_csv('{folder / 'gpu.csv'}', header=true, columns={gpu})")
    con.execute(f"create table m as select * from read_csv('{folder / 'meter.csv'}')")
    lines = "columns={'line': 'VARCHAR'}, delim='\\x01', header=false"
    con.execute(f"create table i as select * from read_csv('{folder / 'ipmi.txt'}', {lines})")
    con.execute(f"create table t as select * from read_json('{folder / 'train.jsonl'}')")
    con.close()
    out["seconds"] = time.perf_counter() - began
"""


def test_node_week(bench, tmp_path):
    folder = node_week.write(bench.data / "node-week")
    bare = bench.least(2, bare=(BARE, (folder,)))["bare"]["seconds"]
    whole = bench.process(RUN, folder, tmp_path / "out")
    again = bench.process(RUN, folder, tmp_path / "out")
    parsing = whole["seconds"] - RENDERING_S
    task = "a node's week (8 cards and a meter at 1 Hz, BMC every 5 s, 14 runs)"
    bench.row(
        f"{task} to the report, less {RENDERING_S:.0f} s, over DuckDB's bare parse of its files",
        "≤ 4 ×",
        f"{parsing / bare:.1f} ×",
    )
    bench.row("its notebooks and report", "≤ 20 s", f"{whole['rendering']:.0f} s")
    bench.row("its stages of analysis over its ingest", "≤ 1.5 ×", f"{whole['analysis'] / whole['ingest']:.2f} ×")
    bench.row("its peak memory", "", f"{whole['peak_mb'] / 1000:.2f} GB")
    bench.row("the same again with nothing changed", "≤ 5 %", f"{100 * again['seconds'] / whole['seconds']:.1f} %")
    assert parsing <= 4 * bare
    assert whole["analysis"] <= 1.5 * whole["ingest"]
    assert again["seconds"] <= 0.05 * whole["seconds"]
