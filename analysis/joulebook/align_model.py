"""What a slow log should have read, given a fast one and a map between their clocks; and the map that fits best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from joulebook.align_signal import COUNTER, GAP_PERIODS, INSTANT, Floats, Signal

PRIOR_DRIFT = 100e-6
"""Standard deviation of the drift before looking: crystals are within 100 ppm, so a short log says 0, not nonsense."""

AR_ORDER = 4
"""Order of the autoregression that whitens the residual: first order plus the moving average of rounding and
interpolation."""

HAC_LAGS = 8
"""Lags of the heteroscedasticity- and autocorrelation-consistent covariance."""

STRETCHES = 16
"""Stretches of the log whose own shifts are compared with the common one."""

STEPS = 20
"""Most Gauss-Newton steps."""

WHITENED = (1, 3, 6, 10)
"""Steps at which the whitening filter is estimated anew."""


@dataclass(frozen=True)
class Sensor:
    """How the slow log sees the fast one.

    Parameters
    ----------
    window_s
        Averaging window [s], 0 = instantaneous; ignored for counters.
    lag_s
        Time constant of a first-order lag [s].
    held
        Whether the fast log's values are means up to their stamp, rather than points of a curve.
    """

    window_s: float
    lag_s: float
    held: bool


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


@njit(cache=True)  # type: ignore[untyped-decorator]
def _cumulative(u: Floats, t: Floats, total: Floats, slope: Floats) -> Floats:
    """Evaluate an integral known at its knots, with its derivative there, by cubic pieces; ``nan`` outside."""
    out = np.empty(u.size)
    i = 0
    last = t.size - 2
    for k in range(u.size):
        x = u[k]
        if x < t[0] or x > t[-1]:
            out[k] = np.nan
            continue
        while i < last and t[i + 1] < x:
            i += 1
        while i > 0 and t[i] > x:
            i -= 1
        h = t[i + 1] - t[i]
        s = (x - t[i]) / h
        a = 1 - s
        out[k] = (
            total[i] * a * a * (1 + 2 * s)
            + total[i + 1] * s * s * (3 - 2 * s)
            + h * s * a * (slope[i] * a - slope[i + 1] * s)
        )
    return out


@njit(cache=True)  # type: ignore[untyped-decorator]
def _lagged(t: Floats, p: Floats, lag_s: float) -> Floats:
    """Pass power through a first-order lag; between samples it is constant at the later value."""
    out = np.empty(p.size)
    out[0] = p[0]
    for i in range(1, p.size):
        keep = np.exp(-(t[i] - t[i - 1]) / lag_s)
        out[i] = keep * out[i - 1] + (1 - keep) * p[i]
    return out


@dataclass(frozen=True)
class Curve:
    """Energy of the fast log as a smooth function of its clock, and the time in it that lies in gaps."""

    time_s: Floats
    power_w: Floats
    total_j: Floats
    gap_s: Floats
    period_s: float

    def energy(self, u: Floats) -> Floats:
        """Return the energy up to ``u`` [J]."""
        return np.asarray(_cumulative(u, self.time_s, self.total_j, self.power_w))

    def power(self, u: Floats) -> Floats:
        """Return the power at ``u`` [W]."""
        return np.interp(u, self.time_s, self.power_w, left=np.nan, right=np.nan)

    def whole(self, since: Floats, until: Floats) -> NDArray[np.bool_]:
        """Return where no gap lies in between."""
        lost = np.interp(until, self.time_s, self.gap_s) - np.interp(since, self.time_s, self.gap_s)
        return np.asarray(lost <= 1e-9)


def curve(fast: Signal, sensor: Sensor) -> Curve:
    """Return the energy curve of the fast log as this sensor sees it."""
    t, p = fast.time_s, fast.value
    if fast.kind == COUNTER:
        t, p, held = t[1:], np.diff(p) / np.diff(t), True
    else:
        held = sensor.held
    if sensor.lag_s > 0:
        p = np.asarray(_lagged(t, p, sensor.lag_s))
    step = np.diff(t)
    area = p[1:] * step if held else (p[1:] + p[:-1]) / 2 * step
    if held:
        # a mean belongs to the middle of its span: at the stamp, the curve is half-way to the next mean
        p = np.concatenate([(p[1:] + p[:-1]) / 2, p[-1:]])
    total = np.concatenate([[0.0], np.cumsum(area)])
    gap = np.where(step > GAP_PERIODS * fast.period_s, step, 0.0)
    return Curve(t, p, total, np.concatenate([[0.0], np.cumsum(gap)]), fast.period_s)


def predict(c: Curve, slow: Signal, sensor: Sensor, u: Floats) -> Floats:
    """Return what the slow log should read at ``u`` of the fast clock; ``nan`` where the fast log has nothing."""
    if slow.kind == COUNTER:
        return c.energy(u)
    if sensor.window_s <= 0:
        return np.where(c.whole(u - c.period_s, u), c.power(u), np.nan)
    w = sensor.window_s
    f = (c.energy(u) - c.energy(u - w)) / w
    return np.where(c.whole(u - w, u), f, np.nan)


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
    noise = Noise(1.0, 0.0, np.zeros(0))
    best: tuple[float, float, float] | None = None
    done = False
    for step in range(STEPS):
        if best is not None and (done or step == STEPS - 1):
            break
        system = _system(c, slow, sensor, shift_s, drift, anchor_s)
        if system is None:
            return None
        y, linear, moved = system
        coef = np.linalg.lstsq(linear, y, rcond=None)[0]
        if step in WHITENED:
            noise = _noise(y - linear @ coef, slow)
        move = _move(*(_white(a, noise) for a in (y, linear, moved)))
        best = (shift_s, drift, float(coef[0]))
        jump = float(np.clip(move[0], -limit, limit))
        small = max(1e-3 * fast.period_s, 1e-4 * slow.period_s)
        done = step > WHITENED[2] and abs(move[0]) < small and abs(move[1]) * span < 2 * small
        shift_s, drift = shift_s + jump, float(np.clip(drift + move[1], -2e-3, 2e-3))
    return _report(c, slow, sensor, shift_s, drift, anchor_s, done)


def _system(
    c: Curve, slow: Signal, sensor: Sensor, shift_s: float, drift: float, anchor_s: float
) -> tuple[Floats, Floats, Floats] | None:
    """Return readings, linear regressors (prediction, 1, time) and derivatives to shift and drift, where known."""
    x = slow.time_s - anchor_s
    u = slow.time_s + shift_s + drift * x
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
    gain = np.linalg.lstsq(linear, y, rcond=None)[0][0]
    return y, linear, gain * np.column_stack([slope, slope * x])


def _move(y: Floats, linear: Floats, moved: Floats) -> Floats:
    """Return the joint least-squares step of shift and drift, with the prior on drift as a pseudo-observation."""
    base = np.linalg.lstsq(linear, y, rcond=None)[0]
    sigma = float(np.std(y - linear @ base)) or 1.0
    design = np.column_stack([linear, moved])
    norm = np.sqrt((design**2).sum(axis=0))
    norm[norm == 0] = 1.0
    prior = np.zeros(design.shape[1])
    prior[-1] = sigma / PRIOR_DRIFT / norm[-1]
    rows = np.vstack([design / norm, prior])
    return (np.linalg.lstsq(rows, np.append(y, 0.0), rcond=1e-12)[0] / norm)[-2:]


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


@dataclass(frozen=True)
class Noise:
    """How residuals hang together: tridiagonal covariance of a counter's rounding, then an autoregression."""

    main: float
    beside: float
    ar: Floats


