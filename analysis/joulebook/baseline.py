"""What a run draws in steady state, what the machine draws at rest, and which runs may be averaged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from joulebook import conditions, distributions, quiet, segments, stats, totals, trust
from joulebook.baseline_windows import MIN_READINGS, window_mean
from joulebook.findings import Estimate, Finding, Severity
from joulebook.wording import counted

CV_LIMIT: Final = 0.25
"""Coefficient of variation above which a baseline is refused."""

LEVEL_TOLERANCE_RATIO: Final = 0.03
"""Stable segments, or quiet stretches, whose levels differ by more do not belong to one baseline."""


@dataclass(frozen=True)
class Baseline:
    """A mean power and the windows behind it.

    Parameters
    ----------
    estimate
        Mean power [W], or why there is none.
    frame
        Windows or runs behind it: ``start_utc``, ``end_utc``, ``n``, ``mean_w`` [W], ``used``, ``reason`` (for
        combined runs the given rows).
    findings
        Doubts, and what differs.
    """

    estimate: Estimate
    frame: pl.DataFrame
    findings: tuple[Finding, ...] = field(default=())


def _one_level(windows: pl.DataFrame, level_w: float) -> pl.DataFrame:
    """Mark the windows whose mean is near the level."""
    near = (pl.col("mean_w") - level_w).abs() <= LEVEL_TOLERANCE_RATIO * abs(level_w)
    reason = pl.when(near).then(pl.lit("")).otherwise(pl.lit(f"another level than {level_w:.6g} W"))
    return windows.select("start_utc", "end_utc", "n", "mean_w", used=near, reason=reason)


def mean(
    power: pl.DataFrame,
    *,
    idle_w: float | None = None,
    cv_limit: float = CV_LIMIT,
    cut: segments.Segments | None = None,
) -> Baseline:
    """Return the mean power of a run's stable segments, all devices together.

    Parameters
    ----------
    power
        Power frame of one run: ``device``, ``ts_utc``, ``power_w`` [W].
    idle_w
        Idle power of the whole, where it is known [W].
    cv_limit
        Coefficient of variation above which the baseline is refused.
    cut
        The segments of the sum of all devices, where they are known already; the two limits are then in them.

    Returns
    -------
    Baseline
        ``frame`` has one row a stable segment; those of another level than the longest are not used.

    Raises
    ------
    ValueError
        Where ``power`` lacks a column.

    Examples
    --------
    >>> import numpy as np
    >>> from datetime import UTC, datetime, timedelta
    >>> stamps = [datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=s) for s in range(900)]
    >>> watts = np.repeat([60.0, 500.0], [300, 600]) + np.random.default_rng(2).normal(0.0, 3.0, 900)
    >>> found = mean(pl.DataFrame({"device": "gpu:0", "ts_utc": stamps, "power_w": watts}))
    >>> found.estimate.lo < 500.0 < found.estimate.hi
    True
    """
    series = totals.series(power).with_columns(device=pl.lit(""))
    found = cut or segments.find(series, idle_w=idle_w, cv_limit=cv_limit)
    stable = found.of("stable").filter(pl.col("n") >= MIN_READINGS)
    if not stable.height:
        most = max(found.of("stable")["n"].to_list(), default=0)
        why = f"the longest has {most}" if most else segments.unsteady(found.frame)
        reason = f"no stable segment of {MIN_READINGS} readings: {why}"
        estimate = Estimate.refused(reason, unit="W", n=series.height)
        empty = _one_level(stable, 0.0)
        if any(f.code == "no-stable-segment" for f in found.findings):
            return Baseline(estimate, empty, found.findings)
        text = f"No baseline: the stable segments have fewer than {MIN_READINGS} readings. Let the load run longer, or log more often."
        return Baseline(estimate, empty, (*found.findings, Finding("no-baseline", Severity.WARNING, "run", text)))
    longest = stable.sort("n", descending=True)["mean_w"].item(0)
    windows = _one_level(stable, float(longest))
    findings = list(found.findings)
    if not windows["used"].all():
        other = ", ".join(f"{x:.6g} W" for x in windows.filter(~pl.col("used"))["mean_w"])
        text = (
            f"Stable segments lie at several levels; the baseline is the longest, {longest:.6g} W. Left out: {other}."
        )
        findings.append(Finding("several-levels", Severity.WARNING, "run", text))
    usable = series.filter(pl.Series(trust.judge(series["power_w"].to_numpy(), subject="run").usable))
    return Baseline(window_mean(usable, windows, found.of("stall")), windows, tuple(findings))


def idle(power: pl.DataFrame, *, runs: pl.DataFrame | None = None, use: pl.DataFrame | None = None) -> Baseline:
    """Return the power of the machine at rest, all devices together.

    Parameters
    ----------
    power
        Power frame of the whole log: ``device``, ``ts_utc``, ``power_w`` [W], perhaps ``utilization_ratio``.
    runs
        ``start_utc``, ``end_utc`` of the runs; without it work is told from rest by power alone.
    use
        ``device``, ``ts_utc``, ``utilization_ratio`` of the boards behind it. Default: that of the power frame.

    Returns
    -------
    Baseline
        ``frame`` has one row a stretch outside of runs. Refused where none is quiet: the log begins under load, say.

    Raises
    ------
    ValueError
        Where a column is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from datetime import UTC, datetime, timedelta
    >>> stamps = [datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=s) for s in range(1500)]
    >>> watts = np.repeat([60.0, 500.0], [700, 800]) + np.random.default_rng(2).normal(0.0, 1.0, 1500)
    >>> found = idle(pl.DataFrame({"device": "gpu:0", "ts_utc": stamps, "power_w": watts}))
    >>> found.estimate.lo < 60.0 < found.estimate.hi
    True
    """
    series = totals.series(power)
    if series.height < quiet.MIN_READINGS:
        return _no_idle(f"only {counted(series.height, 'reading')}", quiet.EMPTY, series.height)
    rows = quiet.stretches(series, runs=runs, use=use)
    if not rows.height:
        return _no_idle("the log holds no quiet time outside of runs", rows, series.height)
    if not rows["used"].any():
        why = "; ".join(dict.fromkeys(rows["reason"].to_list()))
        return _no_idle(f"no stretch outside of runs is quiet ({why})", rows, series.height)
    longest = rows.filter("used").select(((pl.col("end_utc") - pl.col("start_utc")).dt.total_seconds()).max()).item()
    findings = []
    if longest < quiet.LONG_QUIET_S - 2.0 * quiet.GUARD_S:
        text = f"The longest quiet stretch is {longest} s; ten minutes are needed to be sure of thermal rest."
        findings.append(Finding("short-idle", Severity.NOTE, "idle", text, {"quiet_s": longest}))
    usable = series.filter(pl.Series(trust.judge(series["power_w"].to_numpy(), subject="idle").usable))
    rest, others = _with_others(_with_settling(window_mean(usable, rows), rows), rows)
    return Baseline(rest, rows, (*findings, *others))


def _with_others(rest: Estimate, rows: pl.DataFrame) -> tuple[Estimate, tuple[Finding, ...]]:
    """Let the interval reach to what the machine drew at other times while its boards rested: it may have done so during work."""
    other = rows.filter(pl.col("reason") == quiet.ELSEWHERE)["mean_w"].max()
    if rest.value is None or rest.lo is None or rest.hi is None or not isinstance(other, float) or other <= rest.hi:
        return rest, ()
    text = (
        f"While the boards rested the machine drew {rest.value:.4g} W at some times and {other:.4g} W at others: something else "
        "drew power. Whether it did during runs is not known, so the idle power, and what runs drew above it, reach from one to "
        "the other."
    )
    finding = Finding("idle-levels", Severity.WARNING, "idle", text, {"idle_w": rest.value, "other_w": other})
    reason = f"{rest.reason}; " * bool(rest.reason) + f"something else drew up to {other - rest.value:.4g} W at times"
    return replace(rest, hi=other, reason=reason), (finding,)


def _with_settling(rest: Estimate, rows: pl.DataFrame) -> Estimate:
    """Let the interval reach half the way to quiet power soon after work: during work it lies somewhere between."""
    soon = rows.filter(pl.col("reason") == quiet.SETTLING)["mean_w"]
    if rest.value is None or rest.half_width is None or soon.is_empty():
        return rest
    other = max(soon, key=lambda mean_w: abs(mean_w - rest.value))
    half = max(rest.half_width, abs(other - rest.value) / 2.0)
    reason = f"{rest.reason}; " * bool(rest.reason) + f"soon after work the quiet machine drew {other:.6g} W"
    return replace(rest, lo=rest.value - half, hi=rest.value + half, reason=reason)


def _no_idle(reason: str, frame: pl.DataFrame, n: int) -> Baseline:
    estimate = Estimate.refused(reason, unit="W", n=n, method="mean of quiet stretches")
    text = f"No idle baseline: {reason}. Log ten quiet minutes before a run, or give the idle power."
    return Baseline(estimate, frame, (Finding("no-idle-baseline", Severity.WARNING, "idle", text),))


def combine(runs: pl.DataFrame, *, equal: Sequence[str] = conditions.MUST_BE_EQUAL) -> Baseline:
    """Combine the baselines of repeated runs; the interval comes from the spread between runs.

    Parameters
    ----------
    runs
        One row a run: ``run_id``, ``mean_w`` [W], and conditions that must be equal.
    equal
        Columns that must hold one value.

    Returns
    -------
    Baseline
        Refused where conditions differ; without an interval below three runs.

    Raises
    ------
    ValueError
        Where ``run_id`` or ``mean_w`` is missing, or there are no runs.

    Examples
    --------
    >>> combine(pl.DataFrame({"run_id": ["a", "b", "c"], "mean_w": [500.0, 505.0, 495.0]})).estimate.value
    500.0
    """
    missing = [name for name in ("run_id", "mean_w") if name not in runs.columns]
    if missing or not runs.height:
        raise ValueError(
            f"runs: {', '.join(missing) or 'rows'} missing; one row a run with run_id and mean_w is needed"
        )
    findings = conditions.differences(runs, equal=equal)
    if findings:
        reason = f"runs differ in {', '.join(f.subject for f in findings)}"
        return Baseline(Estimate.refused(reason, unit="W", n=runs.height, method="mean of runs"), runs, findings)
    watts = stats.finite(runs["mean_w"].to_numpy())
    n = int(watts.size)
    if n == 0:
        return Baseline(Estimate.refused("no run has a baseline", unit="W", n=0, method="mean of runs"), runs)
    value = float(watts.mean())
    if n < 3:
        reason = f"{counted(n, 'run')}: the spread between runs is unknown, at least 3 are needed"
        return Baseline(Estimate(value, unit="W", n=n, method="mean of runs", reason=reason), runs)
    half = float(distributions.student_quantile(0.975, n - 1)) * float(watts.std(ddof=1)) / math.sqrt(n)
    return Baseline(Estimate(value, value - half, value + half, "W", n, float(n), "mean of runs"), runs)
