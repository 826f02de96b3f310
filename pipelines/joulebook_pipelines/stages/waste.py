"""Energy without output: stalls, checkpoints, repeated steps, idle time between runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import polars as pl

from joulebook import boundaries, checkpoints, estimates, stalls, totals, waste
from joulebook.findings import Estimate, Finding
from joulebook_pipelines.stages import shape
from joulebook_pipelines.stages.context import Context, Run, Stage, side_by_side
from joulebook_pipelines.stages.numbers import Numbers

WAITING = ("data_wait", "stall")
"""Phases in which a job waits."""

MARKED = ("checkpoint", "evaluation", "startup", "idle")
"""Phases whose dips of power are explained."""


def _work(context: Context) -> Numbers:
    numbers = Numbers()
    runs = context.runs()
    marks = context.phases()
    for run, scope, whole, found in side_by_side(_stall_jobs(context, runs, marks)):
        _stalls(context, run, scope, found, numbers, whole=whole)
    for run in runs:
        _rework(context, run, numbers)
        _checkpoints(context, run, marks, numbers)
    _gaps(context, runs, numbers)
    return numbers


def _stall_jobs(
    context: Context, runs: list[Run], marks: pl.DataFrame
) -> Iterator[Callable[[], tuple[Run, str, bool, stalls.Stalls]]]:
    for run in runs:
        known = marks.filter(pl.col("run_id").is_in([run.run_id, ""]) & pl.col("phase").is_in(MARKED))
        known = known.select("phase", "start_utc", "end_utc")
        for scope in boundaries.split(context.scopes(run.run_id)):
            power, notes = shape.seen(context, run, scope)
            idle = context.number(run.run_id, scope, "idle_power_w")
            warm = context.number(run.run_id, scope, "warmup_s")
            begin = run.start_utc + timedelta(seconds=(warm.value if warm is not None else None) or 0.0)
            if power.height > 2:
                other, level = _beside(run, scope, runs), None if idle is None else idle.value
                shared = (
                    stalls.none(f"{other} ran beside it: steps of this power may be its own or the other's")
                    if other
                    else None
                )
                yield partial(_found, run, scope, power, begin, level, known, not notes, shared)


def _beside(run: Run, scope: str, runs: list[Run]) -> str:
    """Return the run that another one shares the power of a scope with, "" where it has it alone: steps of power may be of either."""
    for other in runs:
        apart = run.devices and other.devices and not set(run.devices) & set(other.devices)
        meets = other.start_utc < run.end_utc and other.end_utc > run.start_utc
        if other.run_id != run.run_id and other.host == run.host and meets and not (scope == "board" and apart):
            return other.run_id
    return ""


def _found(
    run: Run,
    scope: str,
    power: pl.DataFrame,
    begin: datetime,
    idle_w: float | None,
    known: pl.DataFrame,
    whole: bool,
    shared: stalls.Stalls | None,
) -> tuple[Run, str, bool, stalls.Stalls]:
    if shared is not None:
        return run, scope, whole, shared
    warm = totals.between(power, begin, run.end_utc)
    return run, scope, whole, stalls.find(warm, idle_w=idle_w, marks=known if known.height else None)


def _stalls(context: Context, run: Run, scope: str, found: stalls.Stalls, numbers: Numbers, *, whole: bool) -> None:
    timed = whole and found.energy.value is not None
    waited = _waited(context, run, scope)
    # What a log says that it waited is exact in time; only where power falls for longer is there more to tell. Readings
    # that are means fall before and rise after the wait, so a dip looks longer by up to one of them.
    dips = found.frame.filter(kind="stall")
    looks_longer_s = float((dips["seconds"] / dips["n"]).sum())
    longer = (
        timed
        and waited is not None
        and (found.energy.lo or 0.0) > (waited.hi or 0.0)
        and (found.seconds.value or 0.0) - looks_longer_s > _logged_s(context, run)[0]
    )
    energy, lost, seconds = (found.energy, found.lost, found.seconds)
    if waited is not None and not longer:
        energy, (lost, seconds) = waited, _lost(context, run, scope, found)
    numbers.add(run.run_id, scope, "stall_energy_j", energy)
    numbers.add(run.run_id, scope, "stall_lost_energy_j", lost)
    numbers.add(run.run_id, scope, "stall_s", seconds)
    if found.period.value is not None:
        numbers.add(run.run_id, scope, "stall_period_s", found.period)
    numbers.find(run.run_id, (_about(f, run, scope) for f in found.findings))


def _waited(context: Context, run: Run, scope: str) -> Estimate | None:
    """Return the energy of the phase in which a log says that the job waited, for stalls that readings miss."""
    told = [_phase_energy(context, run, scope, phase) for phase in WAITING]
    known = [e for e in told if e is not None and e.value is not None]
    return replace(known[0], method=f"logged phase; {known[0].method}") if len(known) == 1 else None


def _lost(context: Context, run: Run, scope: str, found: stalls.Stalls) -> tuple[Estimate, Estimate]:
    """Return what the time that a log says it waited would have cost at work [J], and that time [s]."""
    value, n = _logged_s(context, run)
    seconds = Estimate(value, value, value, "s", n, method="logged phase")
    busy = context.number(run.run_id, scope, "stable_power_w")
    if busy is None or busy.value is None:
        return found.lost, seconds
    return estimates.scaled(busy, value, unit="J", method="logged time at stable power"), seconds


def _logged_s(context: Context, run: Run) -> tuple[float, int]:
    """Return how long a log says that the job waited [s], and how often."""
    rows = context.store.table("phases").filter((pl.col("run_id") == run.run_id) & pl.col("phase").is_in(WAITING))
    return float((rows["end_utc"] - rows["start_utc"]).dt.total_microseconds().sum()) / 1e6, rows.height


def _phase_energy(context: Context, run: Run, scope: str, phase: str) -> Estimate | None:
    r = context.store.number(run.run_id, scope, "phase_energy_j", phase)
    return None if r is None else Estimate(r["value"], r["lo"], r["hi"], "J", r["n"], None, r["method"], r["reason"])


def _about(finding: Finding, run: Run, scope: str) -> Finding:
    return replace(finding, subject=f"{run.run_id} at {scope}")


def _rework(context: Context, run: Run, numbers: Numbers) -> None:
    steps = context.steps(run).select("step", "start_utc", "end_utc").sort("end_utc")
    if steps.height < 2 or steps["step"].diff().min() > 0:  # pyrefly: ignore[unsupported-operation]
        return
    for scope in boundaries.split(context.scopes(run.run_id)):
        power, _ = shape.seen(context, run, scope)
        if power.height > 2:
            done = waste.rework(power, steps)
            numbers.add(run.run_id, scope, "rework_energy_j", done.energy)
            numbers.find(run.run_id, (_about(f, run, scope) for f in done.findings))


def _checkpoints(context: Context, run: Run, marks: pl.DataFrame, numbers: Numbers) -> None:
    """Copy the checkpoints' phase energy under its own name, and tell how long and how often saves are."""
    saves = marks.filter(pl.col("run_id").is_in([run.run_id, ""]) & (pl.col("phase") == "checkpoint"))
    if saves.is_empty():
        return
    seen = checkpoints.observed(saves.select("phase", "start_utc", "end_utc"))
    numbers.find(run.run_id, getattr(seen, "findings", ()))
    for scope in boundaries.split(context.scopes(run.run_id)):
        saved = _phase_energy(context, run, scope, "checkpoint")
        if saved is not None:
            numbers.add(run.run_id, scope, "checkpoint_energy_j", saved)


def _gaps(context: Context, runs: list[Run], numbers: Numbers) -> None:
    """Give each run the idle energy of the gap that follows it on its host."""
    for host in sorted({r.host for r in runs}):
        mine = [r for r in runs if r.host == host]
        if len(mine) < 2:
            continue
        frame = pl.DataFrame({
            "run_id": [r.run_id for r in mine], "start_utc": [r.start_utc for r in mine], "end_utc": [r.end_utc for r in mine],
        })  # fmt: skip
        for scope in sorted({s for r in mine for s in boundaries.split(context.scopes(r.run_id))}):
            found = waste.gaps(context.whole(scope, host), frame)
            for row in found.frame.iter_rows(named=True):
                method = f"between this run and {row['after']}"
                estimate = Estimate(row["energy_j"], row["lo"], row["hi"], "J", method=method, reason=row["reason"])
                numbers.add(row["before"], scope, "gap_idle_energy_j", estimate)
            numbers.find("", (replace(f, subject=f"{host} at {scope}") for f in found.findings))


STAGE = Stage("waste", "adding up waste", _work)
