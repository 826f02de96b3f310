"""How the residuals of an alignment hang together, and the filter that makes them white."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from joulebook.align_curve import Sensor
from joulebook.align_signal import COUNTER, Floats, Signal

AR_ORDER = 4
"""Order of the autoregression that whitens the residual: first order plus the moving average of rounding and
interpolation."""


LEAST_OWN = 0.1
"""Least variance beside a counter's rounding, in units of that: without it the filter would trust the sum over
hours, where supply losses and fans bend the relation."""


POINT_FLOOR, MEAN_FLOOR, LAG_FLOOR = 0.15, 0.03, 0.02
"""Errors of the model itself: shares of the fast period for point samples and for means, and of the time constant."""


LEAST_SIZED, LEAST_SPREAD = 200, 0.2
"""Fewest residuals, and least spread of their places between samples, from which the growth between samples is told."""

ENOUGH = 1000
"""So many places, evenly taken, tell whether they spread."""

MOST_GROWTH = 100.0
"""Largest such growth: a few rows must not outweigh all others."""

NOWHERE: Floats = np.zeros(0)
"""Places between samples where they are no matter."""


@dataclass(frozen=True)
class Noise:
    """How residuals spread and hang together.

    How many times larger their variance is half-way between samples of the fast log, the tridiagonal covariance of a
    counter's rounding, then an autoregression.
    """

    main: float
    beside: float
    ar: Floats
    growth: float = 1.0


def estimate(r: Floats, slow: Signal, between: Floats) -> Noise:
    """Estimate the noise of residuals, and how it grows between samples of the fast log.

    The rounding of a counter enters two differences with opposite signs: its part of the covariance is known, and
    only what remains is estimated.
    """
    first = rounding(r, slow) if slow.kind == COUNTER else Noise(1.0, 0.0, np.zeros(0))
    first = replace(first, growth=_growth(r, between))
    return replace(first, ar=_autoregression(white(r, first, between)))


def spread(place: Floats) -> bool:
    """Return whether most samples do not lie alike between those of the other log."""
    some = np.sort(place[:: max(1, place.size // ENOUGH)])
    low, high = np.interp((0.05 * (some.size - 1), 0.95 * (some.size - 1)), np.arange(some.size), some)
    return bool(high - low >= LEAST_SPREAD)


def _growth(r: Floats, between: Floats) -> float:
    """Return how many times larger the variance of residuals is half-way between samples than on one.

    Without it a fit would rather lay the samples of both logs on each other all along than where they belong.
    """
    if between.size < LEAST_SIZED or not spread(between):
        return 1.0
    design = np.column_stack([1 - between, between])
    mean = float(r @ r) / r.size
    on, among = mean, mean
    for _ in range(3):
        weighted = design / (design @ [on, among])[:, None] ** 2
        on, among = np.linalg.solve(design.T @ weighted, weighted.T @ r**2)
        on, among = max(float(on), mean / MOST_GROWTH), max(float(among), mean / MOST_GROWTH)
    return float(np.clip(among / on, 1.0, MOST_GROWTH))


def _size(noise: Noise, between: Floats) -> Floats:
    """Return the relative size of residuals, their logarithms around nothing, so that likelihoods compare."""
    size = np.sqrt(1 + (noise.growth - 1) * between)
    return np.asarray(size / np.exp(np.mean(np.log(size))))


def rounding(r: Floats, slow: Signal) -> Noise:
    """Return the noise of a counter's differences: rounding, and beside it noise that does not hang together."""
    rounded = unit_j(slow) ** 2 / 12
    own = max(float(np.var(r)) - 2 * rounded, LEAST_OWN * rounded, 1e-30)
    return Noise(1.0, -rounded / (own + 2 * rounded), np.zeros(0))


def unit_j(slow: Signal) -> float:
    """Return the unit that a counter counts in: the least difference between two of its advances [J]."""
    advances = np.unique(np.diff(slow.value))
    between = np.diff(np.concatenate([[0.0], advances]))
    # what is left by floating point is no unit
    real = between[between > 1e-3 + 1e-9 * float(np.abs(slow.value).max())]
    return float(real.min()) if real.size else 0.0


def floor_s(sensor: Sensor, fast: Signal) -> float:
    """Return the standard error of a shift that stems from the model, not from noise [s]."""
    share = MEAN_FLOOR if sensor.held else POINT_FLOOR
    return float(np.hypot(share * fast.period_s, LAG_FLOOR * sensor.lag_s))


def undeclared_s(sensor: Sensor, fast: Signal) -> float:
    """Return the same where means over the whole period are only supposed: they may be points after all [s]."""
    sure = fast.kind == COUNTER or fast.window_s is not None
    return floor_s(sensor if sure else replace(sensor, held=False), fast)


@njit(cache=True, nogil=True)
def _uncoupled(a: Floats, main: float, beside: float) -> Floats:
    """Divide rows by the Cholesky factor of a tridiagonal covariance."""
    out = np.empty_like(a)
    diagonal = np.sqrt(main)
    for j in range(a.shape[1]):  # number by number: rows as wholes take seconds to compile
        out[0, j] = a[0, j] / diagonal
    for i in range(1, a.shape[0]):
        under = beside / diagonal
        diagonal = np.sqrt(main - under * under)
        for j in range(a.shape[1]):
            out[i, j] = (a[i, j] - under * out[i - 1, j]) / diagonal
    return out


def white(a: Floats, noise: Noise, between: Floats = NOWHERE) -> Floats:
    """Whiten along the first axis; the first samples, which lack a past, are dropped."""
    if noise.growth > 1:
        a = (a.T / _size(noise, between)).T
    if noise.beside != 0:
        a = np.asarray(_uncoupled(a.reshape(a.shape[0], -1), noise.main, noise.beside)).reshape(a.shape)
    return np.asarray(_filtered(np.ascontiguousarray(a.reshape(a.shape[0], -1)), noise.ar)).reshape(-1, *a.shape[1:])


@njit(cache=True, nogil=True)
def _filtered(a: Floats, ar: Floats) -> Floats:
    """Take from each row what the rows before it say of it; the first ones are dropped."""
    out = np.empty((a.shape[0] - ar.size, a.shape[1]))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            own = a[i + ar.size, j]
            for k in range(ar.size):
                own -= ar[k] * a[i + ar.size - 1 - k, j]
            out[i, j] = own
    return out


def _autoregression(r: Floats) -> Floats:
    """Return the coefficients of an autoregression of the residual (Yule-Walker, slightly damped to stay stable)."""
    n = r.size
    order = min(AR_ORDER, n // 20)
    if order == 0 or float(r @ r) == 0:
        return np.zeros(0)
    r = r - r.mean()
    acov = np.array([r[: n - k] @ r[k:] for k in range(order + 1)]) / n
    if acov[0] <= 0:
        return np.zeros(0)
    lags = np.abs(np.subtract.outer(np.arange(order), np.arange(order)))
    return np.asarray(np.linalg.solve(acov[lags] + 1e-6 * acov[0] * np.eye(order), acov[1:]))
