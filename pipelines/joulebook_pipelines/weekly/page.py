"""The page of a week: what changed, then each study with its numbers against the weeks before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from markupsafe import Markup

from joulebook import iso_weeks
from joulebook.weekly_change import VERDICTS
from joulebook_pipelines import shown
from joulebook_pipelines.report.blocks import Column, Table
from joulebook_pipelines.shown import Number
from joulebook_pipelines.weekly import answers, pages, sparkline, words
from joulebook_pipelines.weekly.verdicts import StudyWeek

_number = lru_cache(maxsize=1 << 16)(shown.number)
"""The same week stands in the pictures of the eight weeks after it: its number is written once."""
_COUNTED = {"regression": "worse", "improved": "better", "indistinguishable": "unchanged", "refused": "cannot be said"}


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


def html(
    studies: Sequence[StudyWeek], week: str, *, reports: dict[str, str], weeks: int, newer: str, older: str
) -> str:
    """Return the page.

    Parameters
    ----------
    studies
        The studies that have runs in the week.
    week
        The ISO week.
    reports
        Link to each study's report, where there is one.
    weeks
        How many weeks before are looked at.
    newer, older
        Neighbouring weeks that have a page, ``""`` for none.
    """
    parts = [_study(s, reports.get(s.name, ""), at, weeks) for at, s in enumerate(studies)]
    return pages.environment().get_template("week.html.j2").render(
        week=week, days=words.days(week), studies=parts, answers=answers.brief(studies, weeks), worse=answers.worse(studies),
        newer=newer, older=older, weeks=weeks
    )  # fmt: skip


def _study(study: StudyWeek, report: str, at: int, weeks: int) -> dict[str, Any]:
    points = _points(study, weeks)
    kinds = [
        {"name": kind or words.ALL_RUNS, "cards": [_card(study, row, points) for row in rows]}
        for kind, rows in groupby(study.shown.iter_rows(named=True), key=lambda row: str(row["kind"]))
    ]
    totals = [
        (name, words.total(metric, estimate, study.history.currency))
        for name, metric, estimate in (
            ("energy", "energy_j", study.energy), ("emissions", "carbon_kg", study.carbon), ("cost", "cost", study.cost),
            ("waste, with idle time between runs", "energy_j", study.waste),
        )
    ]  # fmt: skip
    return {
        "name": study.name, "anchor": f"study-{at + 1}", "report": report, "runs": words.count(study.runs, "run"), "totals": totals,
        "rank": VERDICTS.index(study.verdict), "state": words.STATES[study.verdict], "word": words.WORDS[study.verdict],
        "kinds": kinds, "brief": _brief(study),
        "changes": _changes(study, at), "drift": _drift(study, at), "findings": study.findings.to_dicts(),
    }  # fmt: skip


def _brief(study: StudyWeek) -> str:
    found = study.shown["verdict"].to_list()
    told = [f"{found.count(v)} {word}" for v, word in _COUNTED.items() if v in found]
    return f"{words.count(study.runs, 'run')}; {', '.join(told) or 'no numbers'}"


_Key = tuple[str, str, str]


def _points(study: StudyWeek, weeks: int) -> dict[_Key, dict[str, dict[str, Any]]]:
    """Return the means by kind, scope and metric, and by week; every picture has the same weeks."""
    names = [*iso_weeks.before(study.week, weeks), study.week]
    found: dict[_Key, dict[str, dict[str, Any]]] = {}
    for row in study.by_week.iter_rows(named=True):
        found.setdefault((row["kind"], row["scope"], row["metric"]), {name: {} for name in names})[row["week"]] = row
    return found


def _card(study: StudyWeek, row: dict[str, Any], points: dict[_Key, dict[str, dict[str, Any]]]) -> Card:
    weekly = points.get((row["kind"], row["scope"], row["metric"]), {})
    one = words.unit(row["metric"], [r["value"] for r in weekly.values() if r], study.history.currency)
    drawn, now = [], shown.number(None, reason=row["reason"])
    for week, r in weekly.items():
        if not r:
            drawn.append(sparkline.Point(week))
            continue
        now = _number(r["value"], r["lo"], r["hi"], unit=one)
        drawn.append(sparkline.Point(week, r["value"], r["lo"], r["hi"], f"{now.inline} {now.interval}".strip()))
    band = None if row["band_lo"] is None else (row["band_lo"], row["band_hi"])
    picture = sparkline.draw(
        drawn,
        band=band,
        state=words.STATES[row["verdict"]],
        title=f"{words.label(row['metric'])} at {row['scope']} by week",
    )
    return Card(
        words.label(row["metric"]), row["scope"], now, words.effect(row), row["verdict"], words.WORDS[row["verdict"]],
        row["reason"], picture,
    )  # fmt: skip


def _changes(study: StudyWeek, at: int) -> Table:
    columns = [Column("kind of run"), Column("number"), Column("at"), Column("this week"), Column("before"), Column("change", "%"),
               Column("verdict"), Column("why")]  # fmt: skip
    rows: list[tuple[str | Number, ...]] = []
    for r in study.change.frame.iter_rows(named=True):
        one = words.unit(r["metric"], [r["now"], r["before"]], study.history.currency)
        named = f"{words.label(r['metric'])} [{one.name}]" if one.name else words.label(r["metric"])
        now, then = (shown.number(r[k], unit=one, reason="–") for k in ("now", "before"))
        change = shown.ratio(r["effect_ratio"], r["effect_lo"], r["effect_hi"], reason="–")
        rows.append(
            (r["kind"] or words.ALL_RUNS, named, r["scope"], now, then, change, words.WORDS[r["verdict"]], r["reason"])
        )
    return Table(
        columns, rows, f"{study.name}: every number at every boundary, against the weeks before", f"changes-{at + 1}"
    )


def _drift(study: StudyWeek, at: int) -> Table | None:
    if study.drift.is_empty():
        return None
    columns = [Column("what"), Column("of"), Column("at"), Column("weeks"), Column("first", "W"), Column("last", "W"), Column("drift", "%"),
               Column("verdict"), Column("why")]  # fmt: skip
    rows: list[tuple[str | Number, ...]] = []
    for r in study.drift.iter_rows(named=True):
        drift = shown.ratio(r["drift_ratio"], r["drift_lo"], r["drift_hi"], reason="–")
        verdict = words.WORDS.get(r["verdict"], r["verdict"])
        levels = (shown.exact(r["weeks"]), shown.number(r["first"]), shown.number(r["last"]), drift)
        rows.append((words.label(r["metric"]), r["kind"] or words.ALL_RUNS, r["scope"], *levels, verdict, r["reason"]))
    return Table(
        columns, rows, f"{study.name}: idle and steady power over the weeks, by a straight line", f"drift-{at + 1}"
    )
