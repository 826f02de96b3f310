"""The whole run of a node's week against a bare parse of its files, and what repeating it costs.

The week is as its loggers would write it: eight cards and a meter at 1 Hz, the BMC every 5 s, fourteen training runs.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytestmark = pytest.mark.bench

RENDERING_S = 20.0
"""Time that pictures and notebooks may take, whatever the length of the logs."""

RUN = """
import sys, time, pathlib
from joulebook_pipelines import config, filling, job
out, stages, began = {}, [], time.perf_counter()
step = lambda text: stages.append((text, time.perf_counter() - began))
study = config.load(pathlib.Path(sys.argv[1]))
job.run(study, pathlib.Path(sys.argv[2]), filling.Told(step=step))
out["seconds"] = time.perf_counter() - began
at = dict(reversed(stages))
names = [t for t, _ in stages]
first_book = next((s for t, s in stages if "notebook" in t or "report" in t), out["seconds"])
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

CARDS = 8
DAYS = 7
RUN_S, PAUSE_S, STEP_S = 41_400, 1_800, 5.0
START = dt.datetime(2026, 11, 2)
METER_AHEAD_S, METER_DRIFT_PPM, BMC_AHEAD_S = 12.3, 20.0, -37.0

STUDY = """\
[study]
name = "node-week"
timezone = "UTC"
reference_clock = "node"

[site]
pue = 1.3
carbon_kg_per_kwh = 0.4

[[source]]
path = "gpu.csv"

[[source]]
path = "meter.csv"
clock = "meter"
scope = "node"

[[source]]
path = "ipmi.txt"
clock = "bmc"

[[source]]
path = "train.jsonl"
"""

IPMI = """
    Instantaneous power reading:                   {w} Watts
    Minimum during sampling period:                {w} Watts
    Maximum during sampling period:                {w} Watts
    Average power reading over sample period:      {w} Watts
    IPMI timestamp:                           {t}
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   activated


"""


def _write(folder: Path, days: int = DAYS) -> Path:
    """Write the logs and study.toml of a node's week; return the folder."""
    if (folder / "study.toml").is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    seconds = np.arange(days * 86_400)
    board = _board_w(seconds, rng)
    _gpu(folder / "gpu.csv", seconds, board, rng)
    node = 600 + 1.06 * CARDS * board
    on_meter = seconds * (1 + METER_DRIFT_PPM * 1e-6) + METER_AHEAD_S
    meter = pl.DataFrame(
        {"time": _stamps(on_meter, "%Y-%m-%d %H:%M:%S%.3f"), "power_w": np.round(node + rng.normal(0, 3, node.size), 1)}
    )
    meter.write_csv(folder / "meter.csv")
    asked = seconds[::5]
    texts = _stamps(asked + BMC_AHEAD_S, "%a %b %e %H:%M:%S %Y").to_list()
    watts = (np.round(node[::5] / 4) * 4).astype(int).tolist()
    (folder / "ipmi.txt").write_text("".join(IPMI.format(w=w, t=t) for w, t in zip(watts, texts, strict=True)))
    _training(folder / "train.jsonl", days, rng)
    (folder / "study.toml").write_text(STUDY)
    return folder


def _stamps(seconds: np.ndarray, form: str) -> pl.Series:
    us = pl.Series(np.round(np.asarray(seconds) * 1e6).astype(np.int64)).cast(pl.Duration("us"))
    return (us + pl.Series([START])).dt.strftime(form)


def _board_w(seconds: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the power of a card: runs with a warm-up, a checkpoint each half hour, and idle time between."""
    into = seconds % (RUN_S + PAUSE_S) - PAUSE_S
    load = 640 * (1 - 0.04 * np.exp(-np.maximum(into, 0) / 300)) + rng.normal(0, 6, seconds.size)
    load = np.where((into % 1800) > 1770, 210.0, load)
    return np.where(into < 0, 85 + rng.normal(0, 0.8, seconds.size), load)


def _gpu(path: Path, seconds: np.ndarray, board: np.ndarray, rng: np.random.Generator) -> None:
    with path.open("w") as file:
        file.write("timestamp, index, power.draw, utilization.gpu, memory.used, temperature.gpu, clocks.current.sm\n")
        for first in range(0, seconds.size, 86_400):
            at = np.repeat(seconds[first : first + 86_400], CARDS)
            card = np.tile(np.arange(CARDS), at.size // CARDS)
            watts = np.repeat(board[first : first + 86_400], CARDS) * (1 + 0.01 * (card - 3.5) / 3.5) + rng.normal(
                0, 2, at.size
            )
            busy = watts > 300
            frame = pl.DataFrame({
                "t": _stamps(at + 0.002 * card, "%Y/%m/%d %H:%M:%S%.3f"), "g": card, "p": np.round(watts, 2),
                "u": np.where(busy, rng.integers(95, 100, at.size), 0), "m": np.where(busy, 71_000, 3),
                "c": (30 + watts / 16).astype(int), "f": np.where(busy, 1_755, 345),
            })  # fmt: skip
            lines = frame.select(pl.concat_str(pl.all().cast(pl.String), separator=", ")).to_series()
            file.write("\n".join(lines) + "\n")


def _training(path: Path, days: int, rng: np.random.Generator) -> None:
    with path.open("w") as file:
        for run, begin in enumerate(range(PAUSE_S, days * 86_400 - RUN_S, RUN_S + PAUSE_S)):
            step = np.arange(1, int(RUN_S / STEP_S) + 1)
            frame = pl.DataFrame({
                "run": f"run-{run:02d}", "timestamp": _stamps(begin + step * STEP_S, "%Y-%m-%dT%H:%M:%S%.3fZ"), "step": step,
                "loss": np.round(2 + 8 * step**-0.3 + rng.normal(0, 0.02, step.size), 4), "tokens": 524_288, "batch_size": 256,
            })  # fmt: skip
            file.write(frame.write_ndjson())


def test_node_week(bench, tmp_path):
    folder = _write(bench.data / "node-week")
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
