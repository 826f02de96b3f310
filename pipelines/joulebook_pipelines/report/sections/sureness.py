"""How sure the numbers are: interval, coverage, the largest part of the uncertainty."""

from __future__ import annotations

from typing import Any

import polars as pl
from markupsafe import Markup

from joulebook import sharing_part
from joulebook_pipelines import metrics, shown
from joulebook_pipelines.metrics import Unit
from joulebook_pipelines.report.blocks import Block, Column, Fold, Inline, Section, Table, Text, copyable
from joulebook_pipelines.report.sections.cost import cell
from joulebook_pipelines.report.source import Source
from joulebook_pipelines.shown import Number

NOTHING = "There is no number to be sure of."
SHORT = 4
"""Runs up to which the table stands open."""
_PERCENT = Unit("%", 0.01)
NEGLIGIBLE = 1e-5
"""A doubt smaller than this share of a number is none that anybody could act upon."""

PARTS_SHOWN = 12
"""Runs whose parts are listed; the table ``uncertainties`` has them all."""


def build(source: Source) -> Section:
    """Return per run the interval, the coverage and the largest part of the uncertainty."""
    if not source.runs:
        return Section("sure", "How sure is that?", [Text(NOTHING)])
    table = _table(source)
    blocks: list[Block] = [table] if len(source.runs) <= SHORT else [Text(brief(source)), Fold("Every run", [table])]
    parts = _parts(source)
    if parts:
        blocks.append(Fold("Parts of the uncertainty", parts, anchor="uncertainty-parts"))
    return Section("sure", "How sure is that?", blocks)


def brief(source: Source) -> Inline:
    """Return in words which run is known worst, how well, and why."""
    rows = [_told(source, run) for run in source.runs]
    known = [r for r in rows if r is not None and r["value"] and r["lo"] is not None and r["hi"] is not None]
    refused = len(rows) - len([r for r in rows if r is not None and r["value"] is not None])
    tail = f" The energy of {refused} of {len(rows)} runs is not known." if refused else ""
    if not known:
        return f"No energy has an interval.{tail}" if rows else NOTHING
    worst = max(known, key=lambda r: (r["hi"] - r["lo"]) / abs(r["value"]))
    covered = shown.number(worst["coverage_ratio"], unit=_PERCENT, reason="not known")
    part = largest(source, worst["run_id"], worst["scope"])
    why = f"; most of the doubt comes from {part['part']}" if part else ""
    lead = Markup("To") if len(known) == 1 else Markup("Least sure is run {}: to").format(worst["run_id"])
    ratios = [abs(worst[end] / worst["value"] - 1.0) for end in ("lo", "hi")]
    if max(ratios) < NEGLIGIBLE:
        text = "{} better than {}, as it was counted; readings cover {} of the time.{}"
        return Markup(text).format(lead, f"{shown.exact(100 * NEGLIGIBLE).text} %", copyable(covered), tail)
    down, up = (shown.width(ratio, unit=_PERCENT) for ratio in ratios)
    even = cell(source, worst).half
    share = Markup("± {}").format(copyable(up)) if even else Markup("−{} +{}").format(copyable(down), copyable(up))
    text = "{} {}; readings cover {} of the time{}.{}"
    return Markup(text).format(lead, share, copyable(covered), why, tail)


def _told(source: Source, run: str) -> dict[str, Any] | None:
    """Return the energy that a run is told to have taken: of a machine that it shared, its part."""
    row = source.result(run, source.widest(run) or "", "energy_j")
    part = None if row is None else sharing_part.part_of(source.rows("shares"), run, scope=row["scope"])
    if row is None or part is None:
        return row
    return row | {"value": part.energy.value, "lo": part.energy.lo, "hi": part.energy.hi}


def largest(source: Source, run: str, scope: str) -> dict[str, Any] | None:
    """Return the row of ``uncertainties`` that widens the energy of a run most."""
    rows = _of(source, run, scope)
    if rows.is_empty():
        return None
    width = pl.max_horizontal(pl.col("lo").abs(), pl.col("hi").abs())
    return rows.sort(width, descending=True, nulls_last=True).row(0, named=True)


def _of(source: Source, run: str, scope: str) -> pl.DataFrame:
    return source.rows("uncertainties").filter(
        (pl.col("run_id") == run)
        & (pl.col("scope") == scope)
        & (pl.col("device") == "")
        & (pl.col("metric") == "energy_j")
    )


def _table(source: Source) -> Table:
    places = [(run, source.widest(run) or "") for run in source.runs]
    rows = [source.result(run, scope, "energy_j") for run, scope in places]
    unit = metrics.unit_of("energy_j", rows)
    made = []
    shared = False
    for (run, scope), row in zip(places, rows, strict=True):
        part_of = sharing_part.part_of(source.rows("shares"), run, scope=scope)
        shared |= part_of is not None
        most = largest(source, run, scope)
        part = "–" if most is None else most["part"]
        by = max(abs(most["lo"] or 0.0), abs(most["hi"] or 0.0)) if most else None
        covered = shown.number((row or {}).get("coverage_ratio"), unit=_PERCENT, reason="not known")
        made.append(
            [
                run,
                scope if part_of is None else f"{scope}, shared",
                cell(source, row, unit),
                covered,
                part,
                shown.width(by, unit=unit, reason="no parts known"),
            ]
        )
    columns = [
        Column("run"), Column("boundary"), Column("energy", unit.name), Column("time covered by readings", "%"),
        Column("largest part of the uncertainty"), Column("up to ±", unit.name),
    ]  # fmt: skip
    caption = "Energy with its 95 % interval, and what widens it most."
    caption += " Where a machine was shared, that of the whole machine in the run's time." if shared else ""
    return Table(columns, made, caption, "table-sure")


def _parts(source: Source) -> list[Block]:
    """Return one table: a row a run, a column a cause that moves any of them."""
    runs = source.runs[:PARTS_SHOWN]
    rows = {run: _of(source, run, source.widest(run) or "") for run in runs}
    rows = {run: of for run, of in rows.items() if not of.is_empty()}
    if not rows:
        return []
    every = pl.concat(rows.values())
    causes = (
        every.filter(pl.max_horizontal(pl.col("lo").abs(), pl.col("hi").abs()) > 0)["part"].unique().sort().to_list()
    )
    unit = metrics.unit_for("energy_j", every["hi"].to_list() + every["lo"].to_list())
    made: list[list[str | Number]] = []
    for run, of in rows.items():
        ends = {part: (lo, hi) for part, lo, hi in of.select("part", "lo", "hi").iter_rows()}
        made.append([run, source.widest(run) or "", *(_moved(ends.get(c), unit) for c in causes)])
    more = f" The first {PARTS_SHOWN} runs; the table uncertainties has all." if len(source.runs) > PARTS_SHOWN else ""
    caption = f"By how much each cause may move the energy, up and down unless two numbers stand.{more}"
    columns = [Column("run"), Column("boundary"), *(Column(c, f"± {unit.name}") for c in causes)]
    return [Table(columns, made, caption, "table-parts")]


def _moved(ends: tuple[float | None, float | None] | None, unit: Unit) -> str | Number:
    low, high = (shown.width(e, unit=unit, reason="–") for e in ends or (None, None))
    return high if low.text == high.text else f"−{low.text} +{high.text}"
