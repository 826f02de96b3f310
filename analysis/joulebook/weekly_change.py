"""One week's runs against those of the weeks before: what got worse, what got better, and what cannot be said.

A run is the unit, and a week is a group of runs that share their weather: where at least three earlier weeks are known,
their spread from week to week judges this one; with fewer, the spread from run to run must do. Only runs of the same
kind and scope are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from joulebook import distributions, iso_weeks
from joulebook.findings import Finding, Severity
from joulebook.weekly_means import (
    GROUP,
    HIGHER_IS_BETTER,
    OF_THE_WHOLE_RUN,
    SHARES,
    back,
    checked,
    comparable,
    means_of,
    t_quantile,
)  # fmt: skip

WEEKS_BEFORE = 8
"""Weeks that a week is held against: two months, short enough to forget last season."""
THRESHOLD_RATIO = 0.02
"""Least effect that matters; runs of one machine repeat within 1 to 2 % (Green Metrics Tool, measuring advice)."""
LEAST_RUNS = 3
"""Runs a side, where too few earlier weeks are known."""
LEAST_WEEKS = 3
"""Earlier weeks whose means have a spread of their own."""
LEVEL = 0.05
"""Chance of a false alarm, corrected for the number of comparisons."""
SAME_WORK_RATIO = 0.01
"""Runs whose tokens differ by more did different work."""


FIRST = "no earlier run of this kind"
"""Reason of the refusal where the weeks before have nothing to hold a week against."""
VERDICTS = ("regression", "improved", "indistinguishable", "refused")
_SCHEMA = {
    "kind": pl.String, "scope": pl.String, "metric": pl.String, "runs_now": pl.Int64, "runs_before": pl.Int64,
    "weeks_before": pl.Int64, "now": pl.Float64, "before": pl.Float64, "band_lo": pl.Float64, "band_hi": pl.Float64,
    "effect_ratio": pl.Float64, "effect_lo": pl.Float64, "effect_hi": pl.Float64, "p_value": pl.Float64,
    "verdict": pl.String, "reason": pl.String,
}  # fmt: skip


@dataclass(frozen=True)
class WeeklyChange:
    """A week against the weeks before.

    Parameters
    ----------
    week
        The week, e.g. ``2026-W47``.
    frame
        One row a kind of run, scope and metric: ``runs_now, runs_before, weeks_before``, means ``now`` and ``before``,
        ``band_lo, band_hi`` (where 95 of 100 such weeks would lie if nothing had changed), ``effect_ratio`` with
        ``effect_lo, effect_hi`` (now / before − 1; of shares the difference), ``p_value`` (corrected for the number of
        rows), ``verdict`` (one of :data:`VERDICTS`) and ``reason``.
    findings
        One a regression.
    """

    week: str
    frame: pl.DataFrame
    findings: tuple[Finding, ...] = field(default=())

    @property
    def regressions(self) -> pl.DataFrame:
        """The rows that got worse, worst first."""
        return self.frame.filter(pl.col("verdict") == "regression").sort(pl.col("effect_ratio").abs(), descending=True)


def compare(
    runs: pl.DataFrame, *, week: str, weeks: int = WEEKS_BEFORE, threshold_ratio: float = THRESHOLD_RATIO
) -> WeeklyChange:
    """Return how a week's runs differ from those of the weeks before.

    Parameters
    ----------
    runs
        One row a run, scope and metric: ``run_id``, ``week`` (as :func:`joulebook.iso_weeks.of_instant` writes it), ``kind`` (what must be
        equal for runs to be compared, as text), ``scope``, ``metric``, ``value`` (null where it was refused);
        optionally ``tokens``, the work that the run did, and ``declared``, whether its labels say what kind of run it is:
        without tokens, runs that are labelled alike are taken to do the same work, others are not.
    week
        The week to judge.
    weeks
        How many weeks before it are looked at.
    threshold_ratio
        Least effect that is called a regression or an improvement.

    Returns
    -------
    WeeklyChange
        A verdict for every kind, scope and metric that this week has.

    Raises
    ------
    ValueError
        A column is missing, or ``week`` is no ISO week.

    References
    ----------
    Benjamini and Hochberg, J. R. Stat. Soc. B 57, 289 (1995), doi:10.1111/j.2517-6161.1995.tb02031.x, for the
    correction; Welch, Biometrika 34, 28 (1947), doi:10.1093/biomet/34.1-2.28, where earlier weeks are too few.

    Examples
    --------
    >>> rows = pl.DataFrame({"run_id": list("abcdef"), "week": ["2026-W46"] * 3 + ["2026-W47"] * 3, "kind": "",
    ...     "scope": "node", "metric": "energy_per_token_j", "value": [1.0, 1.01, 0.99, 1.1, 1.11, 1.09]})
    >>> compare(rows, week="2026-W47").frame["verdict"].item()
    'regression'
    """
    kept = checked(runs).filter(pl.col("week").is_in([*iso_weeks.before(week, weeks), week]))
    is_now = pl.col("week") == week
    asked = kept.filter(is_now).unique(GROUP, maintain_order=True).select(GROUP)
    measured = comparable(kept).join(asked, on=GROUP, how="semi")
    sides = _sides(asked, measured, is_now).join(_work(kept, is_now), on=["kind"], how="left")
    judged = _judged(_compared(sides.with_columns(refusal=_refusal())), threshold_ratio)
    frame = judged.select(pl.col(c).cast(t) for c, t in _SCHEMA.items()).sort(*GROUP)
    return WeeklyChange(week, frame, _findings(frame))


def _sides(asked: pl.DataFrame, measured: pl.DataFrame, is_now: pl.Expr) -> pl.DataFrame:
    """Return per group both sides: number, mean and variance of runs, and of earlier weeks' means."""
    now = means_of(measured.filter(is_now)).rename({"n": "n1", "mean": "m1", "sd": "s1"})
    pooled = means_of(measured.filter(~is_now)).rename({"n": "n0", "mean": "m0", "sd": "s0"})
    weekly = means_of(measured.filter(~is_now), "week")
    between = weekly.group_by(GROUP, maintain_order=True).agg(
        k=pl.len().cast(pl.Int64), mw=pl.col("mean").mean(), sw=pl.col("mean").std(), per_run=(1 / pl.col("n")).mean()
    )
    within = means_of(measured, "week").filter(pl.col("n") > 1)
    squares = (pl.col("sd") ** 2 * (pl.col("n") - 1)).sum()
    spread = within.group_by(GROUP, maintain_order=True).agg(var_within=squares / (pl.col("n") - 1).sum())
    sides = asked
    for part in (now, pooled, between, spread):
        sides = sides.join(part, on=GROUP, how="left")
    return sides.with_columns(pl.col("n1", "n0", "k").fill_null(0), pl.col("var_within").fill_null(0.0))


