"""What a slow log should have read, given a fast one and a map between their clocks; and the map that fits best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from joulebook import align_noise
from joulebook.align_curve import Curve, Sensor, curve, predict
from joulebook.align_signal import COUNTER, Floats, Signal

PRIOR_DRIFT = 100e-6
"""Standard deviation of the drift before looking: crystals are within 100 ppm, so a short log says 0, not nonsense."""

HAC_LAGS = 8
"""Lags of the heteroscedasticity- and autocorrelation-consistent covariance."""

STRETCHES = 16
"""Stretches of the log whose own shifts are compared with the common one."""

ALIKE = 2.5
"""Two logs are of one pace when their periods differ by less than this factor."""

PLACES = 3
"""Places of a log that are left out one after the other to see what the others tell."""

PLACE = 5
"""Rows to either side that belong to a place."""

STEPS = 20
"""Most Gauss-Newton steps."""

WHITENED = (1, 3, 6, 10)
"""Steps at which the whitening filter is estimated anew. From the second on, a fit that hardly moves under a fresh
filter is done."""


class Map(NamedTuple):
    """A straight map between two clocks: ``fast = slow + shift_s + drift * (slow - anchor_s)``."""

    shift_s: float
    drift: float
    anchor_s: float


@dataclass(frozen=True)
class Fit:
    """A map slow clock -> fast clock: ``fast = slow + shift_s + drift * (slow - anchor_s)``, and how well it fits."""

    shift_s: float
    drift: float
    anchor_s: float
    gain: float
    covariance: Floats
    llr: float
    n: int
    n_eff: float
    spread: float
    residual_w: float
    r2: float
    sensor: Sensor
    converged: bool
    local_s: Floats
    local_se: Floats
    beyond: Floats
    beyond_se: Floats


def fit(fast: Signal, slow: Signal, sensor: Sensor, *, shift_s: float, drift: float, anchor_s: float) -> Fit | None:
    """Fit shift and drift by Gauss-Newton on whitened residuals, from a start.

    The gain and a straight line beneath it are linear and solved for at every step; the drift has a prior of 100 ppm.

    Parameters
    ----------
    fast, slow
        The two logs, each on its own clock.
    sensor
        How the slow log sees the fast one.
    shift_s, drift
        Start of the search [s, ratio].
    anchor_s
        Where on the slow clock the shift is meant [s].

    Returns
    -------
    Fit or None
        ``None`` where fewer than 16 slow samples fall on the fast log.
    """
    c = curve(fast, sensor)
    limit = max(slow.period_s, sensor.window_s, sensor.lag_s)
    span = float(np.ptp(slow.time_s)) / 2
    noise = align_noise.Noise(1.0, 0.0, np.zeros(0))
    # a counter's rounding, not the model, limits what it tells of drift
    floor = 0.0 if slow.kind == COUNTER else align_noise.floor_s(sensor, fast)
    best: tuple[float, float, float] | None = None
    done = False
    for step in range(STEPS):
        if best is not None and (done or step == STEPS - 1):
            break
        system = _system(c, slow, sensor, Map(shift_s, drift, anchor_s))
        if system is None:
            return None
        y, linear, moved, between = system
        coef = _least(linear, y)
        if step in WHITENED:
            noise = align_noise.estimate(y - linear @ coef, slow, between)
        move = _move(*(align_noise.white(a, noise, between) for a in (y, linear, moved)), floor_s=floor)
        best = (shift_s, drift, float(coef[0]))
        jump = float(np.clip(move[0], -limit, limit))
        small = max(1e-3 * fast.period_s, 1e-4 * slow.period_s)
        fresh = step in WHITENED[1:] or step > WHITENED[-1]
        done = fresh and abs(move[0]) < small and abs(move[1]) * span < 2 * small
        shift_s, drift = shift_s + jump, float(np.clip(drift + move[1], -2e-3, 2e-3))
    return _report(c, slow, sensor, Map(shift_s, drift, anchor_s), done)


def _system(c: Curve, slow: Signal, sensor: Sensor, at: Map) -> tuple[Floats, Floats, Floats, Floats] | None:
    """Return readings, linear regressors (prediction, 1, time) and derivatives to shift and drift, where known.

    And how far each prediction lies between two samples of the fast log, 0 on one and 1 half-way.
    """
    x = slow.time_s - at.anchor_s
    u = slow.time_s + at.shift_s + at.drift * x
    h = 0.5 * c.period_s
    f = predict(c, slow, sensor, u)
    slope = (predict(c, slow, sensor, u + h) - predict(c, slow, sensor, u - h)) / (2 * h)
    value = slow.value
    if slow.kind == COUNTER:
        f = np.where(c.whole(u[:-1], u[1:]), np.diff(f), np.nan)
        slope, value, x = np.diff(slope), np.diff(value), x[1:]
    keep = np.isfinite(f) & np.isfinite(slope)
    if keep.sum() < 16:
        return None
    x = x[keep]
    f, slope, y = f[keep], slope[keep], value[keep]
    scale = max(float(np.ptp(x)), 1.0)
    linear = np.column_stack([f - f.mean(), np.ones_like(f), x / scale])
    gain = _least(linear, y)[0]
    return y, linear, gain * np.column_stack([slope, slope * x]), _between(c, slow, u[keep])


def _between(c: Curve, slow: Signal, u: Floats) -> Floats:
    """Return how far times lie between samples of the fast log: 0 on one, 1 half-way; nothing where that is no matter.

    A log of the same pace cannot tell the other one what happened between two of its own samples.
    """
    if slow.kind == COUNTER or slow.period_s >= ALIKE * c.period_s:
        return align_noise.NOWHERE
    return np.asarray(np.sin(np.pi * np.interp(u, c.time_s, np.arange(c.time_s.size))) ** 2)


def _least(design: Floats, y: Floats) -> Floats:
    """Solve least squares by normal equations of unit columns: there are few columns and many rows."""
    norm = np.sqrt(np.einsum("ij,ij->j", design, design))
    norm[norm == 0] = 1.0
    inner = (design.T @ design) / np.outer(norm, norm)
    return np.asarray(np.linalg.pinv(inner, rcond=1e-13) @ ((design.T @ y) / norm) / norm)


def _move(y: Floats, linear: Floats, moved: Floats, *, floor_s: float) -> Floats:
    """Return the joint least-squares step of shift and drift, with the prior on drift as a pseudo-observation.

    Where the model's own error over the lever of the edges is large against the prior, what looks like drift is that
    error: the prior is narrowed so that drift is believed as far as statistics and model together tell it.
    """
    base = _least(linear, y)
    sigma = float(np.std(y - linear @ base)) or 1.0
    design = np.column_stack([linear, moved])
    norm = np.sqrt(np.einsum("ij,ij->j", design, design))
    norm[norm == 0] = 1.0
    inner = (design.T @ design) / np.outer(norm, norm)
    lever = max(float(norm[-1] / norm[-2]), 1.0)
    se = sigma * float(np.sqrt(max(np.linalg.pinv(inner, rcond=1e-13)[-1, -1], 1e-30))) / float(norm[-1])
    prior = PRIOR_DRIFT * se / float(np.hypot(se, floor_s / lever))
    inner[-1, -1] += (sigma / prior / norm[-1]) ** 2
    return np.asarray((np.linalg.pinv(inner, rcond=1e-13) @ ((design.T @ y) / norm) / norm)[-2:])


def _report(c: Curve, slow: Signal, sensor: Sensor, at: Map, converged: bool) -> Fit | None:
    """Return the fit at a solution: gain, covariance of shift and drift, likelihood against no relation."""
    system = _system(c, slow, sensor, at)
    if system is None:
        return None
    y, linear, moved, between = system
    coef = _least(linear, y)
    rest = y - linear @ coef
    noise = align_noise.estimate(rest, slow, between)
    wy, wl, wm = (align_noise.white(a, noise, between) for a in (y, linear, moved))
    design = np.column_stack([wl, wm])
    coef = _least(wl, wy)
    r = wy - wl @ coef
    none = wy - wl[:, 1:] @ _least(wl[:, 1:], wy)
    apart = y - linear[:, 1:] @ _least(linear[:, 1:], y)
    apart = align_noise.white(apart, align_noise.estimate(apart, slow, align_noise.NOWHERE))
    n = r.size
    rss, rss0 = float(r @ r) or 1e-30, float(none @ none) or 1e-30
    d = wm[:, 0]
    power = float((d**2).sum())
    x = (slow.time_s - at.anchor_s)[: d.size]
    weight = d**2 / max(power, 1e-300)
    centre = float(weight @ x) if x.size == d.size else 0.0
    spread = float(np.sqrt(weight @ (x - centre) ** 2)) if x.size == d.size else 0.0
    return Fit(
        *at, float(coef[0]), _covariance(design, r), n / 2 * np.log(max(float(np.mean(apart**2)) * n / rss, 1.0)), n,
        power**2 / max(float((d**4).sum()), 1e-300), spread, float(np.std(rest)), max(0.0, 1 - rss / rss0), sensor,
        converged, *_local(d, r, float(np.sqrt(rss / n))), *_beyond(wl[:, 0], r, float(coef[0])),
    )  # fmt: skip


def _local(d: Floats, r: Floats, sigma: float) -> tuple[Floats, Floats]:
    """Return by how much each of a number of stretches would move the shift [s], with standard errors."""
    edges = np.linspace(0, d.size, STRETCHES + 1).astype(int)[:-1]
    power = np.add.reduceat(d * d, edges)
    known = power > 0.005 * power.sum()
    pull = np.add.reduceat(d * r, edges)[known] / power[known]
    return pull, sigma / np.sqrt(power[known])


def _beyond(f: Floats, r: Floats, gain: float) -> tuple[Floats, Floats]:
    """Return the gain, as a share of the whole log's, and its standard error, without the places that tell most."""
    y = r + gain * f
    told = f * y * np.sign(gain)
    reach = max(PLACE, r.size // 200)
    i = np.arange(r.size)
    at, to = np.maximum(i - reach, 0), np.minimum(i + reach + 1, r.size)
    left = np.ones(r.size, dtype=bool)
    out = np.zeros((2, PLACES))
    for k in range(PLACES):
        total = np.concatenate([[0.0], np.cumsum(np.where(left, told, 0.0))])
        place = int(np.argmax(total[to] - total[at]))
        left[at[place] : to[place]] = False
        a, b = _levelled(f, left), _levelled(y, left)
        power = max(float(a @ a), 1e-300)
        own = float(a @ b) / power
        rest = b - own * a
        out[:, k] = own / gain, float(np.sqrt(rest @ rest / max(rest.size, 1) / power)) / abs(gain)
    return out[0], out[1]


def _levelled(a: Floats, left: NDArray[np.bool_]) -> Floats:
    """Return what is left of a series, each piece of it less its own mean."""
    piece = np.cumsum(np.diff(left, prepend=left[0]) != 0)[left]
    kept = a[left]
    count = np.maximum(np.bincount(piece), 1)
    return np.asarray(kept - (np.bincount(piece, kept) / count)[piece])


def _covariance(design: Floats, r: Floats) -> Floats:
    """Return the covariance of shift and drift: the larger of the classical and the consistent one."""
    norm = np.sqrt((design**2).sum(axis=0))
    norm[norm == 0] = 1.0
    z = design / norm
    sigma2 = float(r @ r) / max(r.size - z.shape[1], 1)
    inner = z.T @ z
    inner[-1, -1] += sigma2 / (PRIOR_DRIFT * norm[-1]) ** 2
    bread = np.linalg.pinv(inner, rcond=1e-13)
    score = z * r[:, None]
    meat = score.T @ score
    for k in range(1, min(HAC_LAGS, r.size - 1) + 1):
        cross = score[k:].T @ score[:-k]
        meat += (1 - k / (HAC_LAGS + 1)) * (cross + cross.T)
    robust = bread @ meat @ bread
    classical = bread * sigma2
    pick = robust if robust[-2, -2] > classical[-2, -2] else classical
    cov = (pick / np.outer(norm, norm))[-2:, -2:]
    cov[1, 1] = max(cov[1, 1], (classical / np.outer(norm, norm))[-1, -1])
    return np.asarray(cov)
