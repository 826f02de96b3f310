"""The settings of a sweep with their means and spreads, from one row a run.

Spreads are relative (of logarithms), because meters and seeds scatter in per cent. With three repeats a setting's own
spread says little, so it is drawn towards the spread that all settings share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

Array = npt.NDArray[np.float64]

SHARED_DOF = 4.0
"""Weight of the shared variance, in degrees of freedom: as much as five repeats, so that two or three repeats are led
by the other settings and ten seeds speak for themselves."""

QUANTITIES = ("step_time_s", "energy_per_token_j", "tokens_to_target", "mean_power_w")


@dataclass(frozen=True)
class Points:
    """Means of the logarithm of one quantity, one value a setting.

    Parameters
    ----------
    x
        Settings, rising.
    mean
        Logarithm of the arithmetic mean over runs; NaN where no run has the quantity.
    se
        Standard error of ``mean`` [relative]; NaN where nothing is known of the spread.
    dof
        Degrees of freedom behind ``se``.
    n
        Runs with the quantity.
    """

    x: Array
    mean: Array
    se: Array
    dof: Array
    n: npt.NDArray[np.int64]

    def draws(self, n: int, rng: np.random.Generator) -> Array:
        """Return n draws of the means [log], shape (n, settings), spread as the t distribution of each."""
        spread = np.where(np.isfinite(self.se), self.se, 0.0)
        dof = np.where(np.isfinite(self.dof) & (self.dof > 0), self.dof, 1e6)
        drawn: Array = self.mean + spread * rng.standard_t(dof, size=(n, self.x.size))
        return drawn


def check(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs with every column of a sweep, null where the caller gave none.

    Parameters
    ----------
    runs
        One row a run: ``x`` and any of ``step_time_s``, ``energy_per_token_j``, ``tokens_to_target``,
        ``mean_power_w``, each optionally with ``_lo`` and ``_hi`` of its measurement.

    Returns
    -------
    pl.DataFrame
        The same rows: ``x`` and the quantities with their ends, as floats; NaN is null.

    Raises
    ------
    ValueError
        No column ``x``, or a value that is not positive where only positive ones make sense.

    Examples
    --------
    >>> check(pl.DataFrame({"x": [8], "mean_power_w": [300]})).columns[:3]
    ['x', 'step_time_s', 'step_time_s_lo']
    """
    if "x" not in runs.columns:
        raise ValueError(f"runs has no column x (the setting of the knob); it has {', '.join(runs.columns)}")
    wanted = [name + end for name in QUANTITIES for end in ("", "_lo", "_hi")]
    full = runs.select(
        pl.col("x").cast(pl.Float64),
        *(
            (pl.col(c).cast(pl.Float64).fill_nan(None) if c in runs.columns else pl.lit(None, pl.Float64)).alias(c)
            for c in wanted
        ),
    ).filter(pl.col("x").is_not_null())
    for name in QUANTITIES:
        bad = full.filter(pl.col(name) <= 0)
        if bad.height:
            raise ValueError(f"{name} = {bad[name][0]:g} at x = {bad['x'][0]:g}: positive values are allowed")
    return full


def of(runs: pl.DataFrame, value: pl.Expr, noise: pl.Expr) -> Points:
    """Return the means of a quantity by setting.

    Parameters
    ----------
    runs
        As ``check`` returns them.
    value
        The quantity, positive; null where a run has none.
    noise
        Relative standard uncertainty of its measurement; null where unknown.

    Returns
    -------
    Points
        One value for each setting in ``runs``.
    """
    table = (
        runs.select("x", v=value, u=noise)
        .group_by("x")
        .agg(
            mean=pl.col("v").mean().log(),
            variance=pl.col("v").drop_nulls().log().var(),
            noise=pl.col("u").filter(pl.col("v").is_not_null()).pow(2).mean(),
            n=pl.col("v").count(),
        )
        .sort("x")
    )
    n = table["n"].to_numpy().astype(np.int64)
    column = {
        c: table[c].cast(pl.Float64).fill_null(np.nan).to_numpy().copy() for c in ("x", "mean", "variance", "noise")
    }
    variance, dof = _shared(column["variance"], n)
    # A spread over runs already holds the noise of each measurement: the larger of the two counts, not their sum.
    floor = column["noise"]
    led_by_noise = np.isfinite(floor) & (np.isnan(variance) | (floor > variance))
    variance = np.where(led_by_noise, floor, variance)
    dof = np.where(led_by_noise, 1e6, dof)
    with np.errstate(invalid="ignore", divide="ignore"):
        se = np.sqrt(variance / n)
    return Points(column["x"], column["mean"], se, dof, n)


def _shared(variance: Array, n: npt.NDArray[np.int64]) -> tuple[Array, Array]:
    """Return variances drawn towards the one that all settings share, with their degrees of freedom."""
    own = np.where(np.isfinite(variance), n - 1, 0).astype(np.float64)
    total = own.sum()
    if total == 0:
        return np.full(n.size, np.nan), np.zeros(n.size)
    pooled = float(np.nansum(own * np.nan_to_num(variance)) / total)
    weight = min(SHARED_DOF, total)
    drawn = (weight * pooled + own * np.nan_to_num(variance)) / (weight + own)
    return np.where(n > 0, drawn, np.nan), weight + own


def noise_of(name: str) -> pl.Expr:
    """Return the relative standard uncertainty that a quantity's 95 % interval tells of.

    Parameters
    ----------
    name
        Quantity with ``_lo`` and ``_hi`` beside it.
    """
    return (pl.col(f"{name}_hi") - pl.col(f"{name}_lo")) / (2 * 1.96 * pl.col(name))