def _noise(r: Floats, slow: Signal) -> Noise:
    """Estimate the noise of residuals.

    The rounding of a counter enters two differences with opposite signs: its part of the covariance is known, and
    only what remains is estimated.
    """
    main, beside = 1.0, 0.0
    if slow.kind == COUNTER:
        moves = np.abs(np.diff(slow.value))
        rounding = float(moves[moves > 0].min(initial=np.inf)) ** 2 / 12
        own = max(float(np.var(r)) - 2 * rounding, 0.02 * rounding)
        scale = own + 2 * rounding
        main, beside = 1.0, -rounding / scale
    first = Noise(main, beside, np.zeros(0))
    return Noise(main, beside, _autoregression(_white(r, first)))


@njit(cache=True)  # type: ignore[untyped-decorator]
def _uncoupled(a: Floats, main: float, beside: float) -> Floats:
    """Divide rows by the Cholesky factor of a tridiagonal covariance."""
    out = np.empty_like(a)
    diagonal = np.sqrt(main)
    out[0] = a[0] / diagonal
    for i in range(1, a.shape[0]):
        under = beside / diagonal
        diagonal = np.sqrt(main - under * under)
        out[i] = (a[i] - under * out[i - 1]) / diagonal
    return out


def _white(a: Floats, noise: Noise) -> Floats:
    """Whiten along the first axis; the first samples, which lack a past, are dropped."""
    if noise.beside != 0:
        a = np.asarray(_uncoupled(a.reshape(a.shape[0], -1), noise.main, noise.beside)).reshape(a.shape)
    k = noise.ar.size
    out = a[k:].copy()
    for i in range(k):
        out -= noise.ar[i] * a[k - 1 - i : a.shape[0] - 1 - i]
    return out