def _work(kept: pl.DataFrame, is_now: pl.Expr) -> pl.DataFrame:
    """Return per kind whether the runs did the same work: true, false, or null where it is not known."""
    runs = kept.unique(["run_id", "week", "kind"], maintain_order=True)
    tokens = pl.col("tokens")
    same = (tokens.max() - tokens.min()) <= SAME_WORK_RATIO * tokens.max()
    judged = pl.when(tokens.null_count() == 0).then(same).when(pl.col("declared").all()).then(pl.lit(True))
    return runs.group_by("kind", maintain_order=True).agg(
        same_work=judged, some_now=is_now.any(), some_before=(~is_now).any()
    )


def _refusal() -> pl.Expr:
    """Return why a row cannot be judged, null where it can."""
    whole = pl.col("metric").is_in(OF_THE_WHOLE_RUN)
    few = pl.format(
        f"{{}} runs now and {{}} in {{}} earlier weeks: needs {LEAST_RUNS} runs a side, or {LEAST_WEEKS} earlier weeks",
        "n1", "n0", "k",
    )  # fmt: skip
    return (
        pl.when(pl.col("n1") == 0).then(pl.lit("no value this week"))
        .when(~pl.col("some_before")).then(pl.lit(FIRST))
        .when(pl.col("n0") == 0).then(pl.format("not measured at {} in the weeks before", "scope"))
        .when(whole & pl.col("same_work").eq_missing(False)).then(pl.lit("the runs did different work: look at energy per token"))
        .when(whole & pl.col("same_work").is_null()).then(pl.lit("how much work the runs did is not known: add their tokens, or labels"))
        .when((pl.col("k") < LEAST_WEEKS) & (pl.min_horizontal("n1", "n0") < LEAST_RUNS)).then(few)
    )  # fmt: skip


def _compared(sides: pl.DataFrame) -> pl.DataFrame:
    """Return difference, standard error and degrees of freedom of what can be judged."""
    by_weeks = pl.col("k") >= LEAST_WEEKS
    uneven = (pl.col("var_within") * (1 / pl.col("n1") - pl.col("per_run"))).clip(lower_bound=0.0)
    a, b = pl.col("s1") ** 2 / pl.col("n1"), pl.col("s0") ** 2 / pl.col("n0")
    welch = (a + b) ** 2 / (a**2 / (pl.col("n1") - 1) + b**2 / (pl.col("n0") - 1))
    known = sides.with_columns(
        centre=pl.when(by_weeks).then("mw").otherwise("m0"),
        se=pl.when(by_weeks).then((pl.col("sw") ** 2 * (1 + 1 / pl.col("k")) + uneven).sqrt()).otherwise((a + b).sqrt()),
        dof=pl.when(by_weeks).then(pl.col("k") - 1.0)
        .otherwise(pl.when(a + b > 0).then(welch).otherwise(pl.col("n1") + pl.col("n0") - 2.0)),
    )  # fmt: skip
    blank = pl.col("refusal").is_null()
    known = known.with_columns(pl.when(blank).then(c).alias(c) for c in ("se", "dof"))
    return known.with_columns(
        difference=pl.when(blank).then(pl.col("m1") - pl.col("centre")), half=pl.col("se") * t_quantile(known["dof"])
    )


