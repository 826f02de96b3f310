"""The law of the critical batch size, fitted to tokens to target and tested before it is believed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from joulebook import distributions, sweep_points
from joulebook.findings import Estimate, Finding, Severity

LEAST_SETTINGS = 4
"""Two numbers are fitted; two more settings are needed to test the law."""
REJECT_P = 0.01
"""Chance of the misfit below which the law is rejected."""
FARTHEST_RATIO = 10.0
"""A critical batch size beyond this many times the largest tried is not bounded by the data."""


@dataclass(frozen=True)
class CriticalBatch:
    """The fit of E(b) = E_min (1 + b / B_crit).

    Parameters
    ----------
    batch
        Critical batch size, in the unit of ``x``: at it a run needs twice the least tokens; refused where the law does
        not hold.
    least_tokens
        Tokens to target at very small batches.
    p_value
        Chance of a misfit as large if the law held; null where it could not be tested.
    settings
        ``x``, ``tokens_to_target``, ``fitted``, ``residual_ratio``.
    findings
        Why the law was rejected, where it was.
    """

    batch: Estimate
    least_tokens: Estimate
    p_value: float | None
    settings: pl.DataFrame
    findings: tuple[Finding, ...] = ()


def fit(runs: pl.DataFrame) -> CriticalBatch:
    """Return the critical batch size from tokens to target over batch sizes.

    Weighted least squares of a straight line in the batch size; the misfit is held against the spread over runs.

    Parameters
    ----------
    runs
        One row a run: ``x`` (batch size) and ``tokens_to_target``; at least four sizes with a spread.

    Returns
    -------
    CriticalBatch
        Its estimates are refused where the line misfits (chance below 0.01), falls with the batch size, or puts the
        critical size beyond ten times the largest tried.

    Raises
    ------
    ValueError
        ``x`` is missing, or tokens are not positive.

    References
    ----------
    McCandlish et al., An Empirical Model of Large-Batch Training, arXiv:1812.06162.

    Examples
    --------
    >>> x = [8.0, 16, 32, 64] * 3
    >>> tokens = [(1 + b / 50) * (1 + (i // 4 - 1) / 100) for i, b in enumerate(x)]
    >>> round(fit(pl.DataFrame({"x": x, "tokens_to_target": tokens})).batch.value)
    50
    """
    points = sweep_points.of(
        sweep_points.check(runs), pl.col("tokens_to_target"), sweep_points.noise_of("tokens_to_target")
    )
    known = np.isfinite(points.mean) & np.isfinite(points.se)
    x, tokens, error = points.x[known], np.exp(points.mean[known]), points.se[known]
    if x.size < LEAST_SETTINGS or not (error > 0).all():
        why = f"{x.size} batch sizes with tokens to target and their spread: at least {LEAST_SETTINGS} are needed"
        if x.size >= LEAST_SETTINGS:
            why = "tokens to target have no spread over runs (read off too coarsely), so the law cannot be tested"
        return _refuse(why, None, _settings(x, tokens, np.full(x.size, np.nan)))
    weight = 1 / (error * tokens)
    design = np.column_stack([np.ones(x.size), x])
    scaled = design * weight[:, None]
    coefficient, *_ = np.linalg.lstsq(scaled, tokens * weight, rcond=None)
    level, slope = (float(c) for c in coefficient)
    chi2 = float(np.sum(((tokens - design @ coefficient) * weight) ** 2))
    p = _misfit(chi2, x.size - 2, float(np.median(points.dof[known])))
    settings = _settings(x, tokens, design @ coefficient)
    why = _objection(level, slope, p, chi2 / (x.size - 2), float(x[-1]))
    if why:
        return _refuse(why, p, settings)
    covariance = np.asarray(np.linalg.inv(scaled.T @ scaled), dtype=np.float64)
    return _accept(level, slope, covariance, p=p, settings=settings, n=x.size)


def _misfit(chi2: float, dof: int, error_dof: float) -> float:
    """Return the chance of the misfit: F and not chi-squared, since the errors are estimates themselves."""
    return float(distributions.f_tail(chi2 / dof, dof, error_dof))


def _objection(level: float, slope: float, p: float, reduced: float, largest: float) -> str:
    """Return why the law cannot be used, or nothing."""
    if p < REJECT_P:
        return f"tokens to target do not grow linearly with the batch size (chi2/dof {reduced:.1f}, p {p:.2g})"
    if level <= 0 or slope <= 0:
        return "tokens to target do not grow with the batch size from a positive start: no critical size follows"
    if level / slope > FARTHEST_RATIO * largest:
        return (
            f"the critical size {level / slope:.3g} lies beyond {FARTHEST_RATIO:g} times the largest tried "
            f"({largest:g}): it is not bounded by the data"
        )
    return ""


def _accept(
    level: float, slope: float, covariance: sweep_points.Array, *, p: float, settings: pl.DataFrame, n: int
) -> CriticalBatch:
    size = level / slope
    # Relative error of a ratio of two fitted numbers that hang together; on the log scale it cannot turn negative.
    gradient = np.array([1 / level, -1 / slope])
    relative = float(np.sqrt(gradient @ covariance @ gradient))
    ends = (size * float(np.exp(-1.96 * relative)), size * float(np.exp(1.96 * relative)))
    sd = float(np.sqrt(covariance[0, 0]))
    method = "E = E_min (1 + b/B), weighted"
    return CriticalBatch(
        Estimate(size, *ends, unit="", n=n, method=method),
        Estimate(level, level - 1.96 * sd, level + 1.96 * sd, unit="", n=n, method=method),
        p, settings,
    )  # fmt: skip


def _refuse(why: str, p: float | None, settings: pl.DataFrame) -> CriticalBatch:
    refused = Estimate.refused(why, n=settings.height)
    finding = Finding("critical-batch-refused", Severity.NOTE, "tokens_to_target", why, {"p_value": p})
    return CriticalBatch(refused, refused, p, settings, (finding,))


def _settings(x: sweep_points.Array, tokens: sweep_points.Array, fitted: sweep_points.Array) -> pl.DataFrame:
    frame = pl.DataFrame({"x": x, "tokens_to_target": tokens, "fitted": fitted}).with_columns(
        pl.col("fitted").fill_nan(None)
    )
    return frame.with_columns(residual_ratio=pl.col("tokens_to_target") / pl.col("fitted") - 1)
