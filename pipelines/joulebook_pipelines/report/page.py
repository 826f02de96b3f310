"""The page: sections in the order of the reader's questions, one file, no request to anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from joulebook_pipelines.report.blocks import Brief, Section, footmarks
from joulebook_pipelines.report.pictures import Budget
from joulebook_pipelines.report.sections import (
    advice,
    comparisons,
    context,
    cost,
    energy_split,
    learning,
    measured,
    sureness,
    trust,
)
from joulebook_pipelines.report.source import Source, StoreView


def render(store: StoreView, out: Path, notebooks: Iterable[Path] = ()) -> Path:
    """Write the report of a study.

    Parameters
    ----------
    store
        An open store.
    out
        The HTML file to write.
    notebooks
        Executed notebooks to list; those below the folder of ``out`` are linked relative to it. They are asked for last,
        when all pictures are drawn, so that they may be waited for.

    Returns
    -------
    pathlib.Path
        ``out``.
    """
    source = Source(store)
    out.write_text(html(source, sections(source, notebooks, out)), encoding="utf-8")
    return out


def sections(source: Source, notebooks: Iterable[Path], out: Path) -> list[Section]:
    """Return the page's sections in order; comparisons only where the study has them."""
    budget = Budget()
    tiles, lines = trust.checks(source), advice.lines(source)
    answers = Brief([
        ("How sure", sureness.brief(source)), ("The data", trust.brief(tiles)), ("What to do", advice.brief(lines)),
    ])  # fmt: skip
    made = [
        cost.build(source, answers),
        sureness.build(source),
        trust.build(tiles),
        energy_split.build(source, budget),
        advice.build(lines),
        comparisons.sweeps(source, budget),
        comparisons.changes(source, budget),
        learning.build(source, budget),
        context.drivers(source, budget),
        context.days(source, budget),
        context.shares(source, budget),
        context.hours(source),
        measured.build(source, budget, notebooks, out),
    ]
    return [s for s in made if s is not None]


def html(source: Source, parts: Sequence[Section]) -> str:
    """Return the page as text."""
    loader = PackageLoader("joulebook_pipelines.report", "templates")
    pages = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pages.filters["footmarks"] = footmarks
    files = {name: Markup(loader.get_source(pages, f"page.{name}")[0]) for name in ("css", "js")}
    spans = source.rows("runs").select("start_utc", "end_utc").drop_nulls()
    days = sorted({d for c in spans for d in c.dt.convert_time_zone(source.timezone).dt.date().to_list()})
    when = " to ".join(dict.fromkeys(str(d) for d in (days[0], days[-1]))) if days else ""
    return pages.get_template("page.html.j2").render(name=source.name, when=when, sections=parts, **files)
