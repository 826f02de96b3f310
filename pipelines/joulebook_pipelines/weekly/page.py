"""The pages: a week with all its studies, and the index of weeks."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import polars as pl
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from joulebook import iso_weeks, weekly_change
from joulebook.findings import Estimate
from joulebook_pipelines.report import shown
from joulebook_pipelines.report.blocks import Column, Table, copyable, footmarks
from joulebook_pipelines.report.shown import Number, Unit
from joulebook_pipelines.weekly import sparkline
from joulebook_pipelines.weekly.verdicts import StudyWeek

STATES = {"regression": "bad", "improved": "good", "indistinguishable": "none", "refused": "none"}
WORDS = {"regression": "regression", "improved": "improved", "indistinguishable": "no change", "refused": "cannot say"}
MARKS = {"regression": "▲", "improved": "▼", "indistinguishable": "·", "refused": "–"}
_LABELS = {
    "waste_ratio": "wasted share of the energy",
    "energy_j": "energy per run",
    "carbon_kg": "emissions per run",
    "cost": "cost per run",
}
_PERCENT = ("waste_ratio", "cv_ratio")


@dataclass(frozen=True)
class Card:
    """A metric of a kind of run: this week's number, the verdict, and the picture of the weeks."""

    title: str
    where: str
    value: Number
    effect: Number
    verdict: str
    word: str
    reason: str
    picture: Markup


