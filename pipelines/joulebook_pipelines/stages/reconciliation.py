"""All sources of one run side by side: counter against integral, parts against the whole, second witnesses."""

from __future__ import annotations

import polars as pl

from joulebook import energy, reconcile
from joulebook.findings import Estimate
from joulebook_pipelines.stages import boards
from joulebook_pipelines.stages.context import MARGIN_S, Context, Run, Stage
from joulebook_pipelines.stages.numbers import Numbers

SCHEMA = {"scope": pl.String, "source": pl.String, "energy_j": pl.Float64, "lo": pl.Float64, "hi": pl.Float64}

Rows = list[dict[str, object]]


def _work(context: Context) -> Numbers:
    numbers = Numbers()
    for run in context.runs():
        rows = _chosen(context, run) + _counters(context, run, numbers) + _witnesses(context, run, numbers)
        for group in _comparable(context, run, rows):
            if len(group) > 1:
                frame = pl.DataFrame(group, schema=SCHEMA).drop_nulls("energy_j")
                numbers.find(run.run_id, reconcile.run(frame, subject=run.run_id).findings)
    return numbers


def _comparable(context: Context, run: Run, rows: Rows) -> list[Rows]:
    """Return the rows that are compared with each other: the boards of one job are no part of the node to set against it."""
    if not boards.beside(context, run):
        return [rows]
    own = [r for r in rows if r["scope"] == "board"]
    return [own, _all_boards(context, run) + [r for r in rows if r["scope"] != "board"]]


def _all_boards(context: Context, run: Run) -> Rows:
    """Return the energy of all boards of a shared node during the run; nothing where not all of them are known once."""
    used = context.store.used_channels(run.host, ["board"]).select("device", "source_id").unique()
    if set(used["device"]) != set(boards.of_host(context, run)["device"]) or used["device"].is_duplicated().any():
        return []
    power = context.store.power(scope="board", start_utc=run.start_utc, end_utc=run.end_utc, margin_s=MARGIN_S)
    if "host" in power.columns:
        power = power.filter(host=run.host)
    total = energy.integrate(power, start_utc=run.start_utc, end_utc=run.end_utc).total
    return [] if total.value is None else [_row("board", "all boards of the node", total)]


def _row(scope: str, source: str, estimate: Estimate) -> dict[str, object]:
    return {"scope": scope, "source": source, "energy_j": estimate.value, "lo": estimate.lo, "hi": estimate.hi}


def _chosen(context: Context, run: Run) -> Rows:
    found = []
    for scope in context.scopes(run.run_id):
        estimate = context.number(run.run_id, scope, "energy_j")
        if estimate is not None and estimate.value is not None:
            paths = context.store.chosen_channels(run.run_id, scope)["path"].unique(maintain_order=True)
            found.append(_row(scope, ", ".join(paths), estimate))
    return found


def _counters(context: Context, run: Run, numbers: Numbers) -> Rows:
    """Return the energy by the counters of instruments whose power was integrated."""
    found = []
    for scope in context.scopes(run.run_id) if context.store.tells("energy_counter_j") else []:
        power = context.power(run, scope, margin=True)
        both = power["power_w"].null_count() < power.height and power["energy_counter_j"].drop_nulls().len() > 1
        if not both:
            continue
        counted = energy.from_counter(
            power.filter(pl.col("energy_counter_j").is_not_null()), start_utc=run.start_utc, end_utc=run.end_utc
        )
        row = counted.frame.row(0, named=True)
        estimate = Estimate(
            row["energy_j"], row["lo"], row["hi"], "J", row["n"], None, f"counter: {row['method']}", row["reason"]
        )
        numbers.add(run.run_id, scope, "counter_energy_j", estimate, coverage_ratio=row["coverage_ratio"])
        if estimate.value:
            found.append(_row(scope, "its energy counter", estimate))
    return found


def _witnesses(context: Context, run: Run, numbers: Numbers) -> Rows:
    """Return the energies of instruments that were not chosen for their scope."""
    found = []
    for (scope, path), power in context.store.witnesses(run.run_id, margin_s=MARGIN_S).items():
        result = energy.integrate(power, start_utc=run.start_utc, end_utc=run.end_utc)
        if result.total.value is not None:
            found.append(_row(scope, path, result.total))
            numbers.add(run.run_id, scope, "witness_energy_j", result.total, device=f"@{path}")
    return found


STAGE = Stage("reconciliation", "comparing sources", _work)
