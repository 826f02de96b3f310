"""Run-level comparison of variants: differences of log values at equal inlet temperature.

A run is the unit: readings inside a run hang together and are no replicates. The model is a straight line in the
covariates beside one level a variant (and one a block where runs are paired), on the logarithm, so that an effect is a
ratio.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import distributions

Array = npt.NDArray[np.float64]

DRIFT_P = 0.002
"""Below this chance, a trend over time within the variants is taken as real and goes into the model."""
SPREAD_P = 0.001
"""Below this chance (Bartlett), variants scatter differently and each pair is compared on its own spread."""
LEAST_DOF = 2
"""Degrees of freedom that a further covariate must leave."""
POWER = 0.8
"""Chance to see the minimum detectable effect."""


@dataclass(frozen=True)
class Design:
    """What the model holds beside the variants.

    Parameters
    ----------
    covariates
        Columns that enter as straight lines, e.g. ``("inlet_c",)``.
    block
        Column of pairing (same workload or machine), empty for none.
    pooled
        Whether all variants share one spread and one slope, or each pair has its own.
    drift_p
        Chance of the trend over time within variants if there were none; null where it could not be tested.
    """

    covariates: tuple[str, ...] = ()
    block: str = ""
    pooled: bool = True
    drift_p: float | None = None


@dataclass(frozen=True)
class Contrast:
    """Difference of two variants on the log scale.

    Parameters
    ----------
    log_before, log_after
        Levels at the mean of the covariates.
    log_ratio
        After minus before.
    se
        Standard error of ``log_ratio``.
    dof
        Degrees of freedom behind it.
    p_value
        Chance of such a difference if there were none, not corrected.
    """

    log_before: float
    log_after: float
    log_ratio: float
    se: float
    dof: int
    p_value: float

    @property
    def half(self) -> float:
        """Half width of the 95 % interval of ``log_ratio``."""
        return float(distributions.student_quantile(0.975, self.dof)) * self.se

    @property
    def effect_ratio(self) -> float:
        """After / before − 1."""
        return math.expm1(self.log_ratio)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of ``effect_ratio``."""
        return math.expm1(self.log_ratio - self.half), math.expm1(self.log_ratio + self.half)

    @property
    def detectable_ratio(self) -> float:
        """Least effect seen with a chance of 80 % at 5 %, not corrected."""
        quantiles = distributions.student_quantile(0.975, self.dof) + distributions.student_quantile(POWER, self.dof)
        return math.expm1(float(quantiles) * self.se)


@dataclass(frozen=True)
class _Fitted:
    columns: tuple[str, ...]
    coefficient: Array
    covariance: Array
    dof: int
    residual: Array


def choose(runs: pl.DataFrame, *, response: str = "log_value") -> Design:
    """Return the model that the runs allow and need.

    Inlet temperature enters where every run has it and it varies within variants; the place in time enters where the
    runs drift within variants (chance below 0.002) and its slope can be told from the rest.

    Parameters
    ----------
    runs
        ``variant``, the response and optionally ``inlet_c`` [°C], ``hours`` [h], ``block``.
    response
        Column with the logarithm of the metric.

    Returns
    -------
    Design
        For ``contrast`` and ``slope``.

    Examples
    --------
    >>> runs = pl.DataFrame({"variant": ["a", "a", "b", "b"], "log_value": [0.0, 0.1, 0.0, 0.1]})
    >>> choose(runs).covariates
    ()
    """
    design = Design(block="block" if "block" in runs.columns else "")
    if _varies(runs, "inlet_c"):
        with_inlet = replace(design, covariates=("inlet_c",))
        if _dof(runs, with_inlet, response) >= LEAST_DOF:
            design = with_inlet
    if _varies(runs, "hours"):
        with_drift = replace(design, covariates=(*design.covariates, "hours"))
        if _dof(runs, with_drift, response) >= LEAST_DOF:
            p = _p_of(_fit(runs, with_drift, response), "hours")
            design = replace(with_drift if p < DRIFT_P else design, drift_p=p)
    return replace(design, pooled=_same_spread(runs, design, response))


def contrast(
    runs: pl.DataFrame, before: str, after: str, *, design: Design, response: str = "log_value"
) -> Contrast | None:
    """Return the difference of two variants, or None where the runs leave no degree of freedom for it.

    Parameters
    ----------
    runs
        ``variant``, the response, and the columns that the design names.
    before, after
        The two variants.
    design
        From ``choose``.
    response
        Column with the logarithm of the metric.

    Returns
    -------
    Contrast or None
        Differences at equal covariates.

    Examples
    --------
    >>> runs = pl.DataFrame({"variant": ["a", "a", "b", "b"], "log_value": [0.0, 0.1, 1.0, 1.1]})
    >>> round(contrast(runs, "a", "b", design=Design()).log_ratio, 6)
    1.0
    """
    used = runs if design.pooled else runs.filter(pl.col("variant").is_in([before, after]))
    fitted = _fit(used, design, response)
    if fitted.dof < 1 or not {before, after} <= set(fitted.columns):
        return None
    pick = np.array([(c == after) - (c == before) for c in fitted.columns], dtype=np.float64)
    ratio = float(pick @ fitted.coefficient)
    se = math.sqrt(max(float(pick @ fitted.covariance @ pick), 0.0))
    level = dict(zip(fitted.columns, fitted.coefficient, strict=True))
    return Contrast(float(level[before]), float(level[after]), ratio, se, fitted.dof, _two_sided(ratio, se, fitted.dof))


