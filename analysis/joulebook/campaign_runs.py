"""Which runs of a campaign may be compared, and why two variants may not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import polars as pl

from joulebook import ancova
from joulebook.ancova import Design

LEAST_RUNS = 3
"""Runs a variant needs: identical runs differ by up to some per cent, and two do not tell by how much."""
LEAST_COVERAGE_RATIO = 0.9
"""Share of a run that readings must cover for its value to be compared."""
LEAST_INLET_OVERLAP_RATIO = 0.5
"""Share of the narrower variant's inlet range that the other must share."""
LEAST_INLET_SHIFT_C = 3.0
"""Difference of mean inlets [°C] up to which variants are compared however their ranges lie: a few repeats in one room
often miss each other by so much, and the adjustment is small then."""


def check(runs: pl.DataFrame, *, order: Sequence[str], scope: str, settings: Sequence[str]) -> pl.DataFrame:
    """Return the runs with ``scope``, ``hours`` and ``log_value``; refuse frames that are no campaign.

    Parameters
    ----------
    runs, order, scope, settings
        As for ``campaign.effects``.

    Returns
    -------
    pl.DataFrame
        The same rows; ``log_value`` is null where the run has no value.

    Raises
    ------
    ValueError
        See ``campaign.effects``.
    """
    missing = [c for c in ("run_id", "variant", "value", *settings) if c not in runs.columns]
    if missing:
        raise ValueError(f"runs has no column {', '.join(missing)}; it has {', '.join(runs.columns)}")
    if len(order) < 2 or len(set(order)) < len(order):
        raise ValueError(f"order = {list(order)}: at least two different variants are allowed")
    bad = runs.filter(pl.col("value") <= 0)
    if bad.height:
        raise ValueError(f"value = {bad['value'][0]:g} of run {bad['run_id'][0]}: positive values are allowed")
    added = [pl.col("value").cast(pl.Float64).fill_nan(None).log().alias("log_value")]
    if "scope" not in runs.columns:
        added.append(pl.lit(scope).alias("scope"))
    if "start_utc" in runs.columns:
        since = pl.col("start_utc") - pl.col("start_utc").min()
        added.append((since.dt.total_microseconds() / 3.6e9).alias("hours"))
    if "inlet_c" in runs.columns:
        added.append(pl.col("inlet_c").cast(pl.Float64).fill_nan(None))
    return runs.with_columns(added).filter(pl.col("variant").is_in(list(order)))


def usable(checked: pl.DataFrame) -> pl.DataFrame:
    """Return the runs that have a value with enough coverage behind it."""
    known = pl.col("log_value").is_not_null()
    if "coverage_ratio" in checked.columns:
        known &= pl.col("coverage_ratio").fill_null(1.0) >= LEAST_COVERAGE_RATIO
    return checked.filter(known)


def refusal(
    checked: pl.DataFrame,
    used: pl.DataFrame,
    before: str,
    after: str,
    *,
    scope: str,
    settings: Sequence[str],
    design: Design,
) -> str:
    """Return why two variants may not be compared at a scope; empty where they may.

    Parameters
    ----------
    checked
        All runs of the campaign, every scope.
    used
        The usable runs at this scope.
    before, after
        The two variants.
    scope
        The scope.
    settings
        Columns that must be equal.
    design
        The model of this scope, for what two runs a variant would have shown.
    """
    for variant, role in ((before, "baseline"), (after, "change")):
        why = _too_few(checked, used, variant, role, scope)
        if why:
            return why + _shown(used, before, after, design)
    return _other_settings(used, before, after, settings) or _other_inlet(used, before, after)


def _too_few(checked: pl.DataFrame, used: pl.DataFrame, variant: str, role: str, scope: str) -> str:
    """Return what is wrong with the number of a variant's runs at this scope."""
    n = used.filter(pl.col("variant") == variant).height
    if n >= LEAST_RUNS:
        return ""
    runs = checked.filter(pl.col("variant") == variant)
    if not runs.height:
        return f"no baseline: no run of {variant!r}" if role == "baseline" else f"no run of {variant!r}"
    there = runs["run_id"].n_unique()
    where = scope or "this scope"
    if n == 0:
        others = usable(runs.filter(pl.col("scope") != scope))["scope"].unique(maintain_order=True).to_list()
        also = (
            f"; it was measured at {', '.join(others)}, and scopes are never compared with each other" if others else ""
        )
        lead = "no baseline: " if role == "baseline" else ""
        return f"{lead}none of the {there} runs of {variant!r} is covered by readings at {where}{also}"
    short = f", {there - n} not covered by readings at {where}" if there > n else ""
    return f"{n} {'run' if n == 1 else 'runs'} of {variant!r} at {where}{short}: at least {LEAST_RUNS} are needed"


def _shown(used: pl.DataFrame, before: str, after: str, design: Design) -> str:
    """Return what the few runs show, so that a refusal is not silent about it."""
    means = [used.filter(pl.col("variant") == v)["log_value"].mean() for v in (before, after)]
    if not all(isinstance(m, float) for m in means):
        return ""
    difference = math.expm1(float(means[1]) - float(means[0]))  # pyrefly: ignore[bad-argument-type]
    text = f"; the difference as it stands is {100 * difference:+.1f} %"
    rough = ancova.contrast(used, before, after, design=Design(pooled=design.pooled))
    if rough is None or rough.detectable_ratio > 1:
        return f"{text}, and nothing is known of the spread"
    return f"{text}, and these runs would see {100 * rough.detectable_ratio:.1f} % at best"


def _other_settings(used: pl.DataFrame, before: str, after: str, settings: Sequence[str]) -> str:
    """Return which setting differs between (or within) two variants."""
    for name in settings:
        values = [used.filter(pl.col("variant") == v)[name].unique().sort().to_list() for v in (before, after)]
        if values[0] != values[1] or len(values[0]) > 1:
            shown = " against ".join("/".join(str(x) for x in v) for v in values)
            return f"other settings: {name} is {shown}; repeat with equal {name}"
    return ""


def _other_inlet(used: pl.DataFrame, before: str, after: str) -> str:
    """Return whether inlet temperatures lie too far apart for an adjustment inside what was seen."""
    if "inlet_c" not in used.columns or used["inlet_c"].null_count():
        return ""
    arms = [used.filter(pl.col("variant") == v)["inlet_c"].to_numpy() for v in (before, after)]
    lo, hi = max(a.min() for a in arms), min(a.max() for a in arms)
    narrow = min(float(a.max() - a.min()) for a in arms)
    if (
        abs(float(arms[0].mean() - arms[1].mean())) <= LEAST_INLET_SHIFT_C
        or hi - lo > LEAST_INLET_OVERLAP_RATIO * narrow
    ):
        return ""
    ranges = " against ".join(f"{a.min():.1f} to {a.max():.1f} °C" for a in arms)
    return f"inlet temperatures do not overlap ({ranges}): change and room cannot be told apart; repeat at equal inlet"
