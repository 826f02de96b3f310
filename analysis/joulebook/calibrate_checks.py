"""Which points can carry a calibration, which relations cannot be, and what the reader of one should be told."""

from __future__ import annotations

import numpy as np
import polars as pl

from joulebook import distributions
from joulebook.calibrate_line import CURVED_SE, Floats, Line
from joulebook.calibrate_points import COLUMNS
from joulebook.findings import Finding, Severity
from joulebook.schema import SCOPES

LEVEL_SE = 3.0
"""Two points are different levels when they differ by this many standard errors."""

LEVEL_SHARE = 0.02
"""... and by this share of the largest reading: two repeats of one load are one level."""

LEAST_RANGE = 0.3
"""Least range of the readings as a share of the largest."""

GAINS = (0.7, 1.5)
"""Gains outside of which two instruments do not measure the same machine."""

CURVED_SHARE = 0.01
"""Departure of the parabola from the line, as a share of the mean reference, from which on a line is refused."""

SCATTER_SHARE = 0.05
"""Largest scatter beyond the points' errors, as a share of the range of the reference."""

FACTOR = 3.0
"""Readings that differ by more than this factor are of different units or boundaries, not in need of calibration."""


def clean(points: pl.DataFrame) -> pl.DataFrame:
    """Return the points with all columns, without nulls.

    Parameters
    ----------
    points
        Points, at least with ``reading_w`` and ``reference_w``.

    Returns
    -------
    pl.DataFrame
        With the columns ``COLUMNS`` first.

    Raises
    ------
    ValueError
        A column is missing.
    """
    missing = [c for c in ("reading_w", "reference_w") if c not in points.columns]
    if missing:
        raise ValueError(f"points: no column {', '.join(missing)}; they have {', '.join(points.columns)}")
    full = points.with_columns(
        *(pl.lit(0.0).alias(c) for c in ("reading_se_w", "reference_se_w") if c not in points.columns),
        *([pl.lit("").alias("recording")] if "recording" not in points.columns else []),
    ).drop_nulls(["reading_w", "reference_w"])
    full = full.with_columns(pl.col("reading_se_w", "reference_se_w").fill_null(0.0), pl.col("recording").fill_null(""))
    return full.select(*COLUMNS, *(c for c in full.columns if c not in COLUMNS))


def levels(points: pl.DataFrame) -> int:
    """Count distinct levels of the reading: neighbours in order that differ clearly."""
    rows = points.sort("reading_w")
    x, se = rows["reading_w"].to_numpy(), rows["reading_se_w"].to_numpy()
    count, base, least = 1, 0, LEVEL_SHARE * float(np.abs(x).max(initial=0.0))
    for i in range(1, x.size):
        if x[i] - x[base] > max(LEVEL_SE * float(np.hypot(se[i], se[base])), least):
            count, base = count + 1, i
    return count


def disagree(gap: Floats, variance: Floats) -> bool:
    """Return whether offsets differ beyond their errors and by more than half a watt."""
    i, j = int(np.argmin(gap)), int(np.argmax(gap))
    return bool(gap[j] - gap[i] > max(3 * np.sqrt(variance[i] + variance[j]), 0.5))


def inside(reading_scope: str, reference_scope: str) -> bool:
    """Return whether the reading's boundary lies within the reference's."""
    if reading_scope not in SCOPES or reference_scope not in SCOPES:
        return False
    return SCOPES.index(reading_scope) < SCOPES.index(reference_scope)


