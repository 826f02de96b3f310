"""Sweeps and campaigns, where the study has them."""

from __future__ import annotations

import polars as pl

from joulebook.plots.decomposition import PARTS
from joulebook_pipelines import metrics, shown
from joulebook_pipelines.report import comparison_pictures as pictures
from joulebook_pipelines.report.blocks import Block, Column, Fold, Items, Section, Table
from joulebook_pipelines.report.pictures import Budget
from joulebook_pipelines.report.source import Source

_HOW = (
    "± and brackets are 95 % intervals. p is the chance of such a difference without any effect, corrected for the number of "
    "changes. The parts add up to the effect: the same energy comes from time taken and power drawn."
)
_STATUS = {
    "found": "found", "edge": "at the end of the range", "flat": "flat: several as good", "too-few": "too few runs",
    "refused": "not judged",
}  # fmt: skip
_CURVES = ("step_time_s", "energy_per_token_j", "tokens_to_target", "energy_to_target_j", "mean_power_w")


def sweeps(source: Source, budget: Budget) -> Section | None:
    """Return the sweeps with their best settings, ``None`` where there are none."""
    rows = source.rows("sweeps")
    if rows.is_empty():
        return None
    blocks: list[Block] = []
    for name in rows["sweep"].unique(maintain_order=True):
        of = rows.filter(pl.col("sweep") == name)
        picture = pictures.sweep(source, budget, name)
        blocks += [picture] if picture else []
        blocks += [_spots(source, name), _settings(of, name)]
    return Section("sweeps", "Which setting is best?", blocks)


def changes(source: Source, budget: Budget) -> Section | None:
    """Return what each change of a campaign saved, ``None`` where there are none."""
    rows = source.rows("changes")
    if rows.is_empty():
        return None
    blocks: list[Block] = []
    for name in rows["campaign"].unique(maintain_order=True):
        of = rows.filter(pl.col("campaign") == name).sort("scope", "position")
        parts = source.rows("decompositions").filter(pl.col("campaign") == name)
        drawn = (pictures.changes(source, budget, name), pictures.decomposition(source, budget, name))
        blocks += [p for p in drawn if p]
        blocks += [_changes(of, parts, name), Fold("Each comparison in words", [_words(of)])]
    return Section("changes", "What did each change save?", blocks)


def _spots(source: Source, name: str) -> Table:
    rows = source.rows("sweet_spots").filter(pl.col("sweep") == name)
    made = []
    for r in rows.iter_rows(named=True):
        unit = metrics.unit_for(r["objective"], [r["value"]])
        value = shown.number(r["value"], unit=unit, reason="–")
        best = shown.number(r["x"], r["x_lo"], r["x_hi"], reason="–")
        made.append(
            [
                metrics.of(r["objective"]).label,
                _STATUS.get(r["status"], r["status"]),
                best,
                value,
                unit.name,
                r["reason"] or "",
            ]
        )
    columns = [Column(c) for c in ("least", "found?", "best setting", "its value there", "unit", "why")]
    return Table(
        columns, made, f"{name}: where each amount is least, with the 95 % interval of the setting.", f"spots-{name}"
    )


def _settings(rows: pl.DataFrame, name: str) -> Table:
    columns, cells = [Column((rows["knob"][0] or "setting").replace("_", " ")), Column("runs")], []
    for metric in _CURVES:
        if rows[metric].is_null().all():
            continue
        unit = metrics.unit_for(metric, rows[metric].to_list())
        columns.append(Column(metrics.of(metric).label, unit.name))
        ends = rows.select(metric, f"{metric}_lo", f"{metric}_hi").iter_rows()
        cells.append([shown.number(v, lo, hi, unit=unit) for v, lo, hi in ends])
    lead = rows.select("x", "repeats").iter_rows()
    made = [[shown.exact(x), shown.exact(n), *(c[i] for c in cells)] for i, (x, n) in enumerate(lead)]
    return Table(columns, made, f"{name}: one row a setting.", f"settings-{name}")


def _words(rows: pl.DataFrame) -> Items:
    told = rows.filter(pl.col("reason").fill_null("") != "").iter_rows(named=True)
    return Items([f"{r['position']} {r['change']}, {r['scope']}: {r['reason']}." for r in told])


def _changes(rows: pl.DataFrame, parts: pl.DataFrame, name: str) -> Table:
    known = [p for p in PARTS if p in set(parts["part"])]
    made, asked = [], rows["metric"].unique().drop_nulls().to_list()
    one = asked[0] if len(asked) == 1 else ""
    unit = metrics.unit_for(one, [*rows["before"], *rows["after"]]) if one else metrics.Unit("")
    of_effect = {(r["position"], r["scope"], r["part"]): r for r in parts.iter_rows(named=True)}
    for r in rows.iter_rows(named=True):
        why = "" if one else f"{metrics.of(r['metric'] or '').label}. "
        split = (of_effect.get((r["position"], r["scope"], p), {}) for p in known)
        made.append([
            f"{r['position']} {r['change']}", r["scope"],
            shown.number(r["before"], unit=unit, reason="–"), shown.number(r["after"], unit=unit, reason="–"),
            shown.ratio(r["effect_ratio"], r["effect_lo"], r["effect_hi"], reason=why + (r["reason"] or "–")),
            *(shown.ratio(p.get("effect_ratio"), p.get("effect_lo"), p.get("effect_hi"), reason="–") for p in split),
            _chance(r["p_value"]), r["verdict"] or "",
        ])  # fmt: skip
    columns = [
        Column("change"), Column("boundary"), Column("before", unit.name), Column("after", unit.name),
        Column("effect", "%"), *(Column(f"of it: {PARTS[p][0]}", "%") for p in known),
        Column("chance (p)"), Column("verdict"),
    ]  # fmt: skip
    about = f" {metrics.of(one).label[:1].upper()}{metrics.of(one).label[1:]}." if one else ""
    return Table(columns, made, f"{name}: after / before − 1 at each boundary.{about} {_HOW}", f"changes-{name}")


def _chance(p_value: float | None) -> str:
    """Return a p value in three decimals: smaller ones are not known better than that they are small."""
    if p_value is None:
        return "–"
    return "<\u00a00.001" if p_value < 0.001 else f"{p_value:.3f}"