def slope(
    runs: pl.DataFrame, covariate: str, *, design: Design, response: str = "log_value"
) -> tuple[float, float, float] | None:
    """Return a covariate's slope [relative per unit] with its 95 % interval, or None where the design lacks it.

    Parameters
    ----------
    runs, design, response
        As for ``contrast``.
    covariate
        Column of the design.
    """
    if covariate not in design.covariates:
        return None
    fitted = _fit(runs, design, response)
    at = fitted.columns.index(covariate)
    half = float(distributions.student_quantile(0.975, fitted.dof)) * math.sqrt(fitted.covariance[at, at])
    value = float(fitted.coefficient[at])
    return value, value - half, value + half


def _fit(runs: pl.DataFrame, design: Design, response: str) -> _Fitted:
    """Return the least-squares fit: levels of variants, then blocks (the first left out), then centred covariates."""
    arms = runs["variant"].unique(maintain_order=True).to_list()
    names, columns = list(arms), [(runs["variant"] == a).cast(pl.Float64).to_numpy() for a in arms]
    if design.block:
        for block in runs[design.block].unique(maintain_order=True).to_list()[1:]:
            names.append(f"block {block}")
            columns.append((runs[design.block] == block).cast(pl.Float64).to_numpy())
    for covariate in design.covariates:
        value = runs[covariate].cast(pl.Float64).to_numpy()
        names.append(covariate)
        columns.append(value - value.mean())
    x = np.column_stack(columns)
    y = runs[response].to_numpy()
    coefficient, _, rank, _ = np.linalg.lstsq(x, y, rcond=None)
    residual = y - x @ coefficient
    dof = int(y.size - rank)
    variance = float(residual @ residual) / dof if dof > 0 else math.nan
    deficient = rank < x.shape[1]
    return _Fitted(tuple(names), coefficient, np.linalg.pinv(x.T @ x) * variance, 0 if deficient else dof, residual)


def _varies(runs: pl.DataFrame, covariate: str) -> bool:
    """Return whether every run has the covariate and it varies within variants, so that its slope can be told."""
    if covariate not in runs.columns or runs[covariate].null_count() or not runs.height:
        return False
    within = runs.select(pl.col(covariate).cast(pl.Float64) - pl.col(covariate).mean().over("variant")).to_series()
    return bool(within.abs().max() > 1e-9)  # pyrefly: ignore[unsupported-operation]


def _dof(runs: pl.DataFrame, design: Design, response: str) -> int:
    return _fit(runs, design, response).dof


def _p_of(fitted: _Fitted, column: str) -> float:
    at = fitted.columns.index(column)
    return _two_sided(float(fitted.coefficient[at]), math.sqrt(max(float(fitted.covariance[at, at]), 0.0)), fitted.dof)


def _two_sided(value: float, se: float, dof: int) -> float:
    # Runs that repeat to the last digit leave no error; what differs then differs for certain.
    if se <= 1e-14:
        return 1.0 if abs(value) <= 1e-12 else 0.0
    return float(2 * distributions.student_tail(abs(value) / se, dof))


def _same_spread(runs: pl.DataFrame, design: Design, response: str) -> bool:
    """Return whether the variants scatter alike (Bartlett's test of the residuals)."""
    fitted = _fit(runs, design, response)
    groups = [g["r"].to_numpy() for g in runs.with_columns(r=pl.Series(fitted.residual)).partition_by("variant")]
    if len(groups) < 3 or min(g.size for g in groups) < 3 or min(float(np.ptp(g)) for g in groups) <= 1e-12:
        return True
    return _chance_of_spreads(groups) >= SPREAD_P


def _chance_of_spreads(groups: Sequence[Array]) -> float:
    """Return the chance that groups of one spread differ as much (Bartlett); ``scipy.stats`` takes a second to load."""
    dof = np.array([g.size - 1 for g in groups], dtype=np.float64)
    variance = np.array([g.var(ddof=1) for g in groups])
    apart = dof.sum() * math.log(dof @ variance / dof.sum()) - dof @ np.log(variance)
    small_sample = 1 + (np.sum(1 / dof) - 1 / dof.sum()) / (3 * (dof.size - 1))
    return float(distributions.chi_square_tail(apart / small_sample, dof.size - 1))
