"""Bars that add up: a run's energy by part, and by phase."""

from __future__ import annotations

import polars as pl

from joulebook import plots
from joulebook.boundaries import BESIDE
from joulebook.plots import style as look
from joulebook.plots.energy_bar import TOLERANCE
from joulebook_pipelines import metrics, shown
from joulebook_pipelines.report.blocks import Picture
from joulebook_pipelines.report.pictures import Budget, draw, slug
from joulebook_pipelines.report.source import Source

_SIZE = (8.2, 1.25)
"""Inches of a bar."""


def parts(source: Source, budget: Budget, run: str) -> Picture | None:
    """Return the bar of a run: measured parts, what is left of the widest boundary, the site's overhead."""
    widest = source.beside(run)
    if not widest:
        return None
    inside = [s for s in BESIDE if len(widest) > 1 or s not in widest]
    measured = [(s, j) for s in inside if (j := _energy_j(source, run, s)) is not None]
    whole_j = sum(j for _, j in measured) if len(widest) > 1 else _energy_j(source, run, widest[0]) or 0.0
    rows = measured or [(widest[0], whole_j)]
    site = source.result(run, "facility", "facility_energy_j")
    site_j = site["value"] if site and site["value"] is not None and site["value"] > whole_j else None
    if len(rows) == 1 and not (measured or site_j):
        return None  # a bar of one part shows nothing
    total_j, total = (site_j, "facility") if site_j else (whole_j, widest[0] if len(widest) == 1 else "measured parts")
    bar = pl.DataFrame(rows, schema={"part": pl.String, "energy_j": pl.Float64}, orient="row").filter(
        pl.col("energy_j") > 0
    )
    bar = bar.with_columns(
        _labelled(bar, total_j), colour=pl.col("part").replace_strict(look.SCOPE_COLOURS, default=look.BLUE)
    )
    rest_j = whole_j - float(bar["energy_j"].sum())
    told = [f"Energy of run {run}: measured parts"]
    if rest_j > whole_j * TOLERANCE:
        name = f"{_others(source, run, widest[0])}rest of the {widest[0]}"
        bar = pl.concat([bar, pl.DataFrame({"part": [name], "energy_j": [rest_j], "colour": [look.GREY]})])
        told.append(f"in grey what is left up to the {widest[0]}")
    if site_j:
        told.append("hatched the site's overhead, by the PUE")
    words = (
        f"Energy of run {run} by part",
        ", ".join(told[:-1]) + " and " * (len(told) > 1) + told[-1] + ".",
        f"A bar from zero: {'; '.join(bar['part'])}; the whole: {_plain(total_j)}.",
    )
    return draw(
        budget, lambda ax: plots.energy_bar(bar, total_j=total_j, total=total, remainder="site's overhead", ax=ax),
        slug("bar", run), words, _SIZE,
    )  # fmt: skip


def phases(source: Source, budget: Budget, run: str) -> Picture | None:
    """Return the bar of a run's phases at one boundary."""
    rows = source.rows("results").filter(
        (pl.col("run_id") == run)
        & (pl.col("metric") == "phase_energy_j")
        & (pl.col("device") == "")
        & pl.col("value").is_not_null()
    )
    if rows.is_empty():
        return None
    scope = next(s for s in ("node", "board", *rows["scope"]) if s in set(rows["scope"]))
    order = pl.col("phase").replace_strict({p: i for i, p in enumerate(look.PHASE_COLOURS)}, default=99)
    bar = (
        rows.filter(pl.col("scope") == scope).sort(order)
        .select(pl.col("phase").alias("part"), pl.col("value").alias("energy_j"))
        .with_columns(colour=pl.col("part").replace_strict(look.PHASE_COLOURS, default=look.GREY))
    )  # fmt: skip
    whole_j = _energy_j(source, run, scope)
    bar = bar.with_columns(_labelled(bar, whole_j))
    left_j = 0.0 if whole_j is None else whole_j - float(bar["energy_j"].sum())
    hatched = "; hatched is time without a named phase" if left_j > (whole_j or 0.0) * TOLERANCE else ""
    words = (
        f"Energy of run {run} by phase",
        f"Energy of run {run} by phase at the {scope}{hatched}.",
        "; ".join(bar["part"]),
    )
    return draw(
        budget, lambda ax: plots.energy_bar(bar, total_j=whole_j, total=scope, remainder="no phase", ax=ax),
        slug("phase-bar", run), words, _SIZE,
    )  # fmt: skip


def _energy_j(source: Source, run: str, scope: str) -> float | None:
    row = source.result(run, scope, "energy_j")
    return None if row is None else row["value"]


def _others(source: Source, run: str, scope: str) -> str:
    """Return what else is in the rest of a machine that a run shared: the cards of its neighbours."""
    left = source.result(run, scope, "residual_power_w")
    return "other cards, " if left is not None and left["value"] is None else ""


def _plain(energy_j: float) -> str:
    return shown.number(energy_j, unit=metrics.unit_for("energy_j", [energy_j])).plain


def _labelled(bar: pl.DataFrame, total_j: float | None) -> pl.Series:
    """Return the names of parts with their energy, three digits, in the unit of the axis, which is that of the whole."""
    unit = metrics.unit_for("energy_j", [total_j, *bar["energy_j"]])
    names = [
        f"{part} {energy_j / unit.size:#.3g}".rstrip(".")
        for part, energy_j in bar.select("part", "energy_j").iter_rows()
    ]
    return pl.Series("part", names, dtype=pl.String)
