"""Where each run is steady: warm-up, segments, stable power and its variation."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from joulebook import baseline, schema, segments, totals, variability, warmup
from joulebook.findings import Estimate, Finding, Severity
from joulebook_pipelines.stages import shape
from joulebook_pipelines.stages.context import Context, Numbers, Run, Stage
from joulebook_pipelines.stages.shape import LEAST_READINGS

MOST_DEVICES = 16
"""Beyond this many devices of a scope only their sum is cut into segments; eight hundred time lines help nobody."""


def _work(context: Context) -> Numbers:
    numbers = Numbers()
    found: list[pl.DataFrame] = []
    for run in context.runs():
        for scope in context.scopes(run.run_id):
            power, notes = shape.seen(context, run, scope)
            numbers.find(run.run_id, notes)
            if shape.moments(power) >= LEAST_READINGS and power["span_s"].null_count():
                found += _run_at(context, run, scope, power, numbers)
            elif power.height:
                numbers.find(run.run_id, [_too_short(run, scope, power.height)])
    frame = pl.concat(found) if found else schema.table("segments").empty()
    context.store.replace("segments", frame)
    return numbers


def _run_at(context: Context, run: Run, scope: str, power: pl.DataFrame, numbers: Numbers) -> list[pl.DataFrame]:
    total = _total(power)
    idle = context.number(run.run_id, scope, "idle_power_w")
    idle_w = None if idle is None else idle.value
    _warmup(context, run, scope, total, numbers)
    cut = segments.find(total, scope=scope, idle_w=idle_w)
    stable = baseline.mean(total, cut=cut)
    numbers.add(run.run_id, scope, "stable_power_w", stable.estimate)
    _variation(run, scope, total, cut, numbers)
    numbers.find(run.run_id, (_about(f, run, scope) for f in _distinct((*stable.findings, *cut.findings))))
    frames = [cut.frame]
    devices = power["device"].n_unique()
    if 1 < devices <= MOST_DEVICES:
        frames.append(segments.find(power, scope=scope, idle_w=None if idle_w is None else idle_w / devices).frame)
    return [schema.conform(f.with_columns(run_id=pl.lit(run.run_id)), "segments") for f in frames]


def _too_short(run: Run, scope: str, readings: int) -> Finding:
    return Finding(
        "too-few-for-steady-state", Severity.NOTE, f"{run.run_id} at {scope}",
        f"{readings} readings are too few to look for warm-up, steady state and variation ({LEAST_READINGS} are needed).",
        {"readings": readings},
    )  # fmt: skip


def _total(power: pl.DataFrame) -> pl.DataFrame:
    """Return the sum over the devices as one device ``''``, with their mean utilisation where they tell it."""
    if power["device"].n_unique() == 1:
        return power.with_columns(device=pl.lit(""))
    return totals.series(power).with_columns(device=pl.lit(""))


def _warmup(context: Context, run: Run, scope: str, total: pl.DataFrame, numbers: Numbers) -> None:
    steps = context.store.finished_steps(run.run_id).select("step", "start_utc", "end_utc")
    dropped = context.study.general.warmup_steps
    options = {} if dropped is None else {"dropped_steps": dropped}
    found = warmup.detect(total, steps=steps if steps.height else None, **options)
    estimate = found.warmup_s
    if estimate.value is None and not estimate.reason:
        estimate = Estimate.refused(found.reason, unit="s", method="steady-state detection")
    numbers.add(run.run_id, scope, "warmup_s", estimate)
    numbers.find(run.run_id, (_about(f, run, scope) for f in found.findings))


def _variation(run: Run, scope: str, total: pl.DataFrame, cut: segments.Segments, numbers: Numbers) -> None:
    """Measure the variation inside the longest stable segment; stalls inside it are left out."""
    stable = cut.of("stable")
    if stable.is_empty():
        numbers.add(
            run.run_id, scope, "cv_ratio", Estimate.refused("no stable segment", method="within a stable segment")
        )
        return
    longest = stable.sort((pl.col("end_utc") - pl.col("start_utc")), descending=True).row(0, named=True)
    inside = total.filter(pl.col("ts_utc").is_between(longest["start_utc"], longest["end_utc"], closed="left"))
    for row in cut.of("stall").iter_rows(named=True):
        inside = inside.filter(~pl.col("ts_utc").is_between(row["start_utc"], row["end_utc"], closed="left"))
    measured = variability.measure(inside)
    numbers.add(run.run_id, scope, "cv_ratio", measured.estimates[0])
    numbers.find(run.run_id, (_about(f, run, scope) for f in measured.findings))


def _about(finding: Finding, run: Run, scope: str) -> Finding:
    """Name run and scope where the method knows only a series."""
    return replace(finding, subject=f"{run.run_id} at {scope}{f' ({finding.subject})' if finding.subject else ''}")


def _distinct(findings: tuple[Finding, ...]) -> list[Finding]:
    return list({(f.code, f.subject): f for f in findings}.values())


STAGE = Stage("steady", "looking for steady states", _work)
