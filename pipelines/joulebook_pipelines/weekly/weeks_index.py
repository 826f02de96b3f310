"""The index of the site: the weeks, and every study week by week."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from joulebook.findings import Estimate
from joulebook_pipelines.weekly import pages, words


def html(weeks: Sequence[dict[str, Any]]) -> str:
    """Return the index.

    Parameters
    ----------
    weeks
        What ``weekly.json`` of each week holds.
    """
    ordered = sorted(weeks, key=lambda w: str(w["week"]), reverse=True)
    matrix: dict[str, dict[str, str]] = {}
    for week in ordered:
        for study in week["studies"]:
            matrix.setdefault(study["study"], {})[week["week"]] = study["verdict"]
    return pages.environment().get_template("weeks.html.j2").render(
        rows=[_row(w) for w in ordered], columns=[w["week"] for w in reversed(ordered)], matrix=dict(sorted(matrix.items())),
        marks=words.MARKS, states=words.STATES, words=words.WORDS,
    )  # fmt: skip


def _row(week: dict[str, Any]) -> dict[str, Any]:
    totals = {
        name: words.total(metric, words.add([_estimate(s["totals"][name]) for s in week["studies"]]))
        for name, metric in (("energy", "energy_j"), ("carbon", "carbon_kg"))
    }
    return {
        "week": week["week"], "days": words.days(week["week"]), "studies": len(week["studies"]),
        "runs": sum(s["runs"] for s in week["studies"]), "regressions": week["regressions"], **totals,
    }  # fmt: skip


def _estimate(plain: dict[str, Any]) -> Estimate:
    return Estimate(plain["value"], plain["lo"], plain["hi"], plain["unit"], reason=plain["reason"])
