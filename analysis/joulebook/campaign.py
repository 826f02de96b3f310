"""What each change of a campaign really saved: effects at one scope with interval, verdict and reason."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from joulebook import ancova, campaign_checks, campaign_runs, distributions
from joulebook.ancova import Contrast, Design
from joulebook.findings import Estimate, Finding
from joulebook.schema import table

LEVEL = 0.05
"""Chance of any false verdict in a campaign at one scope."""
CHOICE_FACTOR = 1.1
"""P-values are raised by it, because the model is chosen on the same runs (trend, common spread), which costs up to a
tenth of the level on simulated changes without effect."""


@dataclass(frozen=True)
class Effects:
    """Effects of the changes of a campaign.

    Parameters
    ----------
    changes
        Rows of table ``changes`` without ``campaign``: one a change and scope.
    evidence
        ``scope``, ``position``, ``change``, ``runs_before``, ``runs_after``, ``dof``, ``p_uncorrected``,
        ``detectable_ratio`` (least effect seen with a chance of 80 %), ``inlet_before_c``, ``inlet_after_c``.
    waterfall
        ``scope``, ``position``, ``change``, ``start``, ``end``, ``lo``, ``hi``, ``verdict``, ``reason``: bars from the
        first variant to the last, in the unit of the metric at equal inlet; ``start = end`` where refused.
    runs
        The runs behind it: ``run_id``, ``scope``, ``variant``, ``value``, ``log_value`` and covariates.
    totals
        ``scope``, ``first``, ``last``, ``effect_ratio``, ``effect_lo``, ``effect_hi``: first variant against the last
        that could be compared.
    inlet_slopes
        ``scope``, ``slope_per_c``, ``slope_lo``, ``slope_hi``: relative change of the metric per °C of inlet.
    order
        Variants in the order in which the changes were made.
    findings
        Order, drift, coverage, differences between scopes.
    """

    changes: pl.DataFrame
    evidence: pl.DataFrame
    waterfall: pl.DataFrame
    runs: pl.DataFrame
    totals: pl.DataFrame
    inlet_slopes: pl.DataFrame
    order: tuple[str, ...]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class _Step:
    """One change at one scope on the way to its verdict."""

    scope: str
    position: int
    before: str
    change: str
    runs_before: int
    runs_after: int
    refusal: str
    contrast: Contrast | None
    adjusted: bool


def effects(
    runs: pl.DataFrame,
    *,
    order: Sequence[str],
    metric: str = "energy_per_token_j",
    scope: str = "",
    settings: Sequence[str] = (),
    higher_is_better: bool = False,
) -> Effects:
    """Return the effect of each change of a campaign against the one before it.

    The unit is the run. All variants share one slope of inlet temperature and one spread (unless they scatter
    differently), so each change is judged with the repeats of all; p-values are corrected after Holm over the changes
    of a scope, and raised by a tenth because the model is chosen on the same runs. Where the metric drifts over time
    within variants, that trend is taken out too.

    Parameters
    ----------
    runs
        One row a run (and scope): ``run_id``, ``variant``, ``value`` (the metric; null where the run has none at this
        scope), and optionally ``scope``, ``start_utc``, ``inlet_c`` [°C], ``coverage_ratio``, ``block`` (runs of one
        block are compared with each other, e.g. one workload) and the columns of ``settings``.
    order
        Variants in the order in which the changes were made; the first is the baseline.
    metric
        Name of the metric, normalised by work (per token, per step), not a power.
    scope
        Scope of the runs where they have no column of it.
    settings
        Columns that must be equal for two variants to be compared.
    higher_is_better
        For metrics such as tokens per joule: more of it saves.

    Returns
    -------
    Effects
        One row a change and scope; ``refused`` with a reason where the runs do not allow a verdict: fewer than three
        runs of a variant, no baseline, other scope, other settings, inlet temperatures that do not overlap.

    Raises
    ------
    ValueError
        A column is missing, a value is not positive, or the order names fewer than two variants or one twice.

    References
    ----------
    Holm, A simple sequentially rejective multiple test procedure, Scand. J. Statist. 6 (1979) 65-70.

    Examples
    --------
    >>> runs = pl.DataFrame({"run_id": list("abcdef"), "variant": ["base"] * 3 + ["new"] * 3,
    ...                      "value": [1.0, 1.01, 0.99, 0.9, 0.91, 0.89]})
    >>> done = effects(runs, order=["base", "new"])
    >>> done.changes.select("change", "verdict").rows()
    [('new', 'saves')]
    """
    checked = campaign_runs.check(runs, order=order, scope=scope, settings=settings)
    used = campaign_runs.usable(checked)
    steps: list[_Step] = []
    designs: dict[str, Design] = {}
    for name in checked["scope"].unique(maintain_order=True):
        at = used.filter(pl.col("scope") == name)
        designs[name] = ancova.choose(_comparable(at)) if _comparable(at).height else Design()
        steps += _steps(checked, at, name, order=order, settings=settings, design=designs[name])
    changes = _changes(steps, metric, higher_is_better)
    found = (
        campaign_checks.order_and_drift(used, order, designs)
        + campaign_checks.set_aside(checked)
        + campaign_checks.between_scopes(used, order, designs, changes)
    )
    return Effects(
        changes, _evidence(steps, used), _waterfall(changes), used, _totals(steps, used, designs),
        _slopes(used, designs), tuple(order), found,
    )  # fmt: skip


def total(effects: Effects, scope: str) -> Estimate:
    """Return the effect from the first variant to the last comparable one at a scope.

    Parameters
    ----------
    effects
        From ``effects``.
    scope
        Scope of the row.
    """
    row = effects.totals.filter(pl.col("scope") == scope)
    if not row.height:
        return Estimate.refused(f"no two comparable variants at {scope!r}")
    first = row.row(0, named=True)
    method = f"{first['first']} to {first['last']} at equal inlet"
    return Estimate(first["effect_ratio"], first["effect_lo"], first["effect_hi"], method=method)


def _comparable(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs of variants with enough of them: only these speak for slope and spread."""
    return runs.filter(pl.len().over("variant") >= campaign_runs.LEAST_RUNS)


