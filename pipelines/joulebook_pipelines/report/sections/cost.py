"""What it cost: a sentence per run, or the range and a table where they are many."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from joulebook import sharing, sharing_part
from joulebook_pipelines import metrics, shown
from joulebook_pipelines.metrics import Unit
from joulebook_pipelines.report.blocks import Block, Brief, Column, Fold, Items, Section, Table, Text, copyable
from joulebook_pipelines.report.source import Source
from joulebook_pipelines.shown import Mark, Number

SENTENCES = 4
"""Runs up to which each gets a sentence; more are easier to compare in a table."""
OPEN = 8
"""Runs up to which the table stands open: a longer one would push the answers off the first screen."""
_COLUMNS = ("energy_j", "marginal_energy_j", "energy_per_token_j", "mean_power_w", "duration_s")
_FACILITY = ("facility_energy_j", "carbon_kg", "cost")


def build(source: Source, answers: Brief) -> Section:
    """Return a sentence per run, or the range and a table where they are many, and the other answers in short."""
    blocks: list[Block] = []
    if not source.runs:
        blocks.append(Text(_nothing(source)))
    elif len(source.runs) <= SENTENCES:
        blocks.append(Items([_sentence(source, run) for run in source.runs]))
    else:
        blocks.append(Items([_range(source)]))
    blocks.append(answers)
    if len(source.runs) > SENTENCES:
        table = _table(source)
        blocks.append(
            table if len(source.runs) <= OPEN else Fold(f"All {len(source.runs)} runs", [table], anchor="runs")
        )
    blocks.append(Text(_basis(source), kind="basis"))
    return Section("cost", "What did it cost?", blocks)


def _nothing(source: Source) -> str:
    """Return why there is no number at all."""
    if source.rows("sources").is_empty():
        return "Nothing is known: no file of the study could be read."
    return "No run is known: neither study.toml nor a log names one, and no busy stretch was found."


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
    shared = _shared(source, run, energy)
    if shared:
        return shared
    text = Markup("Run <b>{}</b> took {}").format(run, _spent(source, run))
    duration = source.result(run, scope or "", "duration_s")
    if duration and duration["value"] is not None:
        text += Markup(" in {}").format(copyable(cell(source, duration)))
    token = source.result(run, scope or "", "energy_per_token_j")
    if token and token["value"] is not None:
        text += Markup(": {} per million tokens").format(copyable(cell(source, token)))
    extra = _facility(source, run)
    return text + (Markup("; ") + extra if extra else Markup("")) + Markup(".")


def shared_whole(source: Source) -> str:
    """Return, as an end of a caption, which runs' rows are about a whole machine that they shared; '' where none are."""
    runs = [r for r in source.rows("shares")["run_id"].unique().sort() if r and r != sharing.IDLE]
    return (
        f" Beyond their own cards, rows of {', '.join(runs)} are about the whole machine that they shared."
        if runs
        else ""
    )


def _spent(source: Source, run: str) -> Markup:
    """Return the energy at the widest boundary; those that lie beside each other stand side by side."""
    each = [
        Markup("<strong>{}</strong> at the {}").format(copyable(cell(source, source.result(run, s, "energy_j"))), s)
        for s in source.beside(run)
    ]
    return Markup(", ").join(each[:-1]) + (Markup(" and ") if each[:-1] else Markup("")) + each[-1]


def _shared(source: Source, run: str, energy: dict[str, Any]) -> Markup | None:
    """Return the sentence of a run that shared its machine: its part, not the whole that others used as well."""
    part = sharing_part.part_of(source.rows("shares"), run, scope=energy["scope"])
    if part is None:
        return None
    names = ", ".join(part.others) or "no other run"
    unit = metrics.unit_for("energy_j", [energy["value"]])
    mine = shown.number(part.energy.value, part.energy.lo, part.energy.hi, unit=unit)
    lead = Markup("Run <b>{}</b> took <strong>{}</strong> of the {} that it shared with {}").format(
        run, copyable(mine), energy["scope"], names
    )
    whole = Markup("; in its time the {} took {} (<a href='#shares'>shares</a>).")
    return lead + whole.format(energy["scope"], copyable(cell(source, energy, unit)))


def _range(source: Source) -> Markup:
    """Return in words the least and the greatest energy of many runs, at the widest boundary that they share."""
    rows = [source.result(run, source.widest(run) or "", "energy_j") for run in source.runs]
    known = [r for r in rows if r is not None and r["value"] is not None]
    count, missing = len(source.runs), len(rows) - len(known)
    if not known:
        why = next((r["reason"] for r in rows if r is not None and r["reason"]), "no reading covers them")
        return Markup("The energy of none of {} runs is known – {}.").format(count, why)
    scopes = {r["scope"] for r in known}
    unit = metrics.unit_of("energy_j", known)
    least, most = (f(known, key=lambda r: r["value"]) for f in (min, max))
    ends = [(copyable(cell(source, r, unit)), r["run_id"], r["scope"]) for r in (least, most)]
    place = Markup(" at the {}").format(ends[0][2]) if len(scopes) == 1 else Markup("")
    tail = Markup(" The energy of {} is not known.").format(missing) if missing else Markup("")
    each = [
        Markup("<strong>{}</strong> (run <b>{}</b>{})").format(n, run, "" if place else f", {scope}")
        for n, run, scope in ends
    ]
    return Markup("{} runs took from {} to {} each{}.{}").format(count, *each, place, tail)


def _facility(source: Source, run: str) -> Markup:
    parts = []
    words = {"facility_energy_j": "{} with the site's overhead", "carbon_kg": "{}", "cost": "{}"}
    for name in _FACILITY:
        row = source.result(run, "facility", name)
        if row is not None and row["value"] is not None:
            unit = metrics.unit_for(name, [row["value"]], currency=currency(source))
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
        if isinstance(value, str):
            parts.append(Markup("{} by the hour from {} (<code>{}</code>)").format(word, value, path))
        elif value is not None:
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
        unit = metrics.unit_of(name, rows, currency=currency(source))
        columns.append(Column(metrics.of(name).label, unit.name))
        cells.append([cell(source, row, unit) for row in rows])
    one = next((s for s in scopes.values() if s), "")
    caption = "Each run at its widest measured boundary" + ("" if several else f", the {one}") + "."
    lead = [Column("run"), Column("boundary")] if several else [Column("run")]
    rows_out: list[list[str | Number]] = [
        [run, *([scopes[run]] if several else []), *(c[i] for c in cells)] for i, run in enumerate(source.runs)
    ]
    return Table([*lead, *columns], rows_out, caption, "table-cost")
