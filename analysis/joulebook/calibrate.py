"""What a reading says in terms of a reference: ``reference = gain * reading + offset_w``, where that may be said."""

from __future__ import annotations

import numpy as np
import polars as pl

from joulebook import calibrate_checks, calibrate_line
from joulebook.calibrate_line import Line
from joulebook.calibrate_points import COLUMNS, by_bin, from_segments
from joulebook.calibration import Z95, Applied, Calibration, apply, predict, refused
from joulebook.findings import Finding, Severity

points = from_segments

__all__ = ["Applied", "Calibration", "apply", "by_bin", "fit", "from_segments", "points", "predict", "refused"]


def fit(
    points: pl.DataFrame, *, reading_scope: str = "", reference_scope: str = "", subject: str = "calibration"
) -> Calibration:
    """Fit a calibration to points, as far as they carry one.

    One level gives an offset; two levels give an offset where both agree on it; three or more give a line. Relations
    that cannot be (a part that draws more than its whole, or rises by more) are named and refused.

    Parameters
    ----------
    points
        ``reading_w``, ``reference_w`` [W]; optionally their standard errors ``reading_se_w``, ``reference_se_w`` [W]
        and ``recording`` (which measurement a point is from).
    reading_scope, reference_scope
        Boundaries of both; where the reading's is the narrower one, physics is checked.
    subject
        Name for findings.

    Returns
    -------
    Calibration

    Raises
    ------
    ValueError
        A column is missing.

    References
    ----------
    D. York et al., Am. J. Phys. 72, 367 (2004), doi:10.1119/1.1632486.

    Examples
    --------
    >>> one = fit(pl.DataFrame({"reading_w": [135.0], "reference_w": [125.0]}))
    >>> one.status, one.offset_w
    ('offset-only', -10.0)
    >>> watts = [100.0, 200.0, 300.0, 400.0]
    >>> line = fit(pl.DataFrame({"reading_w": watts, "reference_w": [130.0, 240.0, 350.0, 460.0]}))
    >>> round(line.gain, 6), round(line.offset_w, 6)
    (1.1, 20.0)
    """
    clean = calibrate_checks.clean(points)
    if clean.is_empty():
        return refused("no points", subject=subject)
    impossible = calibrate_checks.impossible(clean, reading_scope, reference_scope)
    if impossible:
        return refused(impossible, subject=subject, code="not-physical", frame=clean)
    levels = calibrate_checks.levels(clean)
    if levels < 3:
        return _offset_only(clean, levels, subject)
    x, y, sx, sy = (clean[c].to_numpy() for c in COLUMNS[:4])
    groups = clean["recording"].rank("dense").cast(pl.Int64).to_numpy()
    line = calibrate_line.through(x, y, sx, sy, groups)
    doubt = calibrate_checks.doubt(line, x[line.kept], y[line.kept], reading_scope, reference_scope)
    if doubt:
        return refused(doubt, subject=subject, frame=clean)
    return _calibrated(line, clean, subject)


def _offset_only(points: pl.DataFrame, levels: int, subject: str) -> Calibration:
    """Return the offset that one or two levels give, or the refusal where two levels disagree on it."""
    gap = (points["reference_w"] - points["reading_w"]).to_numpy()
    variance = (points["reading_se_w"] ** 2 + points["reference_se_w"] ** 2).to_numpy() + 1e-12
    weight = 1 / variance
    offset = float(weight @ gap / weight.sum())
    se = float(np.sqrt(1 / weight.sum()))
    q = float(weight @ (gap - offset) ** 2)
    if levels == 2 and (calibrate_checks.disagree(gap, variance) or q / max(len(gap) - 1, 1) > 9):
        lo, hi = float(points["reading_w"].min()), float(points["reading_w"].max())  # pyrefly: ignore[bad-argument-type]
        return refused(
            f"two levels only ({lo:.0f} and {hi:.0f} W), and they do not agree on an offset "
            f"({gap.min():+.1f} to {gap.max():+.1f} W): a third load is needed to check a line",
            subject=subject, frame=points,
        )  # fmt: skip
    if len(gap) > 1:
        se *= max(1.0, float(np.sqrt(q / (len(gap) - 1))))
    what = "one level" if levels == 1 else "two levels that agree"
    reason = f"{what}: an offset only, the gain is taken as 1"
    finding = Finding(
        "calibration-offset-only", Severity.WARNING, subject,
        f"The calibration rests on {what}. It gives an offset of {offset:+.1f} W; nothing is known of the gain. "
        "Measure two more loads.",
        {"offset_w": offset, "levels": levels},
    )  # fmt: skip
    frame = points.with_columns(
        (pl.col("reading_w") + offset).alias("fitted_w"),
        (pl.col("reference_w") - pl.col("reading_w") - offset).alias("residual_w"),
        pl.lit(True).alias("kept"),
    )
    return Calibration(
        1.0, None, None, offset, offset - Z95 * se, offset + Z95 * se,
        float(points["reading_w"].min()), float(points["reading_w"].max()),  # pyrefly: ignore[bad-argument-type]
        len(points), "offset-only", reason, covariance=(se**2, 0.0, 0.0), frame=frame, findings=(finding,),
    )  # fmt: skip


def _calibrated(line: Line, points: pl.DataFrame, subject: str) -> Calibration:
    """Turn a line into a calibration."""
    se_offset, se_gain = (float(s) for s in np.sqrt(np.diag(line.covariance)))
    t = line.quantile
    frame = points.with_columns(
        (line.offset + line.gain * pl.col("reading_w")).alias("fitted_w"),
        (pl.col("reference_w") - line.offset - line.gain * pl.col("reading_w")).alias("residual_w"),
        pl.Series("kept", line.kept),
    )
    used = frame.filter("kept")
    between = line.between_w if np.isfinite(line.between_w) else None
    return Calibration(
        line.gain, line.gain - t * se_gain, line.gain + t * se_gain,
        line.offset, line.offset - t * se_offset, line.offset + t * se_offset,
        float(used["reading_w"].min()), float(used["reading_w"].max()),  # pyrefly: ignore[bad-argument-type]
        len(used), "calibrated", f"{len(used)} points at {calibrate_checks.levels(used)} levels",
        (float(line.covariance[0, 0]), float(line.covariance[0, 1]), float(line.covariance[1, 1])), t, between,
        line.reduced_chi2, calibrate_checks.carried_w(line), frame, calibrate_checks.notes(line, frame, subject),
    )  # fmt: skip
