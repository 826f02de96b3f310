"""Slow drift of a level over weeks: idle and steady power that creep while nothing was changed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from joulebook import distributions, iso_weeks
from joulebook.findings import Finding, Severity

LEAST_WEEKS = 4
"""Weeks that leave two degrees of freedom beside a straight line."""
DRIFT_RATIO = 0.01
"""Total drift that matters; a control workload that moves by 1 % says that the machine has changed (Green Metrics Tool)."""
_GROUP = ("kind", "scope", "metric")
_SCHEMA = {
    "kind": pl.String, "scope": pl.String, "metric": pl.String, "weeks": pl.Int64, "first": pl.Float64, "last": pl.Float64,
    "drift_ratio": pl.Float64, "drift_lo": pl.Float64, "drift_hi": pl.Float64, "verdict": pl.String, "reason": pl.String,
}  # fmt: skip


@dataclass(frozen=True)
class WeeklyDrift:
    """Levels over weeks.

    Parameters
    ----------
    frame
        One row a kind, scope and metric: ``weeks`` with a level, the ``first`` and ``last`` level, ``drift_ratio`` over
        the whole time with ``drift_lo, drift_hi``, ``verdict`` (``drifts``, ``steady`` or ``refused``) and ``reason``.
    findings
        One a drift.
    """

    frame: pl.DataFrame
    findings: tuple[Finding, ...] = field(default=())


def of_levels(levels: pl.DataFrame, *, week: str, weeks: int, threshold_ratio: float = DRIFT_RATIO) -> WeeklyDrift:
    """Return how far a level has drifted, by a straight line through the weeks.

    Parameters
    ----------
    levels
        ``kind, scope, metric, week, value``: at most one level a week, as
        :func:`joulebook.weekly_change.by_week` returns them.
    week
        The last week that is looked at.
    weeks
        How many weeks before it.
    threshold_ratio
        Least drift over the whole time that is told.

    Returns
    -------
    WeeklyDrift
        A verdict for each level that the last week has.

    Examples
    --------
    >>> rows = pl.DataFrame({"kind": "", "scope": "node", "metric": "idle_power_w",
    ...     "week": [f"2026-W4{i}" for i in range(8)], "value": [100.0 + i for i in range(8)]})
    >>> of_levels(rows, week="2026-W47", weeks=8).frame["verdict"].item()
    'drifts'
    """
    names = [*iso_weeks.before(week, weeks), week]
    at = pl.col("week").replace_strict(
        {w: float(i) for i, w in enumerate(names)}, default=None, return_dtype=pl.Float64
    )
    kept = levels.filter(pl.col("value") > 0).with_columns(x=at, y=pl.col("value").log()).drop_nulls("x").sort("x")
    n, spread = pl.len(), pl.col("x").var()
    slope = pl.cov("x", "y") / spread
    left = (pl.col("y").var() - slope**2 * spread).clip(lower_bound=0.0) * (n - 1) / (n - 2)
    rows = kept.group_by(_GROUP, maintain_order=True).agg(
        weeks=n.cast(pl.Int64), first=pl.col("value").first(), last=pl.col("value").last(),
        length=pl.col("x").max() - pl.col("x").min(), slope=slope, se=(left / (spread * (n - 1))).sqrt(),
        now=(pl.col("week") == week).any(),
    ).filter("now")  # fmt: skip
    frame = _judged(rows, threshold_ratio).select(pl.col(c).cast(t) for c, t in _SCHEMA.items()).sort(*_GROUP)
    return WeeklyDrift(frame, _findings(frame))


def _judged(rows: pl.DataFrame, threshold_ratio: float) -> pl.DataFrame:
    dof = np.maximum(rows["weeks"].to_numpy() - 2.0, 1.0)
    quantile = pl.Series("t", distributions.student_quantile(0.975, dof), dtype=pl.Float64)
    enough = pl.col("weeks") >= LEAST_WEEKS
    total, half = pl.col("slope") * pl.col("length"), quantile * pl.col("se") * pl.col("length")
    rows = rows.with_columns(
        drift_ratio=pl.when(enough).then(total.exp() - 1), drift_lo=pl.when(enough).then((total - half).exp() - 1),
        drift_hi=pl.when(enough).then((total + half).exp() - 1),
    )  # fmt: skip
    sure = (pl.col("drift_lo") > 0) | (pl.col("drift_hi") < 0)
    drifts = sure & (pl.col("drift_ratio").abs() >= threshold_ratio)
    verdict = pl.when(~enough).then(pl.lit("refused")).when(drifts).then(pl.lit("drifts")).otherwise(pl.lit("steady"))
    reason = (
        pl.when(~enough).then(pl.format(f"weeks with a level: {{}}, needs {LEAST_WEEKS}", "weeks"))
        .when(drifts).then(pl.format("a straight line through {} weeks", "weeks"))
        .when(sure).then(pl.lit(f"a drift, but below {100 * threshold_ratio:g} %"))
        .otherwise(pl.lit("no trend beyond the spread of the weeks"))
    )  # fmt: skip
    return rows.with_columns(verdict=verdict, reason=reason)


def _findings(frame: pl.DataFrame) -> tuple[Finding, ...]:
    found = []
    for row in frame.filter(pl.col("verdict") == "drifts").iter_rows(named=True):
        subject = " ".join(
            x for x in (row["metric"], f"at {row['scope']}", f"of {row['kind']}" if row["kind"] else "") if x
        )
        message = (
            f"{100 * row['drift_ratio']:+.1f} % [{100 * row['drift_lo']:+.1f}, {100 * row['drift_hi']:+.1f}] over "
            f"{row['weeks']} weeks. A level that creeps moves every number above it: look at fans, inlet and firmware."
        )
        evidence: dict[str, object] = {k: row[k] for k in ("drift_ratio", "drift_lo", "drift_hi")}
        found.append(Finding("weekly-drift", Severity.WARNING, subject, message, evidence))
    return tuple(found)
