"""Where each run's energy went by phase."""

from __future__ import annotations

import polars as pl

from joulebook import phases
from joulebook.findings import Estimate
from joulebook_pipelines.stages.context import Context, Numbers, Run, Stage

SCOPES = ("board", "node")
"""Scopes at which phases are told apart: the accelerators, where they happen, and the machine, which pays for them."""


def _work(context: Context) -> Numbers:
    numbers = Numbers()
    marks = context.store.table("phases")
    if marks.is_empty():
        return numbers
    for run in context.runs():
        mine = _of_run(marks, run)
        if mine.is_empty():
            continue
        for scope in (s for s in context.scopes(run.run_id) if s in SCOPES):
            _attribute(context, run, scope, mine, numbers)
    return numbers


def _of_run(marks: pl.DataFrame, run: Run) -> pl.DataFrame:
    """Return the phases of a run; a log that names no run speaks of whatever ran then."""
    return marks.filter(
        pl.col("run_id").is_in([run.run_id, ""])
        & (pl.col("start_utc") < run.end_utc)
        & (pl.col("end_utc") > run.start_utc)
    ).select("phase", "start_utc", "end_utc")


def _attribute(context: Context, run: Run, scope: str, marks: pl.DataFrame, numbers: Numbers) -> None:
    power = context.spoken(run, scope, margin=True)
    if power.height < 2:
        return
    total = context.number(run.run_id, scope, "energy_j")
    windows = context.store.chosen_channels(run.run_id, scope)["window_s"].drop_nulls()
    split = phases.attribute(
        power, marks, start_utc=run.start_utc, end_utc=run.end_utc, window_s=float(windows[0]) if len(windows) else None,
        total_j=None if total is None else total.value,
    )  # fmt: skip
    for row in split.frame.iter_rows(named=True):
        method, reason = row["method"] or "", row["reason"] or ""
        energy = Estimate(row["energy_j"], row["lo"], row["hi"], "J", row["n"], None, method, reason)
        numbers.add(run.run_id, scope, "phase_energy_j", energy, phase=row["phase"])
        numbers.add(
            run.run_id, scope, "phase_share_ratio", Estimate(row["share_ratio"], n=row["n"], method=method, reason=reason),
            phase=row["phase"],
        )  # fmt: skip
        numbers.add(
            run.run_id, scope, "phase_power_w", Estimate(row["power_w"], unit="W", n=row["n"], method=method, reason=reason),
            phase=row["phase"],
        )  # fmt: skip
    numbers.find(run.run_id, split.findings)


STAGE = Stage("phases", "splitting energy over phases", _work)
