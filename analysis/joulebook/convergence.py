"""Loss against energy: what a further drop of the loss costs, and from where on it keeps getting dearer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from joulebook import distributions, occupancy
from joulebook.findings import Estimate, Finding, Severity
from joulebook.phase_timeline import Floats

WINDOWS = 20
"""Windows of equal energy that a run is cut into [1]."""

SETTLING_RATIO = 0.1
"""Share of the energy at the start in which a rising cost says nothing: the first fall of every loss curve."""

MIN_STEPS = 5
"""Steps with a loss that a window needs [1]."""

MIN_REPEATS = 3
"""Repeats that a group needs before its spread says anything [1]."""

LAMBDA_STEP = 0.05
"""Largest change of the price of a loss at a time [1]."""

LAMBDA_BAND = 0.10
"""Loss may be so far from its target before the price changes [1]."""

COST_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "step": pl.Int64, "end_utc": pl.Datetime("us", "UTC"), "energy_j": pl.Float64, "loss": pl.Float64,
    "marginal_j": pl.Float64, "lo": pl.Float64, "hi": pl.Float64, "n": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True)
class Convergence:
    """How a loss was paid for.

    Parameters
    ----------
    curve
        One row a step: ``step``, ``end_utc``, ``energy_j`` (so far), ``loss``.
    frame
        One row a window of equal energy: last ``step``, ``end_utc``, ``energy_j`` at its end, mean ``loss``,
        ``marginal_j`` (energy per unit of loss) with ``lo`` and ``hi``, ``n`` steps. Null where the loss does not
        measurably fall; ``hi`` is null where it may not fall at all.
    total
        Energy of all steps [J].
    rising_from
        Energy after which the marginal cost only rises [J].
    findings
        The same in words.
    """

    curve: pl.DataFrame
    frame: pl.DataFrame
    total: Estimate
    rising_from: Estimate
    findings: tuple[Finding, ...]


def trace(steps: pl.DataFrame, power: pl.DataFrame, *, windows: int = WINDOWS) -> Convergence:
    """Set loss against the energy spent so far, and price the next unit of loss.

    Parameters
    ----------
    steps
        Columns ``step``, ``end_utc``, ``loss``, optionally ``start_utc`` of one run.
    power
        Columns ``device``, ``ts_utc``, ``power_w`` of one scope.
    windows
        Windows of equal energy.

    Returns
    -------
    Convergence
        Curve, marginal energy by window, where it keeps rising.

    Raises
    ------
    ValueError
        Fewer than two windows are asked for.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=s) for s in range(1001)]
    >>> steps = pl.DataFrame({"step": range(1, 1001), "end_utc": t[1:], "loss": [8 - 0.005 * s for s in range(1000)]})
    >>> power = pl.DataFrame({"device": "gpu:0", "ts_utc": t, "power_w": 400.0})
    >>> round(trace(steps, power).frame["marginal_j"][3])
    80000
    """
    if windows < 2:
        raise ValueError(f"windows is {windows}: at least 2")
    curve = _curve(steps, power)
    n = curve.height
    if n < 2 * MIN_STEPS:
        why = f"{n} steps with a loss are too few"
        none = Estimate.refused(why, unit="J", n=n)
        return Convergence(curve, pl.DataFrame(schema=COST_SCHEMA), none, none, ())
    frame = _windows(curve, min(windows, n // MIN_STEPS))
    total = Estimate(float(curve["energy_j"][-1]), unit="J", n=n, method="integral up to the last step")
    rising, found = _rising(frame)
    return Convergence(curve, frame, total, rising, found)


def controls(runs: pl.DataFrame, *, baseline: str) -> pl.DataFrame:
    """Set the groups of a control experiment side by side, energy and final loss in one table.

    Parameters
    ----------
    runs
        One row a run: ``group``, ``energy_j``, ``final_loss``.
    baseline
        Name of the group that the others are compared with.

    Returns
    -------
    polars.DataFrame
        One row a group in order of appearance: ``group``, ``repeats``, ``energy_j``, ``final_loss`` with ``_lo`` and
        ``_hi`` (95 % of the mean; null below three repeats), ``energy_ratio`` and ``loss_ratio`` against the baseline,
        ``reason`` where there is no interval.

    Raises
    ------
    ValueError
        There is no such group.

    Examples
    --------
    >>> runs = pl.DataFrame({"group": ["baseline"] * 3 + ["cap"] * 3, "final_loss": [2.5] * 3 + [2.6] * 3,
    ...                      "energy_j": [100.0, 102.0, 98.0, 80.0, 82.0, 78.0]})
    >>> controls(runs, baseline="baseline")["energy_ratio"].to_list()
    [1.0, 0.8]
    """
    names = runs["group"].unique(maintain_order=True).to_list()
    if baseline not in names:
        raise ValueError(f"baseline {baseline!r} is not a group; there are {', '.join(map(str, names))}")
    table = runs.group_by("group", maintain_order=True).agg(
        pl.len().alias("repeats"),
        *(e for c in ("energy_j", "final_loss") for e in (pl.col(c).mean(), pl.col(c).std().alias(f"{c}_sd"))),
    )
    enough = pl.col("repeats") >= MIN_REPEATS
    quantile = pl.Series(distributions.student_quantile(0.975, np.maximum(table["repeats"].to_numpy() - 1, 1)))
    half = {c: pl.col(f"{c}_sd") * quantile / pl.col("repeats").sqrt() for c in ("energy_j", "final_loss")}
    base = table.filter(group=baseline)
    return table.select(
        "group", "repeats",
        *(e for c in ("energy_j", "final_loss") for e in (
            pl.col(c), pl.when(enough).then(pl.col(c) - half[c]).alias(f"{c}_lo"),
            pl.when(enough).then(pl.col(c) + half[c]).alias(f"{c}_hi"))),
        energy_ratio=pl.col("energy_j") / base["energy_j"][0],
        loss_ratio=pl.col("final_loss") / base["final_loss"][0],
        reason=pl.when(enough).then(pl.lit("")).otherwise(pl.lit(f"fewer than {MIN_REPEATS} repeats: no interval")),
    )  # fmt: skip


def next_price(price: float, *, loss: float, target: float) -> float:
    """Return the next price of a unit of loss in energy + price x max(0, loss - target).

    Parameters
    ----------
    price
        Price now [J per unit of loss].
    loss, target
        Smoothed loss and its target.

    Returns
    -------
    float
        At most 5 % away; the same while the loss is within 10 % of the target.

    Raises
    ------
    ValueError
        The target is not positive.

    Examples
    --------
    >>> next_price(100.0, loss=3.0, target=2.5), next_price(100.0, loss=2.6, target=2.5)
    (105.0, 100.0)
    """
    if target <= 0:
        raise ValueError(f"target is {target}: must be positive")
    off = loss / target - 1
    if abs(off) <= LAMBDA_BAND:
        return price
    return price * (1 + math.copysign(min(LAMBDA_STEP, abs(off) - LAMBDA_BAND), off))


def _curve(steps: pl.DataFrame, power: pl.DataFrame) -> pl.DataFrame:
    """Return the energy so far at the end of each step that has a loss."""
    kept = steps.filter(pl.col("loss").is_finite()).drop_nulls("end_utc").sort("end_utc")
    if kept.is_empty() or power.is_empty():
        return kept.head(0).select("step", "end_utc", pl.lit(0.0).alias("energy_j"), "loss")
    first: Any = kept["start_utc"].min() if "start_utc" in kept.columns else None
    logged: Any = power["ts_utc"].min()
    begin = logged if first is None else max(first, logged)
    spans = kept.select(start_utc=pl.lit(begin), end_utc="end_utc")
    energy = occupancy.within(power, spans)
    return kept.select("step", "end_utc", pl.Series("energy_j", energy), "loss")


def _windows(curve: pl.DataFrame, count: int) -> pl.DataFrame:
    """Fit loss against energy in windows of equal energy."""
    energy, loss = curve["energy_j"].to_numpy(), curve["loss"].to_numpy()
    edges = np.linspace(energy[0], energy[-1], count + 1)
    which = np.clip(np.searchsorted(edges, energy, side="right") - 1, 0, count - 1)
    slope, se, n = _slopes(energy, loss, which, count)
    last = np.array([int(np.flatnonzero(which == w)[-1]) if n[w] else 0 for w in range(count)])
    ok = n >= MIN_STEPS
    quantile = distributions.student_quantile(0.975, np.maximum(n - 2, 1))
    falls, steep, flat = -slope, -slope + quantile * se, -slope - quantile * se
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = np.where(ok & (steep > 0) & (falls > 0), 1 / falls, np.nan)
        lo = np.where(np.isfinite(cost), 1 / steep, np.nan)
        hi = np.where(np.isfinite(cost) & (flat > 0), 1 / flat, np.nan)
    mean = np.bincount(which, loss, count) / np.maximum(n, 1)
    frame = pl.DataFrame({
        "step": curve["step"].to_numpy()[last], "end_utc": curve["end_utc"].gather(last), "energy_j": energy[last],
        "loss": mean, "marginal_j": cost, "lo": lo, "hi": hi, "n": n,
    })  # fmt: skip
    return frame.filter(pl.col("n") > 0).select(pl.col(c).cast(t) for c, t in COST_SCHEMA.items()).fill_nan(None)


def _slopes(x: Floats, y: Floats, which: Any, count: int) -> tuple[Floats, Floats, Any]:
    """Return the slope in each window, its standard error under lag-1 correlated residuals, and the points."""
    n = np.bincount(which, minlength=count)
    safe = np.maximum(n, 1)
    dx = x - (np.bincount(which, x, count) / safe)[which]
    dy = y - (np.bincount(which, y, count) / safe)[which]
    sxx = np.maximum(np.bincount(which, dx * dx, count), 1e-300)
    slope = np.bincount(which, dx * dy, count) / sxx
    r = dy - slope[which] * dx
    sse = np.bincount(which, r * r, count)
    inner = np.concatenate([which[1:] == which[:-1], [False]])
    lagged = np.bincount(which[inner], (r[:-1] * r[1:])[inner[:-1]], count)
    rho = np.clip(lagged / np.maximum(sse, 1e-300), 0.0, 0.95)
    se = np.sqrt(sse / np.maximum(n - 2, 1) / sxx * (1 + rho) / (1 - rho))
    return slope, se, n


def _rising(frame: pl.DataFrame) -> tuple[Estimate, tuple[Finding, ...]]:
    """Return the energy after which no window is measurably cheaper than the one before.

    The first tenth is left out: every loss falls steeply there, and what follows is dearer without saying anything.
    """
    begun = pl.col("energy_j") > SETTLING_RATIO * pl.col("energy_j").max()
    priced = frame.filter(begun).drop_nulls("marginal_j")
    if priced.height < 3:
        return Estimate.refused("fewer than three windows in which the loss falls measurably", unit="J"), ()
    cost, hi = priced["marginal_j"].to_numpy(), priced["hi"].fill_null(np.inf).to_numpy()
    drops = np.flatnonzero(hi[1:] < cost[:-1])
    first = int(drops[-1]) + 1 if len(drops) else 0
    if first >= priced.height - 2 or priced["lo"][-1] <= cost[first]:
        return Estimate.refused("marginal cost does not keep rising", unit="J", n=priced.height), ()
    at = Estimate(float(priced["energy_j"][first]), unit="J", n=priced.height, method="windows of equal energy")
    return at, _dearer(frame, int(priced["step"][first]), at)


def _dearer(frame: pl.DataFrame, step: int, since: Estimate) -> tuple[Finding, ...]:
    """Return in words how much dearer the loss was in the last quarter than in the second, where that is sure."""
    (early, _), (late, late_half) = _fall(frame, 0.25, 0.5), _fall(frame, 0.75, 1.0)
    if not 0.0 < late <= late + late_half < early:
        return ()
    ratio, quarter = early / late, 0.25 * float(frame["energy_j"][-1])
    return (
        Finding(
            "marginal-energy-rises", Severity.NOTE, "loss",
            f"The last quarter of the energy lowered the loss by {late * quarter:.2g}, the second quarter by "
            f"{early * quarter:.2g}: a unit of loss cost {ratio:.1f} times as much, and was never cheaper again after step "
            f"{step}. Whether to go on is worth a discussion.",
            {"step": step, "energy_j": since.value, "ratio": ratio},
        ),
    )  # fmt: skip


def _fall(frame: pl.DataFrame, start: float, end: float) -> tuple[float, float]:
    """Return the mean fall of the loss per joule between two shares of the energy, and half its 95 % interval."""
    share = frame["energy_j"] / frame["energy_j"].max()
    part = frame.filter((share > start) & (share <= end))
    if part.is_empty():
        return 0.0, 0.0
    fall = (1 / part["marginal_j"]).fill_null(0.0).to_numpy()
    steepest = (1 / part["lo"]).fill_null(0.0).to_numpy()
    return float(fall.mean()), float(np.sqrt(((steepest - fall) ** 2).sum()) / part.height)
