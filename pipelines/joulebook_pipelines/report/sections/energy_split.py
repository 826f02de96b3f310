"""Where the energy went: boundaries, parts, phases, waste."""

from __future__ import annotations

import polars as pl
from markupsafe import Markup

from joulebook import schema
from joulebook_pipelines.report import pictures, shown
from joulebook_pipelines.report.blocks import Block, Column, Fold, Section, Table, Text, copyable
from joulebook_pipelines.report.pictures import Budget
from joulebook_pipelines.report.sections.cost import cell
from joulebook_pipelines.report.source import Source

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
        blocks += [p for p in (pictures.bar(source, budget, run), pictures.phase_bar(source, budget, run)) if p]
        blocks += _residual(source, run)
    scopes, waste = _scopes(source), _waste(source)
    if scopes:
        long = len(scopes.rows) > SHORT
        blocks.append(Fold("Energy at each boundary", [scopes], anchor="boundaries") if long else scopes)
    if waste:
        blocks.append(Fold("Waste", [waste], anchor="waste") if len(waste.rows) > SHORT else waste)
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
    rows = _rows(
        source, pl.col("metric").is_in(["energy_j", "facility_energy_j"]), pl.col("device") == "", pl.col("phase") == ""
    )
    if rows.is_empty():
        return None
    names = (
        "energy_j",
        "marginal_energy_j",
        "mean_power_w",
        "idle_power_w",
        "cv_ratio",
        "tokens_per_j",
        "mfu_ratio",
    )
    places = list(dict.fromkeys(rows.select("run_id", "scope").iter_rows()))
    shown_places = places[:ROWS_SHOWN]
    columns, cells = [], []
    for name in names:
        found = [
            source.result(run, scope, "facility_energy_j" if name == "energy_j" and scope == "facility" else name)
            or (source.result(run, scope, name) if scope == "facility" else None)
            for run, scope in shown_places
        ]
        if not any(r is not None and r["value"] is not None for r in found) and name != "energy_j":
            continue
        unit = shown.unit_of(name, found)
        columns.append(Column(shown.metric(name).label, unit.name))
        cells.append(
            [
                cell(source, r, unit) if r or s != "facility" else shown.exact(None)
                for r, (_, s) in zip(found, shown_places, strict=True)
            ]
        )
    rows_out = [[run, scope, *(c[i] for c in cells)] for i, (run, scope) in enumerate(shown_places)]
    more = _more(len(places))
    caption = f"Each boundary from narrow to wide; a wider one holds the narrower ones.{more}"
    return Table([Column("run"), Column("boundary"), *columns], rows_out, caption, "table-scopes")


def _waste(source: Source) -> Table | None:
    rows = _rows(source, pl.col("metric").is_in(shown.WASTE), pl.col("device") == "", pl.col("phase") == "")
    looked, rows = rows.height, rows.filter(pl.col("value").is_null() | (pl.col("value") > 0))
    if rows.is_empty():
        return None
    rows = rows.sort("value", descending=True, nulls_last=True, maintain_order=True) if rows.height > SHORT else rows
    none = f" In {looked - rows.height} more places there was none." if looked > rows.height else ""
    unit = shown.unit_for("energy_j", rows["value"].to_list())
    made = [
        [r["run_id"], shown.metric(r["metric"]).label, r["scope"], cell(source, r, unit), r["method"] or ""]
        for r in rows.head(ROWS_SHOWN).iter_rows(named=True)
    ]
    columns = [Column("run"), Column("waste"), Column("boundary"), Column("energy", unit.name), Column("how")]
    return Table(columns, made, f"Energy that made no progress.{_more(rows.height)}{none}", "table-waste")


def _phases(source: Source) -> Table | None:
    rows = _rows(source, pl.col("phase") != "", pl.col("metric") == "phase_energy_j", pl.col("device") == "")
    if rows.is_empty():
        return None
    others = {
        (r["run_id"], r["scope"], r["phase"], r["metric"]): r
        for r in _rows(source, pl.col("phase") != "", pl.col("device") == "").iter_rows(named=True)
    }
    unit = shown.unit_for("energy_j", rows["value"].to_list())
    made = []
    for r in rows.head(ROWS_SHOWN).iter_rows(named=True):
        key = (r["run_id"], r["scope"], r["phase"])
        rest = [cell(source, others.get((*key, m))) for m in ("phase_share_ratio", "phase_power_w")]
        made.append([r["run_id"], r["scope"], r["phase"], cell(source, r, unit), *rest])
    columns = [
        Column("run"), Column("boundary"), Column("phase"), Column("energy", unit.name), Column("share", "%"),
        Column("mean power", "W"),
    ]  # fmt: skip
    return Table(columns, made, f"Energy of the phases.{_more(rows.height)}", "table-phases")


def _devices(source: Source) -> Table | None:
    rows = _rows(source, pl.col("device") != "", pl.col("metric") == "energy_j", pl.col("phase") == "")
    if rows.is_empty():
        return None
    unit = shown.unit_for("energy_j", rows["value"].to_list())
    made = [
        [r["run_id"], r["scope"], r["device"], cell(source, r, unit), r["method"] or ""]
        for r in rows.head(ROWS_SHOWN).iter_rows(named=True)
    ]
    columns = [Column("run"), Column("boundary"), Column("device"), Column("energy", unit.name), Column("how")]
    return Table(columns, made, f"Energy of the devices.{_more(rows.height)}", "table-devices")


def _more(rows: int) -> str:
    return f" The first {ROWS_SHOWN} of {rows}; the table results has all." if rows > ROWS_SHOWN else ""
