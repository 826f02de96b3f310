"""Where the energy went: boundaries, parts, phases, waste."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from markupsafe import Markup

from joulebook import schema
from joulebook_pipelines import metrics, shown
from joulebook_pipelines.report import bars
from joulebook_pipelines.report.blocks import Block, Column, Fold, Section, Table, Text, copyable
from joulebook_pipelines.report.methods import told
from joulebook_pipelines.report.pictures import Budget
from joulebook_pipelines.report.sections.cost import cell, shared_whole
from joulebook_pipelines.report.source import Source

_SITE = "known of the machines, not of the site: its energy is theirs times the PUE"
_OF_BOARDS = ("mfu_ratio", "hfu_ratio", "tdp_ratio")
_BOARDS = "about the accelerators: see the board"
_PERCENT = metrics.Unit("%", 0.01)
DRAWN = 4
"""Runs whose bars are drawn; of more only the first is, as a sample, beside the table."""
SHORT = 12
"""Rows up to which a table stands open."""
ROWS_SHOWN = 60
"""Rows of a table on the page; the store has all."""


def build(source: Source, budget: Budget) -> Section:
    """Return the bars of the first runs, and the tables of scopes, phases and waste."""
    blocks: list[Block] = []
    for run in source.runs[: DRAWN if len(source.runs) <= DRAWN else 1]:
        drawn = [p for p in (bars.parts(source, budget, run), bars.phases(source, budget, run)) if p]
        if drawn and len(source.runs) > DRAWN:
            blocks.append(Text(f"Drawn is {run}, the first of {len(source.runs)} runs; the tables have all."))
        blocks += [*drawn, *_residual(source, run)]
    for title, anchor, table in (
        ("Energy at each boundary", "boundaries", _scopes(source)),
        ("Efficiency at each boundary", "efficiency", _efficiency(source)),
        ("Waste", "waste", _waste(source)),
    ):
        if table:
            blocks.append(Fold(title, [table], anchor=anchor) if len(table.rows) > SHORT else table)
    phases, devices = _phases(source), _devices(source)
    if phases:
        blocks.append(Fold("Energy of the phases", [phases], anchor="phases"))
    if devices:
        blocks.append(Fold("Energy of the devices", [devices], anchor="devices"))
    return Section("energy", "Where did the energy go?", blocks or [Text("No energy is known.")])


def _residual(source: Source, run: str) -> list[Block]:
    scope = source.widest(run) or ""
    row = source.result(run, scope, "residual_power_w")
    if row is None or row["value"] is None:
        return []
    text = "Outside the measured parts of the {} (fans, losses of supplies, disks, network): {} on average in run {}."
    return [Text(Markup(text).format(scope, copyable(cell(source, row)), run))]


def _rows(source: Source, *where: pl.Expr) -> pl.DataFrame:
    order = pl.col("scope").replace_strict({s: i for i, s in enumerate(schema.SCOPES)}, default=99)
    rank = pl.col("run_id").replace_strict({r: i for i, r in enumerate(source.runs)}, default=10**6)
    return source.rows("results").filter(*where).sort(rank, order, "device", "phase", "metric")


def _scopes(source: Source) -> Table | None:
    names = ("energy_j", "marginal_energy_j", "mean_power_w", "idle_power_w")
    caption = "Each boundary from narrow to wide; a wider one holds the narrower ones." + shared_whole(source)
    return _by_scope(source, names, ("energy_j", "facility_energy_j"), caption, "table-scopes")


def _efficiency(source: Source) -> Table | None:
    names = ("tokens_per_j", "mfu_ratio", "hfu_ratio", "tdp_ratio", "cv_ratio")
    caption = "What came of the energy, and how even the power was in the longest steady stretch."
    return _by_scope(source, names, names, caption, "table-efficiency")


def _by_scope(source: Source, names: Sequence[str], rows_of: Sequence[str], caption: str, anchor: str) -> Table | None:
    """Return metrics as columns, a row a run and boundary that has one of ``rows_of``."""
    rows = _rows(source, pl.col("metric").is_in(rows_of), pl.col("device") == "", pl.col("phase") == "")
    if "energy_j" not in rows_of:
        rows = rows.filter(pl.col("value").is_not_null())
    if rows.is_empty():
        return None
    places = list(dict.fromkeys(rows.select("run_id", "scope").iter_rows()))
    kept = places[:ROWS_SHOWN]
    columns, cells = [], []
    for name in names:
        found = [_of_scope(source, run, scope, name) for run, scope in kept]
        if not any(r is not None and r["value"] is not None for r in found) and name != "energy_j":
            continue
        unit = metrics.unit_of(name, found)
        columns.append(Column(metrics.of(name).label, unit.name))
        cells.append([_or_why(source, r, unit, name, s) for r, (_, s) in zip(found, kept, strict=True)])
    rows_out = [[run, scope, *(c[i] for c in cells)] for i, (run, scope) in enumerate(kept)]
    head = [Column("run"), Column("boundary"), *columns]
    return Table(head, rows_out, caption + _more(len(places)), anchor)


def _of_scope(source: Source, run: str, scope: str, name: str) -> dict[str, Any] | None:
    at_site = scope == "facility" and name == "energy_j"
    return (source.result(run, scope, "facility_energy_j") if at_site else None) or source.result(run, scope, name)


def _or_why(source: Source, row: dict[str, Any] | None, unit: metrics.Unit, name: str, scope: str) -> shown.Number:
    """Return a number, or why a boundary has none."""
    if row is not None:
        return cell(source, row, unit)
    if scope == "facility":
        return shown.exact(None, reason=_SITE)
    return shown.exact(None, reason=_BOARDS) if name in _OF_BOARDS and scope != "board" else shown.of_row(None)


def _waste(source: Source) -> Table | None:
    rows = _rows(source, pl.col("metric").is_in(metrics.WASTE), pl.col("device") == "", pl.col("phase") == "")
    looked, rows = rows.height, rows.filter(pl.col("value").is_null() | (pl.col("value") > 0))
    if rows.is_empty():
        return None
    rows = rows.sort("value", descending=True, nulls_last=True, maintain_order=True) if rows.height > SHORT else rows
    none = f" Left out: {looked - rows.height} that came to nought." if looked > rows.height else ""
    unit = metrics.unit_for("energy_j", rows["value"].to_list())
    made = [
        [r["run_id"], metrics.of(r["metric"]).label, r["scope"], cell(source, r, unit), told(r["method"])]
        for r in rows.head(ROWS_SHOWN).iter_rows(named=True)
    ]
    columns = [Column("run"), Column("waste"), Column("boundary"), Column("energy", unit.name), Column("how")]
    return Table(columns, made, f"Energy that made no progress.{_more(rows.height)}{none}", "table-waste")


def _phases(source: Source) -> Table | None:
    rows = _rows(source, pl.col("phase") != "", pl.col("metric") == "phase_energy_j", pl.col("device") == "")
    rows = rows.filter((pl.col("phase") != "other") | pl.col("value").is_null() | (pl.col("value") != 0.0))
    if rows.is_empty():
        return None
    others = {
        (r["run_id"], r["scope"], r["phase"], r["metric"]): r
        for r in _rows(source, pl.col("phase") != "", pl.col("device") == "").iter_rows(named=True)
    }
    unit = metrics.unit_for("energy_j", rows["value"].to_list())
    power = metrics.unit_of("phase_power_w", [r for r in others.values() if r["metric"] == "phase_power_w"])
    made = []
    for r in rows.head(ROWS_SHOWN).iter_rows(named=True):
        key = (r["run_id"], r["scope"], r["phase"])
        rest = [
            cell(source, others.get((*key, m)), u)
            for m, u in (("phase_share_ratio", _PERCENT), ("phase_power_w", power))
        ]
        made.append([r["run_id"], r["scope"], r["phase"], cell(source, r, unit), *rest])
    columns = [
        Column("run"), Column("boundary"), Column("phase"), Column("energy", unit.name), Column("share", "%"),
        Column("mean power", power.name),
    ]  # fmt: skip
    return Table(columns, made, f"Energy of the phases.{_more(rows.height)}", "table-phases")


def _devices(source: Source) -> Table | None:
    rows = _rows(source, pl.col("device") != "", pl.col("metric") == "energy_j", pl.col("phase") == "")
    if rows.is_empty():
        return None
    unit = metrics.unit_for("energy_j", rows["value"].to_list())
    made = [
        [r["run_id"], r["scope"], r["device"], cell(source, r, unit), told(r["method"])]
        for r in rows.head(ROWS_SHOWN).iter_rows(named=True)
    ]
    columns = [Column("run"), Column("boundary"), Column("device"), Column("energy", unit.name), Column("how")]
    return Table(columns, made, f"Energy of the devices.{_more(rows.height)}", "table-devices")


def _more(rows: int) -> str:
    return f" The first {ROWS_SHOWN} of {rows}; the table results has all." if rows > ROWS_SHOWN else ""
