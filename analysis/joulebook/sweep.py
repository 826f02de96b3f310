"""Sweeps over one knob: step time, energy per token, tokens to target and their product, with intervals."""

from __future__ import annotations

import numpy as np
import polars as pl

from joulebook import distributions, sweep_points
from joulebook.loss_target import find as tokens_to_target
from joulebook.schema import table
from joulebook.sweep_points import Array, Points
from joulebook.sweet_spot import SweetSpot
from joulebook.sweet_spot import find as sweet_spot

__all__ = ["SweetSpot", "curves", "sweet_spot", "tokens_to_target"]


def curves(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the curves of a sweep, one row a setting.

    The interval of a setting comes from the spread over its runs, drawn towards the relative spread that all settings
    share, and is never narrower than what the runs' own measurement intervals say. Energy to target is the product of
    energy per token and tokens to target, which may come from different runs.

    Parameters
    ----------
    runs
        One row a run: ``x`` (the knob) and any of ``step_time_s`` [s], ``energy_per_token_j`` [J],
        ``tokens_to_target``, ``mean_power_w`` [W]; each optionally with ``_lo`` and ``_hi``, the 95 % interval of its
        measurement. A run without a value has null.

    Returns
    -------
    pl.DataFrame
        ``x``, ``repeats`` and ``step_time_s``, ``energy_per_token_j``, ``tokens_to_target``, ``energy_to_target_j``,
        ``mean_power_w``, each with ``_lo`` and ``_hi`` (null where no spread is known), by rising ``x``.

    Raises
    ------
    ValueError
        ``x`` is missing, or a quantity is not positive.

    Examples
    --------
    >>> runs = pl.DataFrame({"x": [8, 8, 16], "energy_per_token_j": [2.0, 2.2, 1.5], "tokens_to_target": [10, 10, 12]})
    >>> curves(runs).select("x", "repeats", pl.col("energy_to_target_j").round(6)).rows()
    [(8.0, 2, 21.0), (16.0, 1, 18.0)]
    """
    checked = sweep_points.check(runs)
    settings = checked.group_by("x").agg(repeats=pl.len().cast(pl.Int64)).sort("x")
    points = {q: sweep_points.of(checked, pl.col(q), sweep_points.noise_of(q)) for q in sweep_points.QUANTITIES}
    points["energy_to_target_j"] = product(points["energy_per_token_j"], points["tokens_to_target"])
    columns = [column for name, point in points.items() for column in _interval(name, point)]
    order = [c for c in table("sweeps").schema if c not in ("sweep", "knob")]
    return settings.with_columns(*columns).select(order)


def product(a: Points, b: Points) -> Points:
    """Return the points of a product of two independent quantities.

    Parameters
    ----------
    a, b
        Points over the same settings.

    Returns
    -------
    Points
        Means multiplied, relative variances added (Welch-Satterthwaite degrees of freedom).
    """
    va, vb = a.se**2, b.se**2
    with np.errstate(invalid="ignore", divide="ignore"):
        total = va + vb
        dof = np.where(total > 0, total**2 / (va**2 / a.dof + vb**2 / b.dof), 1e6)
    return Points(a.x, a.mean + b.mean, np.sqrt(total), dof, np.minimum(a.n, b.n))


def _interval(name: str, points: Points) -> list[pl.Series]:
    """Return a quantity and the ends of its 95 % interval as columns."""
    known = np.isfinite(points.se) & (points.dof > 0)
    quantile = distributions.student_quantile(0.975, np.where(known, points.dof, 1.0))
    half: Array = np.where(known, quantile * np.nan_to_num(points.se), np.nan)
    values = {name: points.mean, f"{name}_lo": points.mean - half, f"{name}_hi": points.mean + half}
    return [pl.Series(column, np.exp(v)).fill_nan(None) for column, v in values.items()]