def _report(
    c: Curve, slow: Signal, sensor: Sensor, shift_s: float, drift: float, anchor_s: float, converged: bool
) -> Fit | None:
    """Return the fit at a solution: gain, covariance of shift and drift, likelihood against no relation."""
    system = _system(c, slow, sensor, shift_s, drift, anchor_s)
    if system is None:
        return None
    y, linear, moved = system
    coef = np.linalg.lstsq(linear, y, rcond=None)[0]
    rest = y - linear @ coef
    noise = _noise(rest, slow)
    wy, wl, wm = (_white(a, noise) for a in (y, linear, moved))
    design = np.column_stack([wl, wm])
    coef = np.linalg.lstsq(wl, wy, rcond=None)[0]
    r = wy - wl @ coef
    none = wy - wl[:, 1:] @ np.linalg.lstsq(wl[:, 1:], wy, rcond=None)[0]
    n = r.size
    rss, rss0 = float(r @ r) or 1e-30, float(none @ none) or 1e-30
    d = wm[:, 0]
    power = float((d**2).sum())
    x = (slow.time_s - anchor_s)[: d.size]
    weight = d**2 / max(power, 1e-300)
    centre = float(weight @ x) if x.size == d.size else 0.0
    spread = float(np.sqrt(weight @ (x - centre) ** 2)) if x.size == d.size else 0.0
    return Fit(
        shift_s, drift, anchor_s, float(coef[0]), _covariance(design, r), n / 2 * np.log(max(rss0 / rss, 1.0)), n,
        power**2 / max(float((d**4).sum()), 1e-300), spread, float(np.std(rest)), max(0.0, 1 - rss / rss0), sensor,
        converged, *_local(d, r, float(np.sqrt(rss / n))),
    )  # fmt: skip


def _local(d: Floats, r: Floats, sigma: float) -> tuple[Floats, Floats]:
    """Return by how much each of a number of stretches would move the shift [s], with standard errors."""
    edges = np.linspace(0, d.size, STRETCHES + 1).astype(int)[:-1]
    power = np.add.reduceat(d * d, edges)
    known = power > 0.005 * power.sum()
    pull = np.add.reduceat(d * r, edges)[known] / power[known]
    return pull, sigma / np.sqrt(power[known])


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


def instant(slow: Signal) -> bool:
    """Return whether the slow log is declared instantaneous."""
    return slow.kind == INSTANT
