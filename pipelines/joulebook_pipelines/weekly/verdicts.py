"""What a week of a study comes to: totals, changes against the weeks before, drift, and the findings that matter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from joulebook import boundaries, iso_weeks, weekly_change, weekly_drift
from joulebook.findings import Estimate
from joulebook.weekly_change import WeeklyChange
from joulebook_pipelines.weekly.history import GAP, METRICS, WASTED, History

TOP_FINDINGS = 5
"""Findings of a week that are told on its page; the study's report has all."""
_SEVERITY = {"error": 0, "warning": 1}
_TOTALS = {"energy_j": "energy", "carbon_kg": "carbon", "cost": "cost"} | dict.fromkeys((*WASTED, GAP), "waste")
"""Total of a week that a metric belongs to."""


@dataclass(frozen=True)
class StudyWeek:
    """One study in one week.

    Parameters
    ----------
    name, week
        Which.
    runs
        Runs that began in the week.
    change
        The week against the weeks before.
    drift
        ``idle_power_w`` and ``stable_power_w`` over the weeks.
    by_week
        Means of this week and those before, for the pictures.
    energy, carbon, cost, waste
        Totals of the week; refused where runs overlap.
    findings
        ``code, severity, subject, message, times``: the worst, each code once.
    history
        Where it comes from.
    """

    name: str
    week: str
    runs: int
    change: WeeklyChange
    drift: pl.DataFrame
    by_week: pl.DataFrame
    energy: Estimate
    carbon: Estimate
    cost: Estimate
    waste: Estimate
    findings: pl.DataFrame
    history: History

    @property
    def verdict(self) -> str:
        """The verdict on the study as a whole."""
        return weekly_change.worst(self.change.frame["verdict"].to_list())

    @cached_property
    def shown(self) -> pl.DataFrame:
        """One row a kind and metric, at the widest scope that this week has: what the page shows first."""
        width = pl.col("scope").replace_strict(boundaries.WIDTH, default=-9, return_dtype=pl.Int64)
        order = pl.col("metric").replace_strict(
            {m: i for i, m in enumerate(METRICS)}, default=99, return_dtype=pl.Int64
        )
        known = self.change.frame.filter(pl.col("runs_now") > 0)
        widest = known.sort(width, maintain_order=True).unique(["kind", "metric"], keep="last", maintain_order=True)
        return widest.sort("kind", order)


def judge(history: History, week: str, *, weeks: int, threshold_ratio: float) -> StudyWeek | None:
    """Return a study's week, ``None`` where no run began in it.

    Parameters
    ----------
    history
        The study over time.
    week
        The ISO week.
    weeks
        How many weeks before it are looked at.
    threshold_ratio
        Least effect that is called a regression.
    """
    now = history.runs.filter(pl.col("week") == week)
    if now.is_empty():
        return None
    names = [*iso_weeks.before(week, weeks), week]
    recent = pl.col("week").is_in(names)
    change = weekly_change.compare(
        history.judged.filter(recent), week=week, weeks=weeks, threshold_ratio=threshold_ratio
    )
    by_week = history.by_week.filter(recent)
    levels = pl.concat(
        [by_week.filter(pl.col("metric") == "stable_power_w").select(history.idle.columns), history.idle]
    )
    here = history.numbers.filter(pl.col("week") == week)
    return StudyWeek(
        history.name, week, now.height, change, weekly_drift.of_levels(levels, week=week, weeks=weeks).frame, by_week,
        **_totals(here, now, history.currency), findings=_top(history, now), history=history,
    )  # fmt: skip


def _totals(numbers: pl.DataFrame, runs: pl.DataFrame, currency: str) -> dict[str, Estimate]:
    """Return sums over runs, each at its widest scope; errors that all runs may share add up in full."""
    units = {"energy": "J", "carbon": "kg", "cost": currency, "waste": "J"}
    ordered = runs.sort("host", "start_utc")
    if (ordered["start_utc"] < ordered.select(pl.col("end_utc").cum_max().shift().over("host"))["end_utc"]).any():
        why = "runs overlap on a host: their energy would be counted twice"
        return {name: Estimate.refused(why, unit=unit) for name, unit in units.items()}
    # cards, processors and memory lie beside each other: where nothing wider is known, their energies add up
    widths = boundaries.WIDTH | dict.fromkeys(boundaries.BESIDE, 0)
    width = pl.col("scope").replace_strict(widths, default=-9, return_dtype=pl.Int64)
    total = pl.col("metric").replace_strict(_TOTALS, default=None, return_dtype=pl.String)
    known = numbers.with_columns(total=total).drop_nulls(["total", "value"])
    each = known.filter(width == width.max().over("run_id", "store", "metric"))
    summed = each.group_by("total", maintain_order=True).agg(
        pl.col("value").sum(), lo=pl.coalesce("lo", "value").sum(), hi=pl.coalesce("hi", "value").sum(),
        runs=pl.struct("run_id", "store").n_unique(),
    )  # fmt: skip
    found = {name: Estimate.refused("not known of any run", unit=unit) for name, unit in units.items()}
    for row in summed.iter_rows(named=True):
        left = runs.height - row["runs"]
        doubt = f"{left} of {runs.height} runs without a value are left out" if left else ""
        found[row["total"]] = Estimate(
            row["value"], row["lo"], row["hi"], units[row["total"]], row["runs"], None, "sum over runs", doubt
        )
    return found


def _top(history: History, now: pl.DataFrame) -> pl.DataFrame:
    """Return the worst findings of the week's runs, and of their stores as a whole."""
    mine = history.findings.join(now.select("run_id", "store"), on=["run_id", "store"], how="semi")
    whole = history.findings.filter((pl.col("run_id") == "") & pl.col("store").is_in(now["store"].unique().to_list()))
    rank = pl.col("severity").replace_strict(_SEVERITY, default=9, return_dtype=pl.Int64)
    worst = pl.concat([mine, whole]).filter(rank < 9).sort(rank, "code", "subject", "message")
    counted = worst.group_by("code", "severity", maintain_order=True).agg(
        pl.col("subject", "message").first(), times=pl.len()
    )
    return counted.sort(rank, "times", "code", descending=[False, True, False]).head(TOP_FINDINGS)


def plain(estimate: Estimate) -> dict[str, Any]:
    """Return a total as plain values."""
    return {
        "value": estimate.value,
        "lo": estimate.lo,
        "hi": estimate.hi,
        "unit": estimate.unit,
        "reason": estimate.reason,
    }
