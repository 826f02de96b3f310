"""Idle power of every host and scope, and what each run drew above it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from joulebook import baseline, baseline_windows, beside_boards, clock_maps, idle_marginal, schema, totals
from joulebook.findings import Estimate, Finding
from joulebook_pipelines.stages.context import Context, Run, Stage, side_by_side
from joulebook_pipelines.stages.numbers import Numbers

LEAST_READINGS = 20

WITH_BOARDS = ("components", "node")
"""Scopes that hold the boards of one host and do not tell how much these are in use."""


def _work(context: Context) -> Numbers:
    numbers = Numbers()
    runs = context.runs()
    measured = sorted({(r.host, s) for r in runs for s in context.scopes(r.run_id)})
    found_there = side_by_side(
        partial(_baseline, context.whole(s, h), h, runs, _told(context, h), _use(context, measured, h, s))
        for h, s in measured
    )
    for (host, scope), found in zip(measured, found_there, strict=True):
        for run in runs:
            if run.host == host and scope in context.scopes(run.run_id):
                _above(context, run, scope, found, numbers)
        numbers.find("", (_named(f, host, scope) for f in found.findings))
    return numbers


def _use(context: Context, measured: Sequence[tuple[str, str]], host: str, scope: str) -> pl.DataFrame | None:
    """Return the readings of the boards inside a scope: their utilisation tells work from rest."""
    inside = scope in WITH_BOARDS and (host, "board") in measured
    return context.whole("board", host) if inside else None


def _told(context: Context, host: str) -> pl.DataFrame:
    """Return ``start_utc, end_utc`` of the stretches that study.toml names as idle, told by the clock of their host."""
    named = [i for i in context.study.idles if (i.host or host) == host]
    windows = pl.DataFrame(
        {"start_utc": [i.start for i in named], "end_utc": [i.end for i in named]},
        schema=dict.fromkeys(("start_utc", "end_utc"), schema.UTC),
    )
    return clock_maps.spans(windows, context.store.table("alignments"), clock=host)


def _baseline(
    power: pl.DataFrame, host: str, runs: list[Run], told: pl.DataFrame, use: pl.DataFrame | None
) -> baseline.Baseline:
    """Return the idle power: of the stretches that study.toml names, else of quiet time outside of runs."""
    if power.height < LEAST_READINGS:
        return baseline.Baseline(Estimate.refused("too few readings to look for quiet time", unit="W"), power.head(0))
    if told.height:
        windows = told.with_columns(used=pl.lit(True))
        return baseline.Baseline(baseline_windows.window_mean(totals.series(power), windows), windows)
    mine = [r for r in runs if r.host == host]
    spans = pl.DataFrame({"start_utc": [r.start_utc for r in mine], "end_utc": [r.end_utc for r in mine]})
    return baseline.idle(power, runs=spans, use=use)


def _named(finding: Finding, host: str, scope: str) -> Finding:
    return replace(finding, subject=f"{host} at {scope}")


def _above(context: Context, run: Run, scope: str, found: baseline.Baseline, numbers: Numbers) -> None:
    numbers.add(run.run_id, scope, "idle_power_w", found.estimate)
    absolute = context.number(run.run_id, scope, "energy_j")
    if absolute is None or absolute.value is None:
        return
    if found.estimate.value is None:
        refusal = Estimate.refused(
            f"no idle power: {found.estimate.reason}", unit="J", method="energy − idle power · time"
        )
        numbers.add(run.run_id, scope, "marginal_energy_j", refusal)
        return
    coverage = context.coverage(run.run_id, scope, "energy_j")
    covered_s = run.duration_s * (1.0 if coverage is None else coverage)
    if covered_s <= 0:
        return
    marginal = idle_marginal.of_energy(absolute, found.estimate, duration_s=covered_s)
    above, doubts = beside_boards.doubted(marginal.marginal, _beside(context, run, scope))
    numbers.add(run.run_id, scope, "marginal_energy_j", above, coverage_ratio=coverage)
    numbers.find(run.run_id, (*marginal.findings, *doubts))


def _beside(context: Context, run: Run, scope: str) -> beside_boards.Beside:
    """Return what came and went beside the boards of a run, where a scope holds them and both were measured."""
    if scope not in WITH_BOARDS or "board" not in context.scopes(run.run_id):
        return beside_boards.NOTHING
    machine, boards = context.spoken(run, scope), context.spoken(run, "board")
    return beside_boards.find(machine, boards, start_utc=run.start_utc, end_utc=run.end_utc)


STAGE = Stage("idle", "looking for idle power", _work)