def impossible(points: pl.DataFrame, reading_scope: str, reference_scope: str) -> str:
    """Return the name of a relation that cannot be, or nothing."""
    x, y, sx, sy = (points[c].to_numpy() for c in COLUMNS[:4])
    if x.mean() > 0 and y.mean() > 0:
        ratio = float(y.mean() / x.mean())
        # a board can be a small part of its node at idle, never at its highest load
        top = float(y[np.argmax(x)] / x.max())
        if ratio < 1 / FACTOR or (not inside(reading_scope, reference_scope) and top > FACTOR):
            return (
                f"reference and reading differ by a factor of {ratio:.3g}: a wrong unit or boundary, not a calibration"
            )
    if not inside(reading_scope, reference_scope):
        return ""
    above = (x - y) / np.maximum(np.hypot(sx, sy), np.maximum(1e-3 * np.abs(y) / 3, 1e-9))
    worst = int(np.argmax(above))
    if above[worst] > 3:
        return (
            f"not physical: {reading_scope} reads {x[worst]:.1f} W, more than the {reference_scope} around it "
            f"({y[worst]:.1f} W)"
        )
    low, high = int(np.argmin(x)), int(np.argmax(x))
    rise, whole = x[high] - x[low], y[high] - y[low]
    error = float(np.sqrt(sx[low] ** 2 + sx[high] ** 2 + sy[low] ** 2 + sy[high] ** 2))
    if rise > LEVEL_SHARE * abs(x[high]) and rise - whole > max(3 * error, 0.02 * rise):
        return (
            f"not physical: {reading_scope} rises by {rise:.1f} W while the {reference_scope} around it rises by "
            f"{whole:.1f} W (ratio {whole / rise:.3f}); the sensor does not see all of the time, or the clocks differ"
        )
    return ""


def doubt(line: Line, x: Floats, y: Floats, reading_scope: str, reference_scope: str) -> str:
    """Return why a line is not believed, or nothing."""
    low, high = GAINS
    if not low <= line.gain <= high:
        return f"gain {line.gain:.3f} is outside {low} to {high}"
    if np.ptp(x) < LEAST_RANGE * np.abs(x).max():
        return f"the readings span {np.ptp(x):.1f} W, less than {LEAST_RANGE:.0%} of the largest"
    if inside(reading_scope, reference_scope) and line.offset + 3 * np.sqrt(line.covariance[0, 0]) < 0:
        return f"not physical: offset {line.offset:.1f} W, so the {reference_scope} would draw less than its parts"
    if line.extra_w > SCATTER_SHARE * np.ptp(y):
        return f"the points scatter by {line.extra_w:.1f} W more than their errors: not one relation"
    c, se = line.curvature
    if np.isfinite(c) and se > 0 and abs(c) / se > CURVED_SE and line.sag_w > CURVED_SHARE * abs(y.mean()):
        return f"curved: a parabola departs from the line by {line.sag_w:.1f} W, {abs(c) / se:.0f} standard errors"
    return ""


def carried_w(line: Line) -> float:
    """Return the departure of a small but proven curvature from the line [W]."""
    c, se = line.curvature
    return line.sag_w if np.isfinite(c) and se > 0 and abs(c) / se > CURVED_SE else 0.0


def notes(line: Line, frame: pl.DataFrame, subject: str) -> tuple[Finding, ...]:
    """Return what the reader of a calibration should know."""
    out: list[Finding] = []
    for row in frame.filter(~pl.col("kept")).iter_rows(named=True):
        out.append(Finding(
            "calibration-outlier", Severity.WARNING, subject,
            f"The point at {row['reading_w']:.1f} W lies {row['residual_w']:+.1f} W off the line of the others and was "
            "left out. Look at what the machine did then.",
            {"reading_w": row["reading_w"], "residual_w": row["residual_w"]},
        ))  # fmt: skip
    if line.extra_w > 0:
        out.append(Finding(
            "calibration-scatter", Severity.NOTE, subject,
            f"The points scatter by {line.extra_w:.2f} W more than their own errors; the intervals include it.",
            {"extra_w": line.extra_w, "reduced_chi2": line.reduced_chi2},
        ))  # fmt: skip
    if not np.isfinite(line.between_w):
        out.append(Finding(
            "calibration-one-recording", Severity.NOTE, subject,
            "All points are from one recording: how much another day differs is not known and not in the interval.",
        ))  # fmt: skip
    if carried_w(line) > 0:
        out.append(Finding(
            "calibration-curved", Severity.NOTE, subject,
            f"The relation is slightly curved: up to {line.sag_w:.2f} W off the line, added to every interval.",
            {"sag_w": line.sag_w, "p_value": float(2 * distributions.normal_tail(abs(line.curvature[0] / line.curvature[1])))},
        ))  # fmt: skip
    return tuple(out)
