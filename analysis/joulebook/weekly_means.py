"""Runs week by week: what can be compared, and its means."""

from __future__ import annotations

import numpy as np
import polars as pl

from joulebook import distributions

HIGHER_IS_BETTER = ("tokens_per_j", "tokens_per_s", "mfu_ratio")
"""Metrics that fall when things get worse; all others rise."""


OF_THE_WHOLE_RUN = ("energy_j", "marginal_energy_j", "facility_energy_j", "carbon_kg", "cost", "duration_s")
"""Metrics that grow with the work done: compared only between runs that did the same."""


SHARES = ("waste_ratio",)
"""Metrics that may be nought: their effect is a difference in shares, not a ratio."""


GROUP = ("kind", "scope", "metric")


_NEEDED = ("run_id", "week", *GROUP, "value")


def by_week(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the mean of each week, with the 95 % interval that the spread of its runs gives it.

    Parameters
    ----------
    runs
        As for :func:`compare`.

    Returns
    -------
    polars.DataFrame
        ``kind, scope, metric, week, n, value, lo, hi``; ``lo`` and ``hi`` are null for a single run.

    Examples
    --------
    >>> rows = pl.DataFrame({"run_id": ["a", "b"], "week": "2026-W47", "kind": "", "scope": "node",
    ...     "metric": "tokens_per_j", "value": [1.0, 4.0]})
    >>> by_week(rows)["value"].item()
    2.0
    """
    means = means_of(comparable(checked(runs)), "week")
    half = pl.col("sd") / pl.col("n").sqrt() * t_quantile(means["n"].cast(pl.Float64) - 1)
    shown = means.select(
        *GROUP, "week", "n", value=back("mean"), lo=back(pl.col("mean") - half), hi=back(pl.col("mean") + half)
    )
    return shown.sort(*GROUP, "week")


def checked(runs: pl.DataFrame) -> pl.DataFrame:
    """Return runs with all columns that are asked for.

    Raises
    ------
    ValueError
        A column is missing.
    """
    missing = [c for c in _NEEDED if c not in runs.columns]
    if missing:
        raise ValueError(f"runs: no column {', '.join(missing)}; it has {', '.join(runs.columns)}")
    absent = {"tokens": pl.lit(None, pl.Float64), "declared": pl.lit(False)}
    return runs.with_columns(**{c: e for c, e in absent.items() if c not in runs.columns})


def comparable(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the values that can be compared, as logarithms but for shares."""
    share = pl.col("metric").is_in(SHARES)
    usable = pl.col("value").is_not_null() & pl.col("value").is_finite() & (share | (pl.col("value") > 0))
    # The logarithm of a share of nought is never used; one is put in its place so that no infinity is made.
    logged = pl.when(share).then(1.0).otherwise(pl.col("value")).log()
    return runs.filter(usable).with_columns(y=pl.when(share).then("value").otherwise(logged))


def means_of(rows: pl.DataFrame, *more: str) -> pl.DataFrame:
    """Return number, mean and standard deviation of each kind, scope and metric, and of ``more`` columns."""
    return rows.group_by(*GROUP, *more, maintain_order=True).agg(
        n=pl.len().cast(pl.Int64), mean=pl.col("y").mean(), sd=pl.col("y").std()
    )


def back(value: str | pl.Expr) -> pl.Expr:
    """Return a mean as it is read: of shares itself, else the number whose logarithm it is."""
    y = pl.col(value) if isinstance(value, str) else value
    return pl.when(pl.col("metric").is_in(SHARES)).then(y).otherwise(y.exp())


def t_quantile(dof: pl.Series) -> pl.Series:
    """Return the 97.5 % quantile of Student's t, null without a degree of freedom."""
    values = dof.cast(pl.Float64).fill_null(np.nan).to_numpy()
    quantile = distributions.student_quantile(0.975, np.where(values > 0, values, 1.0))
    return pl.Series("t", np.where(values > 0, quantile, np.nan)).fill_nan(None)
