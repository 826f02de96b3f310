"""How much power varies: coefficient of variation without trend and outliers, with interval, against usual bands."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import distributions, stats, totals
from joulebook.findings import Estimate, Finding, Severity
from joulebook.variability_cv import estimate_cv, plain_cv

Array = npt.NDArray[np.float64]

USUAL_CV: Final = (0.05, 0.2)
"""Band of the coefficient of variation that is usual in training."""

HIGH_CV: Final = 0.25
"""Coefficient of variation above which a look is due."""


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
            f"The sensor moves in steps of {resolution_w:.6g} W, so a reading is good to ±{error:.3g} W; "
            f"mean {mean:.4g} W and variation {plain:.2g} are no finer than that."
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
