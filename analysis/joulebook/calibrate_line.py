"""A straight line through points with errors in both directions, its covariance, and what speaks against it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulebook import distributions, stats

Floats = NDArray[np.float64]

SUSPECTS = 24
"""Points that are looked at one by one for an outlier."""

ITERATIONS = 200
"""Most steps of York's iteration; it converges in about ten."""

OUTLIER_P = 0.01
"""Family-wise probability below which the worst point is called an outlier (at most one, and only of more than 4)."""

TRUST_P = 0.05
"""Probability of the residuals above which the points' own errors are taken as they are."""

SCATTER_P = 1e-3
"""Probability of the residuals below which the points are said to scatter more than their errors allow."""

CURVED_SE = 3.0
"""Curvature in its standard errors from which on the points are curved."""


@dataclass(frozen=True)
class Line:
    """A fitted line ``y = offset + gain x``.

    Parameters
    ----------
    gain, offset
        Coefficients [ratio, W].
    covariance
        Of (offset, gain), Birge factor and extra scatter included.
    quantile
        Student's t for a 95 % interval.
    kept
        Which points carry it.
    reduced_chi2
        Weighted residual squares per degree of freedom, before any inflation.
    extra_w
        Standard deviation that had to be added to every point [W].
    between_w
        Standard deviation between recordings [W]; ``nan`` with fewer than two.
    curvature
        Coefficient of ``(x - mean)^2`` [1/W], and its standard error.
    sag_w
        Largest departure of the parabola from the line within the points [W].
    """

    gain: float
    offset: float
    covariance: Floats
    quantile: float
    kept: NDArray[np.bool_]
    reduced_chi2: float
    extra_w: float
    between_w: float
    curvature: tuple[float, float]
    sag_w: float


def through(x: Floats, y: Floats, se_x: Floats, se_y: Floats, recording: NDArray[np.intp]) -> Line:
    """Fit a line to at least three points.

    York's unified solution; an outlier, at most one, leaves; where the rest still scatters beyond its errors, a common
    scatter is added to every point; what then remains widens the intervals (Birge).

    Parameters
    ----------
    x, y
        Readings and reference [W].
    se_x, se_y
        Their standard errors [W].
    recording
        Number of the recording that each point is from.

    Returns
    -------
    Line

    References
    ----------
    D. York et al., Am. J. Phys. 72, 367 (2004), doi:10.1119/1.1632486.
    """
    floor = 1e-6 * max(float(np.ptp(y)), 1.0)
    se_x, se_y = np.maximum(se_x, floor), np.maximum(se_y, floor)
    kept = np.ones(x.size, dtype=bool)
    worst = _outlier(x, y, se_x, se_y)
    if worst is not None:
        kept[worst] = False
    px, py, sx, sy, group = x[kept], y[kept], se_x[kept], se_y[kept], recording[kept]
    gain, offset, cov, chi2 = _york(px, py, sx, sy)
    dof = max(px.size - 2, 1)
    extra = 0.0
    if distributions.chi_square_tail(chi2, dof) < SCATTER_P:
        extra = _extra(px, py, sx, sy)
    between = _between(py - offset - gain * px, np.hypot(sy, extra), group)
    if extra > 0:
        gain, offset, cov, spread = _york(px, py, sx, np.hypot(sy, extra))
    else:
        spread = chi2
    birge = max(1.0, spread / dof)
    # errors that the residuals bear out are known errors: normal quantile; else the scatter is estimated, with its dof
    trusted = distributions.chi_square_tail(spread, dof) > TRUST_P
    birge = 1.0 if trusted else birge
    quantile = float(distributions.normal_quantile(0.975) if trusted else distributions.student_quantile(0.975, dof))
    cov = cov * birge
    if np.isfinite(between):
        cov[0, 0] += between**2 / np.unique(group).size
    curve = _curvature(px, py, sy**2 + gain**2 * sx**2)
    sag = abs(curve[0]) * float(np.ptp(px)) ** 2 / 8
    return Line(float(gain), float(offset), cov, quantile, kept, chi2 / dof, extra, between, curve, sag)


def _york(x: Floats, y: Floats, sx: Floats, sy: Floats) -> tuple[float, float, Floats, float]:
    """Return gain, offset, covariance of (offset, gain) and chi-square."""
    wx, wy = 1 / sx**2, 1 / sy**2
    b = float(np.polyfit(x, y, 1)[0])
    for _ in range(ITERATIONS):
        w = wx * wy / (wx + b**2 * wy)
        mx, my = stats.dot(w, x) / w.sum(), stats.dot(w, y) / w.sum()
        u, v = x - mx, y - my
        beta = w * (u / wy + b * v / wx)
        old, b = b, stats.dot(w * beta, v) / stats.dot(w * beta, u)
        if abs(b - old) <= 1e-12 * abs(b):
            break
    w = wx * wy / (wx + b**2 * wy)
    mx, my = stats.dot(w, x) / w.sum(), stats.dot(w, y) / w.sum()
    adjusted = mx + w * ((x - mx) / wy + b * (y - my) / wx)
    centre = stats.dot(w, adjusted) / w.sum()
    var_b = 1 / stats.dot(w, (adjusted - centre) ** 2)
    cov = np.array([[1 / w.sum() + centre**2 * var_b, -centre * var_b], [-centre * var_b, var_b]])
    a = my - b * mx
    return b, a, cov, stats.dot(w, (y - a - b * x) ** 2)


