"""How much power varies: coefficient of variation without trend and outliers, with interval, against usual bands."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import distributions, qn, ranks, stats, totals
from joulebook.findings import Estimate, Finding, Severity

Array = npt.NDArray[np.float64]

USUAL_CV: Final = (0.05, 0.2)
"""Band of the coefficient of variation that is usual in training."""

HIGH_CV: Final = 0.25
"""Coefficient of variation above which a look is due."""

TREND_BLOCKS: Final = 40
"""Blocks whose medians give the trend."""

REJECT_SCALES: Final = 3.5
"""Distance from the trend beyond which a reading is an outlier [Qn]."""

LARGEST_REJECTED_RATIO: Final = 0.1
"""Share of outliers above which the readings are two levels, not one with outliers."""

MIN_N_EFF: Final = 20.0
"""Independent readings below which no coefficient of variation is given."""

DEGREES_FACTOR: Final = 0.9
"""Share of the effective readings that counts as degrees of freedom, since the scale is itself estimated."""

COARSE_STEP_SD: Final = 0.5
"""Sensor step, in standard deviations of the readings, from which it limits what the variation means."""


@dataclass(frozen=True)
class Variability:
    """Variation of the power of each device.

    Parameters
    ----------
    frame
        One row a device: ``device``, ``n``, ``mean_w`` [W], ``cv_ratio``, ``cv_lo``, ``cv_hi``, ``plain_cv_ratio``,
        ``rejected_ratio``, ``resolution_w`` [W], ``band``, ``reason``.
    estimates
        Coefficient of variation of each row.
    findings
        Flat, coarse or unusually restless sensors.
    """

    frame: pl.DataFrame
    estimates: tuple[Estimate, ...]
    findings: tuple[Finding, ...] = field(default=())


def plain_cv(power_w: npt.ArrayLike) -> float:
    """Return sample standard deviation / mean, trend and outliers included.

    Parameters
    ----------
    power_w
        Readings [W].

    Returns
    -------
    float
        Ratio; not-a-number for fewer than two readings or a mean of zero.

    Examples
    --------
    >>> round(plain_cv([90.0, 100.0, 110.0]), 3)
    0.1
    """
    array = stats.finite(power_w)
    mean = float(array.mean()) if array.size else 0.0
    return float(array.std(ddof=1)) / mean if array.size > 1 and mean != 0.0 else math.nan


def band(cv_ratio: float) -> str:
    """Return the word for a coefficient of variation: low, usual, raised or high.

    Examples
    --------
    >>> [band(x) for x in (0.01, 0.1, 0.22, 0.3)]
    ['low', 'usual', 'raised', 'high']
    """
    low, usual = USUAL_CV
    limits = ((low, "low"), (usual, "usual"), (HIGH_CV, "raised"))
    return next((word for limit, word in limits if cv_ratio <= limit), "high")


def _theil_sen(values: Array, places: Array) -> float:
    """Return the median of the slopes between all pairs; places increase."""
    later = places[:, None] > places
    return ranks.median((values[:, None] - values)[later] / (places[:, None] - places)[later])


def _detrended(array: Array) -> Array:
    """Return residuals about the Theil-Sen line through block medians, which outliers do not tilt."""
    blocks = min(TREND_BLOCKS, array.size // 3)
    if blocks < 3:
        return array - ranks.median(array)
    edges = np.linspace(0, array.size, blocks + 1).astype(np.int64)
    medians = np.array([ranks.median(array[a:b]) for a, b in pairwise(edges)])
    centers = (edges[:-1] + edges[1:] - 1) / 2.0
    slope = _theil_sen(medians, centers)
    residual = array - slope * np.arange(array.size)
    return np.asarray(residual - ranks.median(residual))


def _effective_squares(kept: Array) -> float:
    """Return how many independent squares the residuals hold."""
    r = float(np.clip(stats.lag1(kept), -0.99, 0.99))
    by_lag = kept.size * (1.0 - r * r) / (1.0 + r * r)
    return min(stats.effective_n((kept - kept.mean()) ** 2), by_lag)


def estimate_cv(power_w: npt.ArrayLike) -> tuple[Estimate, float]:
    """Estimate the coefficient of variation about the trend, outliers left out.

    Parameters
    ----------
    power_w
        Readings at equal steps [W].

    Returns
    -------
    Estimate
        Ratio with 95 % interval; refused for a flat sensor, too few independent readings, or two levels.
    float
        Share of the readings that were left out as outliers.

    References
    ----------
    Rousseeuw, Croux, doi:10.1080/01621459.1993.10476408.

    Examples
    --------
    >>> import numpy as np
    >>> estimate, rejected = estimate_cv(np.random.default_rng(0).normal(300.0, 9.0, 2000))
    >>> estimate.lo < 0.03 < estimate.hi, rejected < 0.01
    (True, True)
    """
    method = "sd about the trend without outliers / mean"
    array = stats.finite(power_w)
    n = int(array.size)
    if n < 3:
        return Estimate.refused(f"only {n} readings", n=n, method=method), 0.0
    if np.ptp(array) == 0.0:
        reason = f"all {n} readings are equal: a flat sensor, not a variation of zero"
        return Estimate.refused(reason, n=n, method=method), 0.0
    residual = _detrended(array)
    scale = qn.scale(residual)
    keep = np.abs(residual) <= REJECT_SCALES * scale if scale > 0.0 else np.ones(n, np.bool_)
    rejected = 1.0 - float(keep.mean())
    if rejected > LARGEST_REJECTED_RATIO:
        low, high = float(np.median(array[keep])), float(np.median(array[~keep]))
        reason = f"{rejected:.0%} of the readings lie at another level ({high:.6g} W beside {low:.6g} W)"
        return Estimate.refused(reason, n=n, method=method), rejected
    kept = residual[keep]
    n_eff = stats.effective_n(kept)
    if n_eff < MIN_N_EFF:
        reason = f"{n} readings are worth {n_eff:.1f} independent ones, {MIN_N_EFF:.0f} are needed"
        return Estimate.refused(reason, n=n, method=method), rejected
    mean = float(array[keep].mean())
    ratio = float(kept.std(ddof=1)) / math.sqrt(1.0 - 1.5 / n_eff) / mean
    degrees = max(DEGREES_FACTOR * _effective_squares(kept), 1.0)
    lo, hi = (ratio * math.sqrt(degrees / float(distributions.chi_square_quantile(q, degrees))) for q in (0.975, 0.025))
    return Estimate(ratio, lo, hi, n=n, n_eff=n_eff, method=method), rejected


def between_runs(mean_w: npt.ArrayLike) -> Estimate:
    """Estimate the coefficient of variation between runs of one kind.

    Parameters
    ----------
    mean_w
        Mean power of each run [W].

    Returns
    -------
    Estimate
        Ratio with 95 % interval; refused below three runs.

    Examples
    --------
    >>> between_runs([300.0, 306.0]).reason
    '2 runs, at least 3 are needed'
    >>> round(between_runs([300.0, 306.0, 303.0]).value, 4)
    0.0099
    """
    array = stats.finite(mean_w)
    n = int(array.size)
    if n < 3:
        return Estimate.refused(f"{n} runs, at least 3 are needed", n=n, method="sd between runs / mean")
    ratio = plain_cv(array)
    lo, hi = (ratio * math.sqrt((n - 1) / float(distributions.chi_square_quantile(q, n - 1))) for q in (0.975, 0.025))
    return Estimate(ratio, lo, hi, n=n, n_eff=float(n), method="sd between runs / mean")


def _findings(device: str, watts: Array, resolution_w: float, plain: float) -> list[Finding]:
    found = []
    mean = float(watts.mean()) if watts.size else 0.0
    if watts.size > 1 and resolution_w == 0.0:
        text = f"All {watts.size} readings are {mean:.6g} W: the sensor is flat or stuck, its variation is unknown."
        found.append(Finding("flat-sensor", Severity.WARNING, device, text, {"readings": int(watts.size)}))
    elif resolution_w > COARSE_STEP_SD * plain * mean:
        error = resolution_w / math.sqrt(12.0)
        text = (
            f"The sensor moves in steps of {resolution_w:.6g} W, so a reading is good to ±{error:.2f} W; "
            f"mean {mean:.2f} W, variation {plain:.3f} are no finer than that."
        )
        evidence = {"resolution_w": resolution_w, "resolution_error_w": error, "mean_w": mean, "cv_ratio": plain}
        found.append(Finding("coarse-sensor", Severity.NOTE, device, text, evidence))
    if plain > HIGH_CV:
        text = f"Power varies by {plain:.2f} of its mean; above {HIGH_CV} look at load, memory, temperature and caps."
        found.append(Finding("high-variation", Severity.WARNING, device, text, {"cv_ratio": plain}))
    return found


def measure(power: pl.DataFrame) -> Variability:
    """Measure the variation of each device.

    Parameters
    ----------
    power
        Power frame: ``device``, ``ts_utc``, ``power_w`` [W], best of one stable segment.

    Returns
    -------
    Variability
        One row a device.

    Raises
    ------
    ValueError
        Where ``power`` lacks a column.

    Examples
    --------
    >>> from datetime import UTC, datetime, timedelta
    >>> stamps = [datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=5 * s) for s in range(20)]
    >>> found = measure(pl.DataFrame({"device": "node", "ts_utc": stamps, "power_w": [98.0] * 12 + [112.0] * 8}))
    >>> found.findings[0].message[:69]
    'The sensor moves in steps of 14 W, so a reading is good to ±4.04 W; m'
    """
    totals.check(power)
    rows = []
    estimates: list[Estimate] = []
    findings: list[Finding] = []
    for (device,), frame in power.sort("ts_utc").group_by("device", maintain_order=True):
        watts = stats.finite(frame["power_w"].to_numpy())
        estimate, rejected = estimate_cv(watts)
        plain, step = plain_cv(watts), stats.resolution(watts)
        estimates.append(estimate)
        findings.extend(_findings(str(device), watts, step, plain))
        rows.append(
            {
                "device": device,
                "n": int(watts.size),
                "mean_w": float(watts.mean()) if watts.size else None,
                "cv_ratio": estimate.value,
                "cv_lo": estimate.lo,
                "cv_hi": estimate.hi,
                "plain_cv_ratio": plain,
                "rejected_ratio": rejected,
                "resolution_w": step,
                "band": band(plain) if step > 0.0 else "",
                "reason": estimate.reason,
            }
        )
    numbers = ("mean_w", "cv_ratio", "cv_lo", "cv_hi")
    schema = {name: pl.Float64 for name in numbers}
    return Variability(pl.DataFrame(rows, schema_overrides=schema), tuple(estimates), tuple(findings))


def rolling(power: pl.DataFrame, *, window_s: float) -> pl.DataFrame:
    """Return the plain coefficient of variation in consecutive windows of equal length.

    Parameters
    ----------
    power
        Power frame: ``device``, ``ts_utc``, ``power_w`` [W].
    window_s
        Length of a window [s].

    Returns
    -------
    polars.DataFrame
        ``device``, ``start_utc``, ``end_utc``, ``n``, ``mean_w`` [W], ``cv_ratio``; null ratio for a single reading.

    Raises
    ------
    ValueError
        Where the window is not positive, or ``power`` lacks a column.

    Examples
    --------
    >>> from datetime import UTC, datetime, timedelta
    >>> stamps = [datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=s) for s in range(4)]
    >>> power = pl.DataFrame({"device": "gpu:0", "ts_utc": stamps, "power_w": [90.0, 110.0, 100.0, 100.0]})
    >>> rolling(power, window_s=2.0)["cv_ratio"].round(3).to_list()
    [0.141, 0.0]
    """
    totals.check(power)
    if not window_s > 0.0:
        raise ValueError(f"window_s: {window_s} is not allowed; a window is longer than 0 s")
    width = f"{round(window_s * 1e6)}us"
    watts = pl.col("power_w")
    return (
        power.drop_nulls("power_w")
        .sort("device", "ts_utc")
        .group_by_dynamic("ts_utc", every=width, group_by="device")
        .agg(
            pl.len().cast(pl.Int64).alias("n"),
            watts.mean().alias("mean_w"),
            (watts.std() / watts.mean()).alias("cv_ratio"),
        )
        .rename({"ts_utc": "start_utc"})
        .with_columns(end_utc=pl.col("start_utc").dt.offset_by(width))
        .select("device", "start_utc", "end_utc", "n", "mean_w", "cv_ratio")
    )