@cache
def _pages() -> Environment:
    own = PackageLoader("joulebook_pipelines.weekly", "templates")
    report = PackageLoader("joulebook_pipelines.report", "templates")
    pages = Environment(
        loader=ChoiceLoader([own, report]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters["footmarks"] = footmarks
    pages.filters["copyable"] = copyable
    for name, loader, file in (("css", report, "page.css"), ("own_css", own, "weekly.css"), ("js", report, "page.js")):
        pages.globals[name] = Markup(loader.get_source(pages, file)[0])
    return pages


def days(week: str) -> str:
    """Return the days of an ISO week in words.

    Examples
    --------
    >>> days("2026-W47")
    '16 to 22 November 2026'
    """
    first = iso_weeks.monday(week)
    last = first + dt.timedelta(days=6)
    same = first.month == last.month
    return f"{first.day}{'' if same else f' {first:%B}'}{'' if first.year == last.year else f' {first.year}'} to {last.day} {last:%B} {last.year}"


def label(metric: str) -> str:
    """Return the words for a metric."""
    return _LABELS.get(metric) or shown.metric(metric).label


def unit(metric: str, values: Sequence[float | None], currency: str = "") -> Unit:
    """Return the unit in which a metric is best read."""
    return Unit("%", 0.01) if metric in _PERCENT else shown.unit_for(metric, values, currency=currency)


def total(metric: str, estimate: Estimate, currency: str = "") -> Number:
    """Return a total of a week."""
    one = unit(metric, [estimate.value], currency)
    return shown.number(estimate.value, estimate.lo, estimate.hi, unit=one, reason=estimate.reason)


def week_html(
    studies: Sequence[StudyWeek], week: str, *, reports: dict[str, str], weeks: int, newer: str, older: str
) -> str:
    """Return the page of a week.

    Parameters
    ----------
    studies
        The studies that have runs in it.
    week
        The ISO week.
    reports
        Link to each study's report, where there is one.
    weeks
        How many weeks before are looked at.
    newer, older
        Neighbouring weeks that have a page, ``""`` for none.
    """
    parts = [_study(s, reports.get(s.name, ""), at) for at, s in enumerate(studies)]
    template = _pages().get_template("week.html.j2")
    return template.render(
        week=week, days=days(week), studies=parts, answer=_answer(studies, weeks), newer=newer, older=older, weeks=weeks
    )


def _answer(studies: Sequence[StudyWeek], weeks: int) -> list[Markup]:
    """Return the first sentences: what the week used, and what got worse."""
    runs = sum(s.runs for s in studies)
    lines = []
    spent = [
        copyable(total(m, _sum([getattr(s, k) for s in studies])))
        for m, k in (("energy_j", "energy"), ("carbon_kg", "carbon"))
    ]
    costs = [copyable(total("cost", _sum([s.cost for s in studies if s.history.currency == c]), c))
             for c in sorted({s.history.currency for s in studies if s.cost.value is not None})]  # fmt: skip
    sums = Markup(", ").join([spent[0], *(x for x, k in ((spent[1], "carbon"),) if _any(studies, k)), *costs])
    lines.append(
        Markup("{} of {} used {}.").format(_count(runs, "run"), _count(len(studies), "study", "studies"), sums)
    )
    for s in studies:
        for row in s.change.regressions.join(
            s.shown().select("kind", "scope", "metric"), on=["kind", "scope", "metric"], how="semi"
        ).iter_rows(named=True):
            lines.append(Markup("<span class='finding error'>▲ {}</span>").format(sentence(s.name, row)))
    if len(lines) == 1:
        lines.append(Markup("Nothing got worse against the {} weeks before, as far as can be told.").format(weeks))
    return lines


def _any(studies: Sequence[StudyWeek], key: str) -> bool:
    return any(getattr(s, key).value is not None for s in studies)


def _sum(parts: Sequence[Estimate]) -> Estimate:
    """Return the sum of totals; studies that have none are told as left out."""
    known = [p for p in parts if p.value is not None]
    if not known:
        return Estimate.refused(parts[0].reason if parts else "no run")
    ends = [sum(v if (v := getattr(p, end)) is not None else p.value or 0.0 for p in known) for end in ("lo", "hi")]
    return Estimate(sum(p.value or 0.0 for p in known), ends[0], ends[1])


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def sentence(study: str, row: dict[str, Any]) -> str:
    """Return a change in words, for a page and for a terminal."""
    kind = f" ({row['kind']})" if row["kind"] else ""
    return f"{study}{kind}: {label(row['metric'])} at {row['scope']} {effect(row).inline} {effect(row).interval}, {row['reason']}"


def effect(row: dict[str, Any]) -> Number:
    """Return an effect in signed per cent, of shares in points."""
    made = shown.ratio(row["effect_ratio"], row["effect_lo"], row["effect_hi"], reason=row["reason"])
    if row["metric"] in weekly_change.SHARES and not made.refused:
        return Number(made.text, f"{made.plain} points", made.interval, "% points")
    return made


def _study(study: StudyWeek, report: str, at: int) -> dict[str, Any]:
    rows = study.shown()
    kinds = [
        {
            "name": kind or "all runs",
            "cards": [_card(study, r) for r in rows.filter(pl.col("kind") == kind).iter_rows(named=True)],
        }
        for kind in rows["kind"].unique(maintain_order=True)
    ]
    currency = study.history.currency
    totals = [
        (words, total(metric, estimate, currency))
        for words, metric, estimate in (
            ("energy", "energy_j", study.energy), ("emissions", "carbon_kg", study.carbon), ("cost", "cost", study.cost),
            ("waste, with idle time between runs", "energy_j", study.waste),
        )
    ]  # fmt: skip
    verdict = study.verdict
    return {
        "name": study.name, "anchor": f"study-{at + 1}", "report": report, "runs": _count(study.runs, "run"), "totals": totals,
        "verdict": verdict, "state": STATES[verdict], "word": WORDS[verdict], "kinds": kinds,
        "changes": _changes(study, at), "drift": _drift(study, at), "findings": study.findings.to_dicts(),
        "brief": _brief(study),
    }  # fmt: skip


def _brief(study: StudyWeek) -> str:
    counts = dict(study.shown().group_by("verdict").len().iter_rows())
    told = [
        f"{counts[v]} {w}"
        for v, w in (
            ("regression", "worse"),
            ("improved", "better"),
            ("indistinguishable", "unchanged"),
            ("refused", "cannot be said"),
        )
        if v in counts
    ]
    return f"{_count(study.runs, 'run')}; {', '.join(told) or 'no numbers'}"


def _card(study: StudyWeek, row: dict[str, Any]) -> Card:
    here = pl.col("kind").eq(row["kind"]) & pl.col("scope").eq(row["scope"]) & pl.col("metric").eq(row["metric"])
    weekly = {r["week"]: r for r in study.by_week.filter(here).iter_rows(named=True)}
    names = [*iso_weeks.before(study.week, max(_span(study), 1)), study.week]
    one = unit(row["metric"], [r["value"] for r in weekly.values()], study.history.currency)
    numbers = {w: shown.number(r["value"], r["lo"], r["hi"], unit=one) for w, r in weekly.items()}
    points = [
        sparkline.Point(w, weekly[w]["value"], weekly[w]["lo"], weekly[w]["hi"], f"{numbers[w].inline} {numbers[w].interval}".strip())
        if w in weekly else sparkline.Point(w)
        for w in names
    ]  # fmt: skip
    band = None if row["band_lo"] is None else (row["band_lo"], row["band_hi"])
    title = f"{label(row['metric'])} at {row['scope']} by week"
    return Card(
        label(row["metric"]), row["scope"], numbers.get(study.week, shown.number(None, reason=row["reason"])), effect(row),
        row["verdict"], WORDS[row["verdict"]], row["reason"],
        sparkline.draw(points, band=band, state=STATES[row["verdict"]], title=title),
    )  # fmt: skip


def _span(study: StudyWeek) -> int:
    """Return how many weeks before this one the pictures show."""
    first = study.by_week["week"].min()
    return 0 if first is None else (iso_weeks.monday(study.week) - iso_weeks.monday(str(first))).days // 7


def _changes(study: StudyWeek, at: int) -> Table:
    columns = [Column("kind of run"), Column("number"), Column("at"), Column("this week"), Column("before"), Column("change", "%"),
               Column("verdict"), Column("why")]  # fmt: skip
    rows = []
    for r in study.change.frame.iter_rows(named=True):
        one = unit(r["metric"], [r["now"], r["before"]], study.history.currency)
        named = f"{label(r['metric'])} [{one.name}]" if one.name else label(r["metric"])
        now, then = (shown.number(r[k], unit=one, reason="–") for k in ("now", "before"))
        change = shown.ratio(r["effect_ratio"], r["effect_lo"], r["effect_hi"], reason="–")
        rows.append((r["kind"] or "all runs", named, r["scope"], now, then, change, WORDS[r["verdict"]], r["reason"]))
    return Table(
        columns, rows, f"{study.name}: every number at every boundary, against the weeks before", f"changes-{at + 1}"
    )


def _drift(study: StudyWeek, at: int) -> Table | None:
    if study.drift.is_empty():
        return None
    columns = [Column("what"), Column("of"), Column("at"), Column("weeks"), Column("first", "W"), Column("last", "W"), Column("drift", "%"),
               Column("verdict"), Column("why")]  # fmt: skip
    rows = [
        (label(r["metric"]), r["kind"] or "all runs", r["scope"], shown.exact(r["weeks"]), shown.number(r["first"]), shown.number(r["last"]),
         shown.ratio(r["drift_ratio"], r["drift_lo"], r["drift_hi"], reason="–"),
         "cannot say" if r["verdict"] == "refused" else r["verdict"], r["reason"])
        for r in study.drift.iter_rows(named=True)
    ]  # fmt: skip
    return Table(
        columns, rows, f"{study.name}: idle and steady power over the weeks, by a straight line", f"drift-{at + 1}"
    )


def index_html(weeks: Sequence[dict[str, Any]]) -> str:
    """Return the index: the weeks, newest first, and every study week by week.

    Parameters
    ----------
    weeks
        What ``weekly.json`` of each week holds.
    """
    ordered = sorted(weeks, key=lambda w: str(w["week"]), reverse=True)
    names = sorted({s["study"] for w in ordered for s in w["studies"]})
    matrix = {n: {w["week"]: s["verdict"] for w in ordered for s in w["studies"] if s["study"] == n} for n in names}
    rows = [
        {"week": w["week"], "days": days(w["week"]), "runs": sum(s["runs"] for s in w["studies"]), "studies": len(w["studies"]),
         "energy": total("energy_j", _sum([_estimate(s["totals"]["energy"]) for s in w["studies"]])),
         "carbon": total("carbon_kg", _sum([_estimate(s["totals"]["carbon"]) for s in w["studies"]])),
         "regressions": w["regressions"]}
        for w in ordered
    ]  # fmt: skip
    columns = [w["week"] for w in reversed(ordered)]
    template = _pages().get_template("weeks.html.j2")
    return template.render(rows=rows, columns=columns, matrix=matrix, marks=MARKS, states=STATES, words=WORDS)


def _estimate(plain: dict[str, Any]) -> Estimate:
    return Estimate(plain["value"], plain["lo"], plain["hi"], plain["unit"], reason=plain["reason"])