def _outlier(x: Floats, y: Floats, sx: Floats, sy: Floats) -> int | None:
    """Return the point whose deleted residual is beyond belief, if there is one.

    Each point is judged by the line through the others, against what scatter those others show. Of many points only
    those that lie farthest from the common line can be it.
    """
    n = x.size
    if n <= 4:
        return None
    p = np.ones(n)
    for i in _farthest(x, y, sx, sy):
        rest = np.arange(n) != i
        gain, offset, cov, chi2 = _york(x[rest], y[rest], sx[rest], sy[rest])
        scale = max(1.0, chi2 / (n - 3))
        j = np.array([1.0, x[i]])
        variance = scale * (sy[i] ** 2 + gain**2 * sx[i] ** 2 + j @ cov @ j)
        p[i] = 2 * distributions.student_tail(abs(y[i] - offset - gain * x[i]) / np.sqrt(variance), n - 3)
    worst = int(np.argmin(p))
    return worst if p[worst] < OUTLIER_P / n and _stands_out(worst, x, y, sx, sy) else None


def _stands_out(i: int, x: Floats, y: Floats, sx: Floats, sy: Floats) -> bool:
    """Tell whether a point is beyond belief also where the scatter of the others is every point's.

    A machine at rest is known to hundredths of a watt: by its own error alone, half a watt off would be an outlier among
    points that scatter by watts.
    """
    rest = np.arange(x.size) != i
    px, py, ex, ey = x[rest], y[rest], sx[rest], sy[rest]
    if distributions.chi_square_tail(_york(px, py, ex, ey)[3], px.size - 2) >= SCATTER_P:
        return True
    extra = _extra(px, py, ex, ey)
    gain, offset, cov, _ = _york(px, py, ex, np.hypot(ey, extra))
    j = np.array([1.0, x[i]])
    variance = sy[i] ** 2 + extra**2 + gain**2 * sx[i] ** 2 + j @ cov @ j
    p = 2 * distributions.student_tail(abs(y[i] - offset - gain * x[i]) / np.sqrt(variance), px.size - 2)
    return bool(p < OUTLIER_P / x.size)


def _farthest(x: Floats, y: Floats, sx: Floats, sy: Floats) -> NDArray[np.intp]:
    """Return the points with the largest studentised residuals: with fixed weights they order as deleted ones do."""
    if x.size <= SUSPECTS:
        return np.arange(x.size)
    gain, offset, cov, _ = _york(x, y, sx, sy)
    own = sy**2 + gain**2 * sx**2
    of_line = cov[0, 0] + 2 * x * cov[0, 1] + x**2 * cov[1, 1]
    left = np.abs(y - offset - gain * x) / np.sqrt(np.maximum(own - of_line, 1e-3 * own))
    return np.argsort(left)[-SUSPECTS:]


def _extra(x: Floats, y: Floats, sx: Floats, sy: Floats) -> float:
    """Return the common scatter [W] that brings the line's chi-square to its expectation."""
    return _added(lambda extra: _york(x, y, sx, np.hypot(sy, extra))[3], x.size - 2, float(np.ptp(y)))


def _added(chi2: Callable[[float], float], dof: int, range_w: float) -> float:
    """Return the scatter [W] at which a chi-square falls to its degrees of freedom (bisection on a log scale)."""
    low, high = 1e-6 * range_w, range_w + 1e-9
    for _ in range(40):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if chi2(middle) > dof else (low, middle)
    return float(np.sqrt(low * high))


def _between(rest: Floats, se: Floats, group: NDArray[np.intp]) -> float:
    """Return the standard deviation of whole recordings about the common line [W] (DerSimonian-Laird)."""
    names = np.unique(group)
    if names.size < 2:
        return float("nan")
    weight = 1 / se**2
    total = np.array([weight[group == g].sum() for g in names])
    mean = np.array([(weight * rest)[group == g].sum() for g in names]) / total
    centre = float(total @ mean / total.sum())
    q = float(total @ (mean - centre) ** 2)
    scale = total.sum() - float((total**2).sum() / total.sum())
    return float(np.sqrt(max(0.0, (q - (names.size - 1)) / scale)))


def _curvature(x: Floats, y: Floats, variance: Floats) -> tuple[float, float]:
    """Return the coefficient of the square about the mean, and its standard error; ``nan`` with too few points.

    Judged by what the parabola leaves: what the line leaves may be the curvature itself. Where the parabola scatters
    beyond the points' errors, as a machine at rest does whose room warms, the scatter is every point's: else a few
    precise points close together would bend it.
    """
    if x.size < 4 or np.unique(np.round(x, 6)).size < 3:
        return float("nan"), float("nan")
    u = (x - x.mean()) / max(float(np.std(x)), 1e-12)
    powers = np.column_stack([np.ones_like(u), u, u**2])
    if np.linalg.cond((powers / variance[:, None]).T @ powers) > 1e12:
        return float("nan"), float("nan")
    dof = x.size - 3
    _, _, chi2 = _parabola(powers, y, variance)
    if dof > 0 and chi2 > dof:
        variance = variance + _added(lambda e: _parabola(powers, y, variance + e**2)[2], dof, float(np.ptp(y))) ** 2
    coef, se, chi2 = _parabola(powers, y, variance)
    unit = max(float(np.var(x)), 1e-12)
    return coef / unit, se * float(np.sqrt(max(1.0, chi2 / max(dof, 1)))) / unit


def _parabola(powers: Floats, y: Floats, variance: Floats) -> tuple[float, float, float]:
    """Return the coefficient of the square, its standard error and chi-square of a weighted fit."""
    root = 1.0 / np.sqrt(variance)
    design = powers * root[:, None]
    cov = np.linalg.inv(design.T @ design)
    coef = cov @ design.T @ (y * root)
    rest = y * root - design @ coef
    return float(coef[2]), float(np.sqrt(cov[2, 2])), float(rest @ rest)