def _judged(rows: pl.DataFrame, threshold_ratio: float) -> pl.DataFrame:
    share = pl.col("metric").is_in(SHARES)

    def ratio(y: pl.Expr) -> pl.Expr:
        return pl.when(share).then(y).otherwise(y.exp() - 1)

    d, half = pl.col("difference"), pl.col("half")
    rows = rows.with_columns(
        effect_ratio=ratio(d), effect_lo=ratio(d - half), effect_hi=ratio(d + half), now=back("m1"), before=back("centre"),
        band_lo=back(pl.col("centre") - half), band_hi=back(pl.col("centre") + half), p_value=_p_values(rows),
        runs_now="n1", runs_before="n0", weeks_before="k",
    )  # fmt: skip
    worse = (pl.col("effect_ratio") > 0) != pl.col("metric").is_in(HIGHER_IS_BETTER)
    excluded = (pl.col("effect_lo") > 0) | (pl.col("effect_hi") < 0)
    large = pl.col("effect_ratio").abs() >= threshold_ratio
    sure = excluded & (pl.col("p_value") <= LEVEL)
    verdict = (
        pl.when(pl.col("refusal").is_not_null()).then(pl.lit("refused"))
        .when(sure & large).then(pl.when(worse).then(pl.lit("regression")).otherwise(pl.lit("improved")))
        .otherwise(pl.lit("indistinguishable"))
    )  # fmt: skip
    basis = (
        pl.when(pl.col("k") >= LEAST_WEEKS).then(pl.format("against {} runs of {} weeks", "n0", "k"))
        .otherwise(pl.format("against {} runs; earlier weeks are too few to know how weeks differ", "n0"))
    )  # fmt: skip
    why = (
        pl.when(sure & large).then(basis)
        .when(sure).then(pl.format(f"a change, but below {100 * threshold_ratio:g} %; {{}}", basis))
        .when(excluded).then(pl.format("not sure enough among this many comparisons; {}", basis))
        .otherwise(pl.format("within the spread; {}", basis))
    )  # fmt: skip
    return rows.with_columns(verdict=verdict, reason=pl.coalesce("refusal", why))


def _p_values(rows: pl.DataFrame) -> pl.Series:
    """Return two-sided p-values, corrected for their number; null where nothing was compared."""
    table = rows.select(pl.col("difference", "se", "dof").fill_null(np.nan)).to_numpy()
    difference, se, dof = table[:, 0], table[:, 1], table[:, 2]
    tested = np.isfinite(difference) & np.isfinite(se)
    # Runs that agree to the last digit have no spread: any difference is then a sure one.
    t = np.abs(difference[tested]) / np.maximum(se[tested], np.finfo(np.float64).tiny)
    p = 2 * distributions.student_tail(np.minimum(t, np.finfo(np.float64).max), dof[tested])
    found = np.full(rows.height, np.nan)
    if p.size:
        found[tested] = distributions.among_many(p)
    return pl.Series("p_value", found).fill_nan(None)


def _findings(frame: pl.DataFrame) -> tuple[Finding, ...]:
    found = []
    for row in frame.filter(pl.col("verdict") == "regression").iter_rows(named=True):
        subject = " ".join(
            x for x in (row["metric"], f"at {row['scope']}", f"of {row['kind']}" if row["kind"] else "") if x
        )
        message = (
            f"{100 * row['effect_ratio']:+.1f} % [{100 * row['effect_lo']:+.1f}, {100 * row['effect_hi']:+.1f}] "
            f"{row['reason']}. Look for what changed between the weeks: code, data, driver, room."
        )
        evidence: dict[str, object] = {k: row[k] for k in ("effect_ratio", "effect_lo", "effect_hi", "p_value")}
        found.append(Finding("weekly-regression", Severity.WARNING, subject, message, evidence))
    return tuple(found)


def worst(verdicts: Sequence[str]) -> str:
    """Return the verdict that a group of rows deserves as a whole.

    Examples
    --------
    >>> worst(["refused", "indistinguishable", "regression"])
    'regression'
    """
    return next((v for v in VERDICTS if v in verdicts), "refused")