def _steps(
    checked: pl.DataFrame,
    used: pl.DataFrame,
    scope: str,
    *,
    order: Sequence[str],
    settings: Sequence[str],
    design: Design,
) -> list[_Step]:
    """Return the changes at one scope, each compared or with the reason why not."""
    counts = dict(used.group_by("variant").len().iter_rows())
    enough = _comparable(used)
    steps = []
    for position, (before, change) in enumerate(itertools.pairwise(order), start=1):
        refusal = campaign_runs.refusal(checked, used, before, change, scope=scope, settings=settings, design=design)
        contrast = None if refusal else ancova.contrast(enough, before, change, design=design)
        if not refusal and contrast is None:
            refusal = "the runs leave no degree of freedom: more repeats, or repeats of both in one block"
        n = counts.get(before, 0), counts.get(change, 0)
        steps.append(_Step(scope, position, before, change, *n, refusal, contrast, "inlet_c" in design.covariates))
    return steps


def _changes(steps: list[_Step], metric: str, higher_is_better: bool) -> pl.DataFrame:
    """Return the rows of table changes, corrected within each scope."""
    corrected: dict[tuple[str, int], float] = {}
    for scope in {s.scope for s in steps}:
        compared = [s for s in steps if s.scope == scope and s.contrast is not None]
        ps = [
            min(1.0, CHOICE_FACTOR * p)
            for p in distributions.holm([s.contrast.p_value for s in compared if s.contrast])
        ]
        corrected |= {(scope, s.position): p for s, p in zip(compared, ps, strict=True)}
    rows: list[tuple[object, ...]] = []
    for s in steps:
        head = (s.position, s.change, s.scope, metric)
        if s.contrast is None:
            rows.append((*head, None, None, None, None, None, None, "refused", s.refusal))
            continue
        c, p = s.contrast, corrected[s.scope, s.position]
        levels = math.exp(c.log_before), math.exp(c.log_after)
        verdict, reason = _verdict(c, p, higher_is_better=higher_is_better, adjusted=s.adjusted)
        rows.append((*head, *levels, c.effect_ratio, *c.interval, p, verdict, reason))
    schema = {c: t for c, t in table("changes").schema.items() if c != "campaign"}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _verdict(c: Contrast, p: float, *, higher_is_better: bool, adjusted: bool) -> tuple[str, str]:
    lo, hi = c.interval
    span = f"{100 * c.effect_ratio:+.1f} % [{100 * lo:+.1f}, {100 * hi:+.1f}]{' at equal inlet' if adjusted else ''}"
    span = f"{span}, p {p:.2g} after Holm"
    if p > LEVEL:
        return "indistinguishable", f"{span}; these runs would see an effect of {100 * c.detectable_ratio:.1f} %"
    return ("saves" if (c.log_ratio < 0) != higher_is_better else "costs"), span


