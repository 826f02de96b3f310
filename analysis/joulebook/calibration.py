"""A calibration as a value: the relation, its errors, where it holds, and what it turns readings into."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from joulebook.findings import Estimate, Finding, Severity

BEYOND_SHARE = 0.1
"""How far beyond its range a calibration is still used, as a share of the range."""

Z95 = 1.959964

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """A relation between a reading and a reference, with the range in which it holds.

    Parameters
    ----------
    gain, gain_lo, gain_hi
        Gain with its 95 % interval; the interval is ``None`` where the gain is taken as 1, all where refused.
    offset_w, offset_lo, offset_hi
        Offset with its 95 % interval [W].
    range_lo_w, range_hi_w
        Readings between which it holds [W].
    points
        Points that carry it.
    status
        ``calibrated``, ``offset-only`` or ``refused``.
    reason
        Why.
    covariance
        Of (offset, gain): three numbers, var(offset) [W2], cov [W], var(gain).
    quantile
        Half width of a 95 % interval in standard errors.
    between_w
        Standard deviation between recordings [W]; ``None`` with fewer than two.
    reduced_chi2
        Weighted residual squares per degree of freedom; about 1 where the points' errors are right.
    curvature_w
        Largest departure of a parabola from the line within the range [W]; carried in predictions.
    frame
        The points, with ``fitted_w``, ``residual_w`` [W] and ``kept``.
    findings
        What the reader should know.
    """

    gain: float | None
    gain_lo: float | None
    gain_hi: float | None
    offset_w: float | None
    offset_lo: float | None
    offset_hi: float | None
    range_lo_w: float | None
    range_hi_w: float | None
    points: int
    status: str
    reason: str
    covariance: tuple[float, float, float] = (0.0, 0.0, 0.0)
    quantile: float = Z95
    between_w: float | None = None
    reduced_chi2: float | None = None
    curvature_w: float = 0.0
    frame: pl.DataFrame | None = None
    findings: tuple[Finding, ...] = ()

    def _repr_html_(self) -> str:
        if self.gain is None or self.offset_w is None:
            return f"<p>calibration <b>{self.status}</b>: {self.reason}</p>"
        return (
            f"<p>calibration <b>{self.status}</b>: reference = {self.gain:.4f} · reading {self.offset_w:+.2f} W, "
            f"{self.range_lo_w:.0f} to {self.range_hi_w:.0f} W — {self.reason}</p>"
        )


@dataclass(frozen=True)
class Applied:
    """Readings turned into the reference's terms.

    Parameters
    ----------
    mean_w
        Mean of the calibrated power [W], or the refusal.
    frame
        The readings with ``power_w`` calibrated, ``power_lo``, ``power_hi`` (95 %, the calibration's error, common to
        all rows) and ``extrapolated``; empty where refused.
    findings
        What the reader should know.
    """

    mean_w: Estimate
    frame: pl.DataFrame
    findings: tuple[Finding, ...]


def refused(
    reason: str, *, subject: str = "calibration", code: str = "not-calibrated", frame: pl.DataFrame | None = None
) -> Calibration:
    """Return the refusal of a calibration.

    Parameters
    ----------
    reason
        Why.
    subject
        Name for the finding.
    code
        Code of the finding.
    frame
        The points, where there are any.

    Returns
    -------
    Calibration

    Examples
    --------
    >>> refused("no points").status
    'refused'
    """
    finding = Finding(code, Severity.WARNING, subject, f"No calibration: {reason}.", {"reason": reason})
    n = 0 if frame is None else len(frame)
    return Calibration(
        None, None, None, None, None, None, None, None, n, "refused", reason, frame=frame, findings=(finding,)
    )


def predict(calibration: Calibration, mean_w: float, *, se_w: float = 0.0) -> Estimate:
    """Return what the reference would say for a mean reading.

    Parameters
    ----------
    calibration
        Calibration.
    mean_w
        Mean reading [W].
    se_w
        Its standard error [W].

    Returns
    -------
    Estimate
        Power [W]; refused where the calibration is, or more than 10 % of its range away from it.

    Examples
    --------
    >>> from joulebook import calibrate
    >>> one = calibrate.fit(pl.DataFrame({"reading_w": [135.0], "reference_w": [125.0]}))
    >>> predict(one, 425.0).value
    415.0
    """
    c, method = calibration, "calibrated"
    if c.gain is None or c.offset_w is None or c.range_lo_w is None or c.range_hi_w is None:
        return Estimate.refused(f"calibration refused: {c.reason}", unit="W", method=method)
    margin = BEYOND_SHARE * (c.range_hi_w - c.range_lo_w)
    outside = not c.range_lo_w - margin <= mean_w <= c.range_hi_w + margin
    if outside and c.status == "calibrated":
        return Estimate.refused(
            f"{mean_w:.1f} W is beyond the calibrated range of {c.range_lo_w:.1f} to {c.range_hi_w:.1f} W",
            unit="W", method=method,
        )  # fmt: skip
    value = c.gain * mean_w + c.offset_w
    half = float(half_width(c, np.array([mean_w]), se_w)[0])
    reason = c.reason if c.status == "offset-only" else ""
    return Estimate(value, value - half, value + half, "W", method=f"{method} ({c.status})", reason=reason)


def half_width(c: Calibration, reading_w: Floats, se_w: float) -> Floats:
    """Return the half width of the 95 % interval of calibrated means [W]."""
    var_offset, cov, var_gain = c.covariance
    variance = var_offset + 2 * cov * reading_w + var_gain * reading_w**2
    variance = variance + (c.between_w or 0.0) ** 2 + ((c.gain or 1.0) * se_w) ** 2
    return np.asarray(c.quantile * np.sqrt(np.maximum(variance, 0.0)) + c.curvature_w)


def apply(calibration: Calibration, power: pl.DataFrame) -> Applied:
    """Turn a total power's readings into the reference's terms.

    Parameters
    ----------
    calibration
        Calibration.
    power
        Readings of the scope as a whole with ``power_w`` [W].

    Returns
    -------
    Applied
        Refused where the calibration is, or the mean reading is more than 10 % of the range away from it.

    Raises
    ------
    ValueError
        No column ``power_w``.

    Examples
    --------
    >>> from joulebook import calibrate
    >>> one = calibrate.fit(pl.DataFrame({"reading_w": [135.0], "reference_w": [125.0]}))
    >>> apply(one, pl.DataFrame({"power_w": [425.0]})).frame["power_w"].item()
    415.0
    """
    if "power_w" not in power.columns:
        raise ValueError(f"power: no column power_w; it has {', '.join(power.columns)}")
    known = power["power_w"].drop_nulls().drop_nans()
    mean = Estimate.refused("no readings", unit="W") if known.is_empty() else predict(calibration, float(known.mean()))  # pyrefly: ignore[bad-argument-type]
    c = calibration
    if mean.value is None or c.gain is None or c.offset_w is None or c.range_lo_w is None or c.range_hi_w is None:
        finding = Finding("calibration-not-applied", Severity.WARNING, "power", f"Not calibrated: {mean.reason}.")
        return Applied(mean, power.clear(), (*c.findings, finding))
    margin = BEYOND_SHARE * (c.range_hi_w - c.range_lo_w)
    x = power["power_w"].cast(pl.Float64).to_numpy()
    half = pl.Series(half_width(c, x, 0.0))
    y = pl.Series(c.gain * x + c.offset_w)
    frame = power.with_columns(
        y.alias("power_w"), (y - half).alias("power_lo"), (y + half).alias("power_hi"),
        ~pl.col("power_w").is_between(c.range_lo_w - margin, c.range_hi_w + margin).alias("extrapolated"),
    )  # fmt: skip
    return Applied(replace(mean, n=len(known)), frame.with_columns(pl.col("extrapolated").fill_null(False)), c.findings)
