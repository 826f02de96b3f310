"""How weeks, metrics and changes are said, on pages and on a terminal."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import polars as pl

from joulebook import iso_weeks, weekly_means
from joulebook.findings import Estimate
from joulebook_pipelines import metrics, shown
from joulebook_pipelines.metrics import Unit
from joulebook_pipelines.shown import Number
from joulebook_pipelines.weekly.history import METRICS
from joulebook_pipelines.weekly.verdicts import StudyWeek

STATES = {"regression": "bad", "improved": "good", "indistinguishable": "none", "refused": "none"}
WORDS = {"regression": "regression", "improved": "improved", "indistinguishable": "no change", "refused": "cannot say"}
MARKS = {"regression": "▲", "improved": "▼", "indistinguishable": "·", "refused": "–"}
ALL_RUNS = "all runs"
"""Name of the kind when nothing tells kinds apart."""
_LABELS = {
    "waste_ratio": "wasted share of the energy",
    "energy_j": "energy per run",
    "carbon_kg": "emissions per run",
    "cost": "cost per run",
}
_PERCENT = ("waste_ratio", "cv_ratio")


def days(week: str) -> str:
    """Return the days of an ISO week in words.

    Examples
    --------
    >>> days("2026-W47"), days("2026-W53")
    ('16 to 22 November 2026', '28 December 2026 to 3 January 2027')
    """
    first = iso_weeks.monday(week)
    last = first + dt.timedelta(days=6)
    start = f"{first.day}" if first.month == last.month else f"{first.day} {first:%B}"
    year = "" if first.year == last.year else f" {first.year}"
    return f"{start}{year} to {last.day} {last:%B} {last.year}"


def count(number: int, one: str, many: str = "") -> str:
    """Return a number of things.

    Examples
    --------
    >>> count(1, "run"), count(2, "study", "studies")
    ('1 run', '2 studies')
    """
    return f"{number} {one if number == 1 else many or one + 's'}"


def label(metric: str) -> str:
    """Return the words for a metric."""
    return _LABELS.get(metric) or metrics.of(metric).label


def unit(metric: str, values: Sequence[float | None], currency: str = "") -> Unit:
    """Return the unit in which a metric is best read."""
    return Unit("%", 0.01) if metric in _PERCENT else metrics.unit_for(metric, values, currency=currency)


def total(metric: str, estimate: Estimate, currency: str = "") -> Number:
    """Return a total of a week."""
    one = unit(metric, [estimate.value], currency)
    return shown.number(estimate.value, estimate.lo, estimate.hi, unit=one, reason=estimate.reason)


def add(parts: Sequence[Estimate]) -> Estimate:
    """Return the sum of totals, as far as they are known."""
    known = [p for p in parts if p.value is not None]
    if not known:
        return Estimate.refused(parts[0].reason if parts else "no run")
    value, least, most = (
        sum(v if (v := getattr(p, end)) is not None else p.value or 0.0 for p in known) for end in ("value", "lo", "hi")
    )
    return Estimate(value, least, most)


def effect(row: dict[str, Any]) -> Number:
    """Return an effect in signed per cent, of shares in points."""
    made = shown.ratio(row["effect_ratio"], row["effect_lo"], row["effect_hi"], reason=row["reason"])
    if row["metric"] in weekly_means.SHARES and not made.refused:
        return Number(made.text, f"{made.plain} points", made.interval, "% points", half=made.half)
    return made


def _said(change: Number) -> str:
    return change.sentence if change.half else f"{change.inline} {change.interval}".strip()


def regressions(study: StudyWeek) -> list[str]:
    """Return one sentence a kind of run that got worse: the leading metric with its interval, and what went with it."""
    if study.change.regressions.is_empty():
        return []
    order = pl.col("metric").replace_strict({m: i for i, m in enumerate(METRICS)}, default=99, return_dtype=pl.Int64)
    shown_first = study.shown.select("kind", "scope", "metric", shown=pl.lit(True))
    worse = study.change.regressions.join(shown_first, on=["kind", "scope", "metric"], how="left")
    worse = worse.sort("kind", pl.col("shown").fill_null(False), order, descending=[False, True, False])
    lines = []
    for (kind,), rows in worse.group_by("kind", maintain_order=True):
        first = rows.row(0, named=True)
        others = [label(m) for m in rows["metric"].unique(maintain_order=True) if m != first["metric"]]
        named = f"{study.name} ({kind})" if kind else study.name
        likewise = f"; likewise {', '.join(others)}" if others else ""
        change, where = effect(first), f"{label(first['metric'])} at {first['scope']}"
        lines.append(f"{named}: {where} {_said(change)}, {first['reason']}{likewise}")
    return lines


def unsaid(studies: Sequence[StudyWeek]) -> bool:
    """Tell whether no number of the week could be held against the weeks before."""
    verdicts = {v for s in studies for v in s.shown["verdict"]}
    return verdicts == {"refused"}


def outcome(studies: Sequence[StudyWeek]) -> str:
    """Return in words what a week without a regression came to."""
    if not studies:
        return "no run began in this week"
    if unsaid(studies):
        return "cannot be said: no number could be held against the weeks before"
    return "nothing got worse, as far as can be told"


def drifts(study: StudyWeek) -> list[str]:
    """Return one sentence a level that creeps."""
    lines = []
    for row in study.drift.filter(pl.col("verdict") == "drifts").iter_rows(named=True):
        change = shown.ratio(row["drift_ratio"], row["drift_lo"], row["drift_hi"])
        about = f"{study.name} ({row['kind']})" if row["kind"] else study.name
        lines.append(
            f"{about}: {label(row['metric'])} at {row['scope']} drifts: {_said(change)} over {row['weeks']} weeks"
        )
    return lines
