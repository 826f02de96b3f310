"""Readers whose golden outputs were read by eye: their values again, from the text of the fixtures by plain Python."""

from __future__ import annotations

import csv
import json
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import polars as pl

from joulebook_pipelines import ingest
from joulebook_pipelines.logs.contract import Options

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
NANOSECOND, MILLISECOND = 1e-9, 1e-3


def told(name: str, what: str, **options: Any) -> pl.DataFrame:
    path = FIXTURES / name
    log, adapter = ingest.recognised(ingest.SourceFile(path, path.name, "host", options=Options(**options)))
    assert adapter.name == path.parent.name
    frames = [f for p in adapter.parse(log) if (f := getattr(p, what)) is not None and f.height]
    return pl.concat(frames, how="diagonal")


def powers(readings: pl.DataFrame) -> dict[tuple[str, datetime], float]:
    rows = readings.filter(pl.col("power_w").is_not_null()).select("device", "ts_utc", "power_w")
    return {(device, at): watts for device, at, watts in rows.iter_rows()}


def value(pattern: str, line: str) -> str:
    match = re.search(pattern, line)
    assert match
    return match[1]


def since_1970(seconds: float) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=round(seconds * 1e6))


def test_influx_lines_of_telegraf() -> None:
    right, warmth = {}, {}
    for line in (FIXTURES / "influx-lines/telegraf.txt").read_text().splitlines():
        if line.startswith("nvidia_smi") and re.search(r" \d{19}$", line):  # the last line is cut
            key = ("gpu:" + value(r"index=(\d+)", line), since_1970(int(line.split(" ")[-1]) * NANOSECOND))
            right[key] = float(value(r"power_draw=([\d.]+)", line))
            warmth[key] = float(value(r"temperature_gpu=(\d+)i", line))
    readings = told("influx-lines/telegraf.txt", "readings").filter(pl.col("device").str.starts_with("gpu"))
    assert len(right) == 3 and powers(readings) == right
    keys = [(d, t) for d, t in readings.select("device", "ts_utc").iter_rows()]
    assert readings["temperature_c"].to_list() == [warmth[k] for k in keys]


def test_gpustat_in_a_loop() -> None:
    right, at, warmth = {}, None, []
    for line in (FIXTURES / "gpustat/loop.log").read_text().splitlines():
        if clock := re.match(r"n1 +(\w+ \w+ +\d+ [\d:]+ \d{4})", line):
            at = datetime.strptime(clock[1], "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        elif (card := re.match(r"\[(\d)\].*\| (\d+)'C.*, +(\d+) / 400 W \| ", line)) and at:
            right[(f"gpu:{card[1]}", at)] = float(card[3])
            warmth.append(float(card[2]))
    readings = told("gpustat/loop.log", "readings", timezone="UTC")
    assert right and powers(readings) == right
    assert readings.filter(pl.col("power_w").is_not_null())["temperature_c"].to_list() == warmth
    assert set(readings["power_limit_w"]) == {400.0}


def test_uprof_timechart_passes_midnight_and_counts_milliseconds() -> None:
    lines = (FIXTURES / "uprof/timechart.csv").read_text().splitlines()
    day, right, cores = datetime(2026, 3, 2, tzinfo=UTC), {}, {}
    before = timedelta()
    for row in csv.reader(lines[lines.index("PROFILE RECORDS") + 2 :]):
        if len(row) < 6:
            continue
        hours, minutes, seconds, thousandths = map(int, row[1].split(":"))
        clock = timedelta(hours=hours, minutes=minutes, seconds=seconds, milliseconds=thousandths)
        day, before = day + timedelta(days=clock < before), clock
        right[("cpu:0", day + clock)] = float(row[2])
        cores[day + clock] = row[3].strip()
    readings = told("uprof/timechart.csv", "readings", timezone="UTC")
    found = powers(readings)
    assert {k: v for k, v in found.items() if k[0] == "cpu:0"} == right
    rest = {at: v for (device, at), v in found.items() if device != "cpu:0"}
    assert rest == {at: float(w) for at, w in cores.items() if w != "nan"}


def test_steps_of_text_logs() -> None:
    text = (FIXTURES / "step-lines/titan.log").read_text()
    lines = re.findall(r"\[rank0\]:\[titan\] (\S+ \S+) - .*step: +(\d+) +loss: +([\d.]+)", text)
    right = [(int(n), datetime.fromisoformat(t.replace(",", ".") + "+00:00"), float(loss)) for t, n, loss in lines]
    assert (
        right
        and told("step-lines/titan.log", "steps", timezone="UTC").select("step", "end_utc", "loss").rows() == right
    )
    east = timezone(timedelta(hours=8))
    text = (FIXTURES / "step-lines/deepspeed.log").read_text()
    lines = re.findall(r"^\[(\S+) (\S+)\].*step=(\d+), skipped=\d+, lr=\[([\d.e-]+)", text, re.MULTILINE)
    right = [
        (int(n), datetime.fromisoformat(f"{d} {t.replace(',', '.')}").replace(tzinfo=east), float(rate))
        for d, t, n, rate in lines
    ]
    steps = told("step-lines/deepspeed.log", "steps", timezone="Asia/Shanghai")
    assert right and steps.select("step", "end_utc", "learning_rate").rows() == right
    text = (FIXTURES / "step-lines/fairseq.log").read_text()
    objects = [json.loads(line.split(" | ")[-1]) for line in text.splitlines() if "train_inner" in line]
    steps = told("step-lines/fairseq.log", "steps", timezone="Europe/Berlin")
    assert steps["step"].to_list() == [int(o["num_updates"]) for o in objects]
    assert steps["loss"].to_list() == [float(o["loss"]) for o in objects]


def test_scalars_of_tensorboard_and_mlflow() -> None:
    rows = list(csv.DictReader((FIXTURES / "scalars-csv/run-a-tag-train_loss.csv").read_text().splitlines()))
    right = [
        (int(r["Step"]), since_1970(float(r["Wall time"])), float(r["Value"])) for r in rows if r["Value"] != "oops"
    ]
    steps = told("scalars-csv/run-a-tag-train_loss.csv", "steps").filter(pl.col("loss").is_not_null())
    assert steps.select("step", "end_utc", "loss").rows() == right
    rows = list(csv.DictReader((FIXTURES / "scalars-csv/mlflow.csv").read_text().splitlines()))
    right_loss = {(r["run_id"], int(r["step"])): float(r["value"]) for r in rows if r["key"] == "train_loss"}
    steps = told("scalars-csv/mlflow.csv", "steps")
    assert {(r, s): loss for r, s, loss in steps.select("run_id", "step", "loss").iter_rows()} == right_loss
    last = max(
        int(r["timestamp"]) for r in rows if r["run_id"] == "ab12" and r["step"] == "20" and r["key"] != "eval_acc"
    )
    at = steps.filter(run_id="ab12", step=20)["end_utc"][0]
    assert abs((at - since_1970(last * MILLISECOND)).total_seconds()) <= 1.0
