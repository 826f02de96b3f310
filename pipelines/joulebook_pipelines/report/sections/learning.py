"""What the loss cost: loss against energy, and from where on it only gets dearer."""

from __future__ import annotations

import polars as pl

from joulebook_pipelines import metrics, shown
from joulebook_pipelines.report import comparison_pictures
from joulebook_pipelines.report.blocks import Block, Column, Fold, Section, Table, Text
from joulebook_pipelines.report.footnotes import evidence
from joulebook_pipelines.report.pictures import Budget
from joulebook_pipelines.report.source import Source
from joulebook_pipelines.shown import Number

DRAWN = 2
"""Runs whose curve is drawn."""
SHORT = 6
"""Runs up to which the table stands open."""
_RISES = "marginal-energy-rises"


def build(source: Source, budget: Budget) -> Section | None:
    """Return loss against energy per run, ``None`` where no run has both."""
    rows = source.rows("convergence")
    if rows.is_empty():
        return None
    rising = {
        f["run_id"]: evidence(f) for f in source.rows("findings").filter(pl.col("code") == _RISES).iter_rows(named=True)
    }
    names = [r for r in source.runs if r in set(rows["run_id"])]
    drawn = names[: DRAWN if len(names) <= SHORT else 1]
    pictures = [
        comparison_pictures.convergence(source, budget, run, rising.get(run, {}).get("energy_j")) for run in drawn
    ]
    blocks: list[Block] = [p for p in pictures if p]
    if len(names) > len(drawn):
        blocks.insert(0, Text(f"Drawn is {', '.join(drawn)} of {len(names)} runs; the table has all."))
    table = _table(rows, names, rising)
    blocks.append(table if len(names) <= SHORT else Fold("Every run", [table]))
    return Section("loss", "What did the loss cost?", blocks)


def _table(rows: pl.DataFrame, names: list[str], rising: dict[str, dict[str, object]]) -> Table:
    last = {run: rows.filter(pl.col("run_id") == run).sort("energy_j").row(-1, named=True) for run in names}
    priced = rows.drop_nulls("marginal_j").sort("energy_j").group_by("run_id", maintain_order=True)
    ends = {r["run_id"]: (a, r) for a, r in zip(*(_rows(x) for x in (priced.first(), priced.last())), strict=True)}
    unit = metrics.unit_for("energy_j", [r["energy_j"] for r in last.values()])
    cost = metrics.unit_for("energy_j", [r["marginal_j"] for pair in ends.values() for r in pair])
    made: list[list[str | Number]] = []
    for run, end in last.items():
        first, latest = ends.get(run, ({}, {}))
        at = rising.get(run, {})
        since = at.get("energy_j")
        step = at.get("step")
        made.append([
            run, end["scope"], shown.number(end["energy_j"], unit=unit), shown.number(end["loss"]),
            *(shown.number(p.get("marginal_j"), p.get("marginal_lo"), p.get("marginal_hi"), unit=cost, reason="no fall")
              for p in (first, latest)),
            shown.exact(step if isinstance(step, int) else None),
            shown.number(since if isinstance(since, float) else None, unit=unit, reason="–"),
        ])  # fmt: skip
    columns = [
        Column("run"), Column("boundary"), Column("energy to the last loss", unit.name), Column("last loss"),
        Column("a unit of loss cost in the first stretch", cost.name), Column("in the last stretch", cost.name),
        Column("never cheaper again from step"), Column("at", unit.name),
    ]  # fmt: skip
    caption = (
        "Energy that lowered the loss by one, in the first and in the last stretch of the run, with its 95 % interval."
    )
    return Table(columns, made, caption, "table-loss")


def _rows(frame: pl.DataFrame) -> list[dict[str, object]]:
    return list(frame.iter_rows(named=True))
