"""Shift and drift from a coarse counter, weighed over the whole range that its rounding leaves open.

A counter of 1 Wh turns over every few seconds. Its readings leave a shift open by about as much as a step of training
lasts, over which the likelihood has many small hills: neither the top of the nearest one nor the curvature there says
what is known. So the likelihood is summed over shifts and drifts instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from joulebook import align_curve, align_noise, distributions
from joulebook.align_curve import Curve
from joulebook.align_model import PRIOR_DRIFT, Fit
from joulebook.align_noise import Noise
from joulebook.align_signal import Floats, Signal

SHIFTS, DRIFTS = 61, 31
"""Points of the grid."""

REACH_SE = 12.0
"""Half width of the first grid, in standard errors of the nearest hill."""

LEAST_REACH_S = 2.0
"""Least half width of the first grid [s]: some steps of training."""

MOST_DRIFT = 3 * PRIOR_DRIFT
"""Half width of the first grid in drift."""

ZOOMS = 4
"""Most times that the grid is drawn closer."""

NEGLIGIBLE = 1e-5
"""Share of the largest likelihood below which a point of the grid no longer counts."""

LEAST_ROWS = 16
"""Fewest advances that must be known under every shift."""

STRETCHES = 12
"""Stretches of the log whose own pulls on the shift are compared."""

Z95 = 1.959964

CHUNK = 2_000_000
"""Most predictions made at once."""


@dataclass(frozen=True)
class Grid:
    """Shifts [s] and drifts at which the likelihood is known, and the logarithm of it (drift by shift)."""

    shift_s: Floats
    drift: Floats
    log: Floats

    @property
    def weight(self) -> Floats:
        """Return the share of each point in the whole likelihood."""
        w = np.exp(self.log - self.log.max())
        return np.asarray(w / w.sum())


def weigh(fast: Signal, slow: Signal, fit: Fit) -> Fit:
    """Replace the nearest hill of the likelihood by its mean over all shifts and drifts near it.

    Parameters
    ----------
    fast
        The finer log.
    slow
        The counter.
    fit
        The fit at the nearest hill.

    Returns
    -------
    Fit
        With shift, drift and their covariance from the whole likelihood; as it was where too few readings are known
        under all shifts.
    """
    c = align_curve.curve(fast, fit.sensor)
    watts = np.diff(slow.value) / np.diff(slow.time_s)
    rounded = align_noise.unit_j(slow) / max(float(np.std(watts)), 1e-9)
    reach = max(REACH_SE * float(np.sqrt(fit.covariance[0, 0])), min(rounded, slow.period_s), LEAST_REACH_S)
    shifts = fit.shift_s + np.linspace(-reach, reach, SHIFTS)
    drifts = np.linspace(-MOST_DRIFT, MOST_DRIFT, DRIFTS)
    at = fit.shift_s, fit.drift
    grid, asked = None, None
    for _ in range(ZOOMS):
        asked = _question(c, slow, shifts, drifts, anchor_s=fit.anchor_s, at=at)
        if asked is None:
            break
        grid = _likelihood(asked, shifts, drifts)
        at = _mean(grid)
        closer_shifts, closer_drifts = _closer(shifts, grid.weight.sum(0)), _closer(drifts, grid.weight.sum(1))
        if np.ptp(closer_shifts) > 0.7 * np.ptp(shifts) and np.ptp(closer_drifts) > 0.7 * np.ptp(drifts):
            break
        shifts, drifts = closer_shifts, closer_drifts
    if grid is None or asked is None:
        return fit
    return replace(fit, shift_s=at[0], drift=at[1], covariance=_covariance(grid) * _scatter(asked, grid))


@dataclass(frozen=True)
class Question:
    """What is asked of the counter: its whitened advances without a straight line, and how to predict them."""

    curve: Curve
    time_s: Floats
    anchor_s: float
    keep: NDArray[np.bool_]
    noise: Noise
    base: Floats
    advance: Floats

    def predicted(self, shift_s: Floats, drift: float) -> Floats:
        """Return the whitened predicted advances, one column for each shift."""
        u = self.time_s[:, None] + shift_s[None, :] + (drift * (self.time_s - self.anchor_s))[:, None]
        advance = np.diff(np.interp(u, self.curve.time_s, self.curve.total_j), axis=0)[self.keep]
        return _free(advance, self.noise, self.base)


def _free(a: Floats, noise: Noise, base: Floats) -> Floats:
    """Whiten and take off the straight line."""
    a = align_noise.white(a, noise)
    return np.asarray(a - base @ (base.T @ a))


def _question(
    c: Curve, slow: Signal, shifts: Floats, drifts: Floats, *, anchor_s: float, at: tuple[float, float]
) -> Question | None:
    """Return the readings that are known under every shift and drift, whitened by the noise at one of them."""
    x = slow.time_s - anchor_s
    tilt = np.abs(drifts).max() * np.abs(x)
    low, high = slow.time_s + shifts[0] - tilt, slow.time_s + shifts[-1] + tilt
    inside = (low >= c.time_s[0]) & (high <= c.time_s[-1])
    keep = inside[:-1] & inside[1:] & c.whole(low[:-1], high[1:])
    if keep.sum() < LEAST_ROWS:
        return None
    y = np.diff(slow.value)[keep]
    line = np.column_stack([np.ones_like(y), x[1:][keep] / max(float(np.ptp(x)), 1.0)])
    here = np.diff(np.interp(slow.time_s + at[0] + at[1] * x, c.time_s, c.total_j))[keep]
    design = np.column_stack([here, line])
    norm = np.linalg.norm(design, axis=0)
    rest = y - design @ (np.linalg.lstsq(design / norm, y, rcond=None)[0] / norm)
    noise = align_noise.rounding(rest, slow)
    base, _ = np.linalg.qr(align_noise.white(line, noise))
    return Question(c, slow.time_s, anchor_s, keep, noise, base, _free(y, noise, base))


def _likelihood(asked: Question, shifts: Floats, drifts: Floats) -> Grid:
    """Return the likelihood on a grid, the gain and a straight line beneath it fitted at every point."""
    y = asked.advance
    total = float(y @ y)
    parts = np.array_split(shifts, max(1, shifts.size * y.size // CHUNK))
    log = np.empty((drifts.size, shifts.size))
    for i, drift in enumerate(drifts):
        f = np.hstack([asked.predicted(part, drift) for part in parts])
        common = np.maximum(f.T @ y, 0.0)
        left = total - common**2 / np.maximum((f * f).sum(axis=0), 1e-300)
        log[i] = -(y.size - 4) / 2 * np.log(np.maximum(left, 1e-12 * total)) - (drift / PRIOR_DRIFT) ** 2 / 2
    return Grid(shifts, drifts, log)


def _scatter(asked: Question, grid: Grid) -> float:
    """Return by how much stretches of the log disagree on the shift beyond what the likelihood says, at least 1.

    Rounding is not quite white: at a power of nearly whole units per reading it stays the same for long.
    """
    shift, drift = _mean(grid)
    weight = grid.weight.sum(0)
    off = grid.shift_s - shift
    variance = float(weight @ off**2)
    y = asked.advance
    f = asked.predicted(grid.shift_s, drift)
    square = (y[:, None] - f * (f.T @ y / np.maximum((f * f).sum(axis=0), 1e-300))) ** 2
    own = float(square.sum(axis=0) @ weight) / (y.size - 4)
    edges = np.linspace(0, y.size, STRETCHES + 1).astype(int)[:-1]
    log = -np.add.reduceat(square, edges, axis=0) / (2 * own)
    pull = log @ (weight * off) / variance
    share = float(((pull - pull.mean()) ** 2).sum() * variance * STRETCHES / (STRETCHES - 1))
    # a scatter told by few stretches is itself uncertain: Student's t
    return max(1.0, share * (float(distributions.student_quantile(0.975, STRETCHES - 1)) / Z95) ** 2)


def _closer(points: Floats, weight: Floats) -> Floats:
    """Return as many points over the part of the axis that counts."""
    counts = np.flatnonzero(weight > NEGLIGIBLE * weight.max())
    return np.linspace(points[max(counts[0] - 1, 0)], points[min(counts[-1] + 1, points.size - 1)], points.size)


def _mean(grid: Grid) -> tuple[float, float]:
    """Return the mean shift and drift."""
    w = grid.weight
    return float(w.sum(0) @ grid.shift_s), float(w.sum(1) @ grid.drift)


def _covariance(grid: Grid) -> Floats:
    """Return the covariance of shift and drift, wide enough for the longer side of each one's 95 % interval."""
    w = grid.weight
    shift, drift = _mean(grid)
    both = float((grid.drift - drift) @ w @ (grid.shift_s - shift))
    variance = [_variance(grid.shift_s, w.sum(0), shift), _variance(grid.drift, w.sum(1), drift)]
    return np.array([[variance[0], both], [both, variance[1]]])


def _variance(points: Floats, weight: Floats, mean: float) -> float:
    """Return the variance on an axis, or what its longer side would have if it were normal; a cell's width included."""
    cell = points[1] - points[0]
    lo, hi = np.interp((0.025, 0.975), np.cumsum(weight) - weight / 2, points)
    half = max(hi - mean, mean - lo)
    return float(max(weight @ (points - mean) ** 2, (half / Z95) ** 2) + cell**2 / 12)
