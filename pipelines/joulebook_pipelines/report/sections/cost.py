"""What it cost: a sentence per run, or a table where they are many."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from joulebook_pipelines.report import shown
from joulebook_pipelines.report.blocks import Block, Column, Items, Section, Table, Text, copyable
from joulebook_pipelines.report.shown import Mark, Number, Unit
from joulebook_pipelines.report.source import Source

SENTENCES = 4
"""Runs up to which each gets a sentence; more are easier to compare in a table."""
_COLUMNS = ("energy_j", "marginal_energy_j", "energy_per_token_j", "mean_power_w", "duration_s")
_FACILITY = ("facility_energy_j", "carbon_kg", "cost")


def build(source: Source) -> Section:
    """Return a sentence per run, or a table where they are many."""
    blocks: list[Block] = []
    if not source.runs:
        blocks.append(Text("No run is known: neither study.toml nor a log names one, and no busy stretch was found."))
    elif len(source.runs) <= SENTENCES:
        blocks.append(Items([_sentence(source, run) for run in source.runs]))
    else:
        blocks.append(_table(source))
    blocks.append(Text(_basis(source), kind="basis"))
    return Section("cost", "What did it cost?", blocks)


def marks(source: Source, row: dict[str, Any] | None) -> tuple[Mark, ...]:
    """Return the footnote marks of a row of ``results``."""
    return () if row is None else tuple(Mark(str(g.number), f"#{g.anchor}") for g in source.footnotes.marks(row))


def cell(source: Source, row: dict[str, Any] | None, unit: Unit | None = None) -> Number:
    """Return a row of ``results`` as a number with its marks."""
    return shown.of_row(row, unit=unit, marks=marks(source, row))


def currency(source: Source) -> str:
    """Return the currency of costs."""
    return str(source.setting("site.currency") or "")


def _sentence(source: Source, run: str) -> Markup:
    scope = source.widest(run)
    energy = source.result(run, scope or "", "energy_j")
    if energy is None or energy["value"] is None:
        why = (energy or {}).get("reason") or "no reading covers it"
        return Markup("Run <b>{}</b>: its energy is not known – {}.").format(run, why)
    text = Markup("Run <b>{}</b> took <strong>{}</strong> at the {}").format(run, copyable(cell(source, energy)), scope)
    duration = source.result(run, scope or "", "duration_s")
    if duration and duration["value"] is not None:
        text += Markup(" in {}").format(copyable(cell(source, duration)))
    token = source.result(run, scope or "", "energy_per_token_j")
    if token and token["value"] is not None:
        text += Markup(": {} per million tokens").format(copyable(cell(source, token)))
    extra = _facility(source, run)
    return text + (Markup("; ") + extra if extra else Markup("")) + Markup(".")


def _facility(source: Source, run: str) -> Markup:
    parts = []
    words = {"facility_energy_j": "{} with the site's overhead", "carbon_kg": "{}", "cost": "{}"}
    for name in _FACILITY:
        row = source.result(run, "facility", name)
        if row is not None and row["value"] is not None:
            unit = shown.unit_for(name, [row["value"]], currency=currency(source))
            parts.append(Markup(words[name]).format(copyable(cell(source, row, unit))))
    return Markup(", ").join(parts)


def _basis(source: Source) -> Markup:
    """Return by what factors energy became emissions and money, and where they come from."""
    parts = []
    for path, word, unit, origin in (
        ("site.pue", "PUE (the site's energy / the machines' energy)", "", ""),
        ("site.carbon_kg_per_kwh", "emissions", " kg CO2e/kWh", "site.carbon_source"),
        ("site.price_per_kwh", "price", f" {currency(source)}/kWh", "site.price_source"),
    ):
        value, known = source.setting(path), source.setting(origin) if origin else None
        if value is not None:
            told = f", {known}" if known else ""
            parts.append(Markup("{} {}{} (<code>{}</code>{})").format(word, value, unit, path, told))
    intro = "± and brackets are the 95 % interval. Raised numbers lead to findings that touch a number."
    if not parts:
        return Markup("{} No emissions or cost without <code>[site]</code> in study.toml.").format(intro)
    return Markup("{} Factors from study.toml: {}.").format(intro, Markup("; ").join(parts))


def _table(source: Source) -> Table:
    scopes = {run: source.widest(run) or "" for run in source.runs}
    several = len({s for s in scopes.values() if s}) > 1
    columns: list[Column] = []
    cells: list[list[Number]] = []
    for name in (*_COLUMNS, *_FACILITY):
        rows = [source.result(r, "facility" if name in _FACILITY else scopes[r], name) for r in source.runs]
        if not any(row is not None and row["value"] is not None for row in rows) and name != "energy_j":
            continue
        unit = shown.unit_of(name, rows, currency=currency(source))
        columns.append(Column(shown.metric(name).label, unit.name))
        cells.append([cell(source, row, unit) for row in rows])
    one = next((s for s in scopes.values() if s), "")
    caption = "Each run at its widest measured boundary" + ("" if several else f", the {one}") + "."
    lead = [Column("run"), Column("boundary")] if several else [Column("run")]
    rows_out: list[list[str | Number]] = [
        [run, *([scopes[run]] if several else []), *(c[i] for c in cells)] for i, run in enumerate(source.runs)
    ]
    return Table([*lead, *columns], rows_out, caption, "table-cost")
