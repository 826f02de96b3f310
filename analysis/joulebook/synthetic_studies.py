"""Whole made-up studies as texts: logs of one truth, a study.toml that reads them, the right answers, a note."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import polars as pl

from joulebook import (
    synthetic,
    synthetic_answers,
    synthetic_codecarbon,
    synthetic_ipmi,
    synthetic_meter,
    synthetic_notes,
    synthetic_nvidia_smi,
    synthetic_site,
    synthetic_trainlog,
)
from joulebook.synthetic_campaign import campaign as make_campaign
from joulebook.synthetic_truth import Truth
from joulebook.synthetic_witness import Clock
from joulebook.synthetic_workload import PlannedRun, Workload

LEAN_FIELDS = ("timestamp", "index", "power.draw", "utilization.gpu", "temperature.gpu", "clocks.current.sm")
"""Fields that keep a sample small."""

COPIES = {"tune-a": "gpu:0", "tune-b": "gpu:1"}
"""Two copies of one job that share the node, a board each; they write no log of their own."""


@dataclass(frozen=True)
class File:
    """A file of a study.

    Parameters
    ----------
    path
        Relative to the study's folder.
    text
        Its text, to be written as UTF-8 as it is.
    """

    path: str
    text: str


def node(seed: int = 20261102) -> tuple[File, ...]:
    """Return a node with two boards that trains twice and is shared by two jobs, seen by five tools, two clocks off.

    Examples
    --------
    >>> [f.path for f in node()][:3]
    ['README.md', 'study.toml', 'truth.json']
    """
    runs = (
        PlannedRun(run_id="pretrain-1", workload=synthetic.TRAINING, duration_s=900.0, idle_before_s=600.0),
        PlannedRun(run_id="pretrain-2", workload=synthetic.TRAINING, duration_s=480.0, idle_before_s=180.0),
        PlannedRun(run_id="tune", workload=Workload(), duration_s=150.0, idle_before_s=120.0),
    )
    truth = synthetic.node(seed, runs=runs, idle_after_s=150.0)
    told = _without(truth, "tune")
    local = Clock(zone="Asia/Shanghai")
    meter = Clock(offset_s=-71.3, drift_ppm=12.0, zone="Asia/Shanghai")
    bmc = Clock(offset_s=-37.4)
    gpu = synthetic_nvidia_smi.query_csv(
        truth,
        clock=local,
        fields=("timestamp", "index", "name", *LEAN_FIELDS[2:]),
        gaps=((1298.0, 9.0),),
        restarts=((1842.0, 4.0),),
        missing=7,
        cut_characters=17,
        seed=seed,
    )
    site = synthetic_codecarbon.Site(carbon_kg_per_kwh=0.581)
    first = truth.runs["start_utc"][0].replace(minute=0, second=0, microsecond=0)
    grid = synthetic_site.grid_csv(first - timedelta(hours=13), 27, carbon_kg_per_kwh=0.581, at_utc=first)
    return (
        File("README.md", synthetic_notes.NODE_NOTE),
        File("study.toml", "".join([synthetic_notes.NODE_STUDY, *_run_table(told, ("batch_size",)), *_copies(truth)])),
        File("truth.json", synthetic_answers.node(told, clocks={"meter": meter, "bmc": bmc}, shared={"tune": COPIES})),
        File("grid.csv", grid),
        File("logs/gpu.csv", gpu),
        File("logs/meter.csv", synthetic_meter.csv(truth, clock=meter, seed=seed)),
        File("logs/ipmi.txt", synthetic_ipmi.dcmi(truth, bmc_clock=bmc, seed=seed)),
        File("logs/emissions.csv", synthetic_codecarbon.emissions_csv(told, clock=local, site=site, seed=seed)),
        File("logs/train.jsonl", synthetic_trainlog.jsonl(told)),
        File("logs/phases.csv", synthetic_trainlog.phases_csv(told)),
    )


def sweep(seed: int = 20261103) -> tuple[File, ...]:
    """Return one board at seven batch sizes, three short runs each.

    Examples
    --------
    >>> [f.path for f in sweep()]
    ['README.md', 'study.toml', 'truth.json', 'gpu.csv', 'train.jsonl']
    """
    made = synthetic.sweep(seed, start_utc=datetime(2026, 11, 3, 8, 0, tzinfo=UTC))
    needed = made.truth.runs.select("run_id").join(
        made.tokens_to_target, on="run_id", how="left", maintain_order="left"
    )
    runs = _run_table(made.truth, ("batch_size", "tokens"), needed["tokens_to_target"])
    gpu = synthetic_nvidia_smi.query_csv(made.truth, fields=LEAN_FIELDS, units=False, seed=seed)
    return (
        File("README.md", synthetic_notes.SWEEP_NOTE),
        File("study.toml", synthetic_notes.SWEEP_STUDY + "".join(runs) + synthetic_notes.SWEEP_TABLE),
        File("truth.json", synthetic_answers.sweep(made)),
        File("gpu.csv", gpu),
        File("train.jsonl", synthetic_trainlog.jsonl(made.truth)),
    )


def campaign(seed: int = 20261104) -> tuple[File, ...]:
    """Return five changes one after the other, four runs each, at board and wall, with the inlet's temperature.

    Examples
    --------
    >>> [f.path for f in campaign()][3:]
    ['gpu.csv', 'meter.csv', 'inlet.csv', 'train.jsonl']
    """
    made = make_campaign(seed, start_utc=datetime(2026, 11, 4, 7, 0, tzinfo=UTC))
    truth = made.truth
    meter = Clock(offset_s=23.8, drift_ppm=-9.0, zone="Europe/Berlin")
    order = json.dumps(list(made.order))
    runs = "".join(_run_table(truth, ("batch_size", "tokens")))
    gpu = synthetic_nvidia_smi.query_csv(
        truth, clock=Clock(zone="Europe/Berlin"), fields=LEAN_FIELDS, units=False, seed=seed
    )
    return (
        File("README.md", synthetic_notes.CAMPAIGN_NOTE),
        File("study.toml", f"{synthetic_notes.CAMPAIGN_STUDY}{runs}{synthetic_notes.CAMPAIGN_TABLE}order = {order}\n"),
        File("truth.json", synthetic_answers.campaign(made, clocks={"meter": meter})),
        File("gpu.csv", gpu),
        File("meter.csv", synthetic_meter.csv(truth, clock=meter, dialect=synthetic_meter.GERMAN, seed=seed)),
        File("inlet.csv", synthetic_meter.inlet_csv(truth, seed=seed)),
        File("train.jsonl", synthetic_trainlog.jsonl(truth)),
    )


def _without(truth: Truth, run_id: str) -> Truth:
    """Return what jobs tell of themselves: the same truth, one of its runs left untold."""
    kept = (frame.filter(pl.col("run_id") != run_id) for frame in (truth.runs, truth.steps, truth.phases))
    runs, steps, phases = kept
    return replace(truth, runs=runs, steps=steps, phases=phases)


def _copies(truth: Truth) -> Iterable[str]:
    """Yield a [[run]] section for each copy of the job that shares the node."""
    run = truth.runs.row(by_predicate=pl.col("run_id") == "tune", named=True)
    for name, device in COPIES.items():
        yield "\n".join([
            "[[run]]", f'id = "{name}"',
            *(f"{edge} = {run[f'{edge}_utc'].strftime('%Y-%m-%dT%H:%M:%S.%f')[:-3]}Z" for edge in ("start", "end")),
            f'devices = ["{device}"]', "\n",
        ])  # fmt: skip


def _run_table(truth: Truth, values: tuple[str, ...], needed: pl.Series | None = None) -> Iterable[str]:
    """Yield a [[run]] section for each run."""
    for at, run in enumerate(truth.runs.iter_rows(named=True)):
        labels = json.loads(run["labels"])
        table = ", ".join(f"{k} = {json.dumps(v)}" for k, v in labels.items())
        lines = [
            "[[run]]",
            f'id = "{run["run_id"]}"',
            *(f"{edge} = {run[f'{edge}_utc'].strftime('%Y-%m-%dT%H:%M:%S.%f')[:-3]}Z" for edge in ("start", "end")),
            *(f"{name} = {run[name]:.0f}" for name in values),
            *([] if needed is None else [f"tokens_to_target = {needed[at]:.6g}"]),
            *([f"labels = {{ {table} }}"] if labels else []),
        ]
        yield "\n".join(lines) + "\n\n"