def _evidence(steps: list[_Step], used: pl.DataFrame) -> pl.DataFrame:
    has_inlet = "inlet_c" in used.columns
    inlet = {
        (scope, variant): value
        for scope, variant, value in (
            used.group_by("scope", "variant").agg(pl.col("inlet_c").mean()).iter_rows() if has_inlet else ()
        )
    }
    rows = [
        (
            s.scope, s.position, s.change, s.runs_before, s.runs_after,
            *((c.dof, c.p_value, c.detectable_ratio) if (c := s.contrast) else (None, None, None)),
            inlet.get((s.scope, s.before)), inlet.get((s.scope, s.change)),
        )
        for s in steps
    ]  # fmt: skip
    schema = {"scope": pl.String, "position": pl.Int32, "change": pl.String, "runs_before": pl.Int64,
              "runs_after": pl.Int64, "dof": pl.Int64, "p_uncorrected": pl.Float64, "detectable_ratio": pl.Float64,
              "inlet_before_c": pl.Float64, "inlet_after_c": pl.Float64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def _waterfall(changes: pl.DataFrame) -> pl.DataFrame:
    """Return the bars from first to last: each change starts where the last known level ended."""
    level = pl.col("after").forward_fill().over("scope", order_by="position")
    refused = pl.col("verdict") == "refused"
    start = pl.when(refused).then(level).otherwise(pl.col("before"))
    return changes.select(
        "scope", "position", "change",
        start=start,
        end=pl.when(refused).then(level).otherwise(pl.col("after")),
        lo=pl.col("before") * (1 + pl.col("effect_lo")),
        hi=pl.col("before") * (1 + pl.col("effect_hi")),
        verdict=pl.col("verdict"), reason=pl.col("reason"),
    )  # fmt: skip


def _totals(steps: list[_Step], used: pl.DataFrame, designs: dict[str, Design]) -> pl.DataFrame:
    """Return first against last over the unbroken chain of compared variants of each scope."""
    rows = []
    for scope, design in designs.items():
        chain = [s for s in steps if s.scope == scope and s.contrast is not None]
        if not chain:
            continue
        at = _comparable(used.filter(pl.col("scope") == scope))
        c = ancova.contrast(at, chain[0].before, chain[-1].change, design=design)
        if c is not None:
            rows.append((scope, chain[0].before, chain[-1].change, c.effect_ratio, *c.interval))
    names = ("scope", "first", "last", "effect_ratio", "effect_lo", "effect_hi")
    return pl.DataFrame(rows, schema=_typed(names, 3), orient="row")


def _slopes(used: pl.DataFrame, designs: dict[str, Design]) -> pl.DataFrame:
    rows = [
        (scope, *slope)
        for scope, design in designs.items()
        if (slope := ancova.slope(_comparable(used.filter(pl.col("scope") == scope)), "inlet_c", design=design))
    ]
    return pl.DataFrame(rows, schema=_typed(("scope", "slope_per_c", "slope_lo", "slope_hi"), 1), orient="row")


def _typed(names: Sequence[str], texts: int) -> dict[str, type[pl.DataType]]:
    return {n: pl.String if i < texts else pl.Float64 for i, n in enumerate(names)}
