"""What may mislead the reader of a campaign: order, drift, runs set aside, scopes that disagree."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import polars as pl

from joulebook import ancova, campaign_runs
from joulebook.ancova import Design
from joulebook.findings import Finding, Severity
from joulebook.schema import SCOPES

MIXED_BLOCKS = 1.5
"""So many stretches of runs of one variant, for each variant, are no order of variants any more: in turn, or at random."""

SCOPE_P = 0.01
"""Chance below which two scopes are said to disagree on a change; corrected for the number of changes."""


def order_and_drift(used: pl.DataFrame, order: Sequence[str], designs: Mapping[str, Design]) -> tuple[Finding, ...]:
    """Return findings on the order of the runs, a drift over time and the inlet temperature.

    Parameters
    ----------
    used
        Usable runs of every scope.
    order
        Variants as the campaign names them.
    designs
        The model of each scope.
    """
    found = [*_order(used, order)]
    for scope, design in designs.items():
        at = used.filter(pl.col("scope") == scope)
        if not at.height:
            continue
        if "hours" in design.covariates:
            message = (
                f"The metric drifts over time within variants (p {design.drift_p:.2g}); the trend was taken out, which "
                "widens the intervals. Repeat with variants in turn (A B B A) to be independent of it."
            )
            found.append(Finding("campaign-drift", Severity.WARNING, scope, message, {"p_value": design.drift_p}))
        if "inlet_c" not in design.covariates:
            message = (
                "Effects are not adjusted for inlet temperature, because it was not logged for every run or did not "
                "vary. A warmer room looks like a change; log the inlet next to power."
            )
            found.append(Finding("campaign-inlet-unknown", Severity.NOTE, scope, message))
        if not design.pooled:
            message = "Variants scatter differently; each change is judged on the spread of its own two variants."
            found.append(Finding("campaign-unequal-spread", Severity.NOTE, scope, message))
    return tuple(found)


def _order(used: pl.DataFrame, order: Sequence[str]) -> list[Finding]:
    """Return whether runs stand in the named order, and whether each variant's runs stand together in time."""
    if "hours" not in used.columns or not used.height:
        return []
    runs = used.unique("run_id", keep="first").sort("hours")
    seen = runs["variant"].unique(maintain_order=True).to_list()
    named = [v for v in order if v in seen]
    found = []
    blocks = runs["variant"].rle_id().n_unique()
    # Of runs that were made in turn or at random there is no order of variants that could differ from the named one.
    if seen != named and blocks < MIXED_BLOCKS * len(seen):
        message = (
            f"The runs were made in the order {', '.join(seen)}, not as named ({', '.join(named)}). What a change is "
            "worth depends on those before it: check the order."
        )
        found.append(
            Finding("campaign-order-differs", Severity.WARNING, "order", message, {"ran": seen, "named": named})
        )
    if blocks == len(seen) > 1:
        message = (
            "The runs of each variant stand together in time, so a slow change of the room or the machine falls on one "
            "side of a change. Only inlet temperature and the trend within variants guard against it; effects hold in "
            "this order of changes."
        )
        found.append(Finding("campaign-blocks-in-time", Severity.NOTE, "order", message))
    return found


def set_aside(checked: pl.DataFrame) -> tuple[Finding, ...]:
    """Return a finding per scope on runs that could not be used.

    Parameters
    ----------
    checked
        All runs of the campaign.
    """
    kept = campaign_runs.usable(checked).select("run_id", "scope")
    left = checked.join(kept, on=["run_id", "scope"], how="anti").sort("scope", "run_id")
    found = []
    for (scope,), part in left.group_by("scope", maintain_order=True):
        names = part["run_id"].to_list()
        message = (
            f"{len(names)} of {checked.filter(pl.col('scope') == scope).height} runs have no value covered by readings "
            f"at {scope or 'this scope'} and were not compared: {', '.join(names[:8])}{' …' if len(names) > 8 else ''}."
        )
        found.append(Finding("campaign-runs-set-aside", Severity.WARNING, str(scope), message, {"runs": names}))
    return tuple(found)


def between_scopes(
    used: pl.DataFrame, order: Sequence[str], designs: Mapping[str, Design], changes: pl.DataFrame
) -> tuple[Finding, ...]:
    """Return whether changes are worth the same at every scope, and which are not.

    Both scopes come from the same runs, so the ratio of the two is compared run by run, which is far sharper than
    two intervals side by side.

    Parameters
    ----------
    used
        Usable runs of every scope.
    order
        Variants in order.
    designs
        The model of each scope; the wider scope's is used.
    changes
        Rows of table ``changes``.
    """
    scopes = sorted(designs, key=lambda s: SCOPES.index(s) if s in SCOPES else -1)
    found: list[Finding] = []
    for i, narrow in enumerate(scopes):
        for wide in scopes[i + 1 :]:
            found += _pair(used, order, narrow, wide, design=designs[wide], changes=changes)
    return tuple(found)


def _pair(
    used: pl.DataFrame, order: Sequence[str], narrow: str, wide: str, *, design: Design, changes: pl.DataFrame
) -> list[Finding]:
    both = used.filter(pl.col("scope") == wide).join(
        used.filter(pl.col("scope") == narrow).select("run_id", narrow_log="log_value"), on="run_id"
    )
    both = both.with_columns(difference=pl.col("log_value") - pl.col("narrow_log"))
    both = both.filter(pl.len().over("variant") >= campaign_runs.LEAST_RUNS)
    effect = {(r["scope"], r["change"]): r for r in changes.iter_rows(named=True)}
    found: list[Finding] = []
    ratios: list[float] = []
    present = set(both["variant"].to_list())
    pairs = [(b, a) for b, a in itertools.pairwise(order) if {b, a} <= present]
    for before, after in pairs:
        c = ancova.contrast(both, before, after, design=design, response="difference")
        rows = effect[narrow, after], effect[wide, after]
        if c is None or any(r["effect_ratio"] is None for r in rows):
            continue
        ratios.append(c.effect_ratio)
        if c.p_value * len(pairs) > SCOPE_P:
            continue
        lo, hi = (100 * v for v in c.interval)
        one, other = (f"{100 * r['effect_ratio']:+.1f} % at {r['scope']}" for r in rows)
        differs = rows[0]["verdict"] != rows[1]["verdict"]
        message = (
            f"{after!r} changes the metric by {one} but {other}: wide over narrow {100 * c.effect_ratio:+.1f} % "
            f"[{lo:+.1f}, {hi:+.1f}]. Tune at {narrow}, but report the saving at {wide}."
        )
        severity = Severity.WARNING if differs else Severity.NOTE
        evidence = {"ratio": c.effect_ratio, "p_value": c.p_value}
        found.append(Finding("campaign-scopes-differ", severity, f"{after} ({narrow}, {wide})", message, evidence))
    if ratios and not found:
        message = (
            f"The {len(ratios)} changes that {narrow} and {wide} both saw are worth the same at either: wide over "
            f"narrow {100 * min(ratios):+.2f} to {100 * max(ratios):+.2f} %, not distinguishable from none."
        )
        evidence = {"ratio_lo": min(ratios), "ratio_hi": max(ratios)}
        found.append(Finding("campaign-scopes-agree", Severity.NOTE, f"{narrow} and {wide}", message, evidence))
    return found
