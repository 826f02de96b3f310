"""What a slow log should have read, given a fast one and a map between their clocks; and the map that fits best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from joulebook import align_evidence, align_noise, align_squares
from joulebook.align_curve import Curve, Sensor, curve, predict
from joulebook.align_signal import COUNTER, Floats, Signal

PRIOR_DRIFT = 100e-6
"""Standard deviation of the drift before looking: crystals are within 100 ppm, so a short log says 0, not nonsense."""

BEND, BEND_SE = 0.05, 0.05
"""Mean and standard deviation, before looking, of by how much times between two samples of a log of the same pace are
misjudged, as a share of its period: changes faster than its samples seem to lie nearer to one of them. Simulated training
shows 0.02 to 0.14."""

MOST_BEND = 0.2
"""Largest bend that a search steps to, in the same share: beyond it, times would run backwards between samples."""

LEAST_WAVE = 0.02
"""Least share of the bend that a sample between two others is taken to feel."""

ALIKE = 2.5
"""Two logs are of one pace when their periods differ by less than this factor."""

STEPS = 20
"""Most Gauss-Newton steps."""

BENT = 3
"""Derivatives to bend, shift and drift, where there is a bend; without it there are two."""

MOST_TRIED = 2e-3
"""Largest drift that a search steps to."""

WHITENED = (1, 3, 6, 10)
"""Steps at which the whitening filter is estimated anew. From the second on, a fit that hardly moves under a fresh
filter is done."""


class Map(NamedTuple):
    """A straight map between two clocks: ``fast = slow + shift_s + drift * (slow - anchor_s)``.

    ``bend_s`` is by how much times a quarter of the way between two samples of the fast log seem to lie further on.
    """

    shift_s: float
    drift: float
    anchor_s: float
    bend_s: float = 0.0


@dataclass(frozen=True)
class Fit:
    """A map slow clock -> fast clock: ``fast = slow + shift_s + drift * (slow - anchor_s)``, and how well it fits."""

    shift_s: float
    drift: float
    anchor_s: float
    bend_s: float
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


def alike(period_s: float, slow: Signal) -> bool:
    """Return whether a fast log is of one pace with the slow one and cannot tell what happened between its samples."""
    return slow.kind != COUNTER and slow.period_s < ALIKE * period_s


def fit(
    fast: Signal,
    slow: Signal,
    sensor: Sensor,
    *,
    shift_s: float,
    drift: float,
    anchor_s: float,
    bend_s: float | None = None,
    smooth: bool = False,
    doubted: bool = False,
) -> Fit | None:
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
    bend_s
        The bend where the start is a fit to more of the same logs, whose residuals tell the noise at once.
    smooth
        Whether the logs vary so slowly that what lies between their samples is known: there is no bend.
    doubted
        Whether what is known of drift before looking holds for all of it. Else it holds for each step of the search, which
        believes what the logs say of drift at last.

    Returns
    -------
    Fit or None
        ``None`` where fewer than 16 slow samples fall on the fast log.
    """
    limit = max(slow.period_s, sensor.window_s, sensor.lag_s)
    span = float(np.ptp(slow.time_s)) / 2
    # as far as all steps together can lead
    reach = STEPS * limit + MOST_TRIED * 2 * span
    c = curve(fast, sensor, since_s=slow.time_s[0] + shift_s - reach, until_s=slow.time_s[-1] + shift_s + reach)
    small = max(1e-3 * fast.period_s, 1e-4 * slow.period_s)
    noise = align_noise.Noise(1.0, 0.0, np.zeros(0))
    # a counter's rounding, not the model, limits what it tells of drift
    floor = 0.0 if slow.kind == COUNTER else align_noise.floor_s(sensor, fast)
    bent = alike(c.period_s, slow) and not smooth
    usual = BEND * c.period_s if bent else 0.0
    at = Map(shift_s, drift, anchor_s, usual if bend_s is None else bend_s)
    done = False
    for step in range(STEPS):
        system = _system(c, slow, sensor, at, bent=bent)
        if system is None:
            return None
        y, linear, moved, between = system
        coef = align_squares.fit(linear, y)
        if step in WHITENED or (step == 0 and bend_s is not None):
            noise = align_noise.estimate(y - linear @ coef, slow, between)
        white = (align_noise.white(a, noise, between) for a in (y, linear, moved))
        bend, move, drive = _move(*white, floor_s=floor, bend=_prior(at, c), beyond=at.drift if doubted else 0.0)
        at = _stepped(at, bend, float(np.clip(move, -limit, limit)), drive, furthest_s=MOST_BEND * c.period_s)
        fresh = step in WHITENED[1:] or step > WHITENED[-1]
        done = fresh and abs(move) < small and abs(drive) * span < 2 * small
        if done:
            break
    return _report(c, slow, sensor, at, done, bent=bent)


def judge(fast: Signal, slow: Signal, sensor: Sensor, at: Map) -> Fit | None:
    """Return how well a map fits that was not fitted to these logs; ``None`` where too few samples fall on the fast log."""
    return _report(curve(fast, sensor), slow, sensor, at, True, bent=alike(fast.period_s, slow))


def _stepped(at: Map, bend: float, move: float, drive: float, *, furthest_s: float) -> Map:
    """Return a map some steps further on, within what can be."""
    return at._replace(
        shift_s=at.shift_s + move,
        drift=float(np.clip(at.drift + drive, -MOST_TRIED, MOST_TRIED)),
        bend_s=float(np.clip(at.bend_s + bend, -furthest_s, furthest_s)),
    )


def _prior(at: Map, c: Curve) -> tuple[float, float]:
    """Return by how much the bend is short of what is expected, and the standard deviation of that [s]."""
    return BEND * c.period_s - at.bend_s, BEND_SE * c.period_s


def _system(
    c: Curve, slow: Signal, sensor: Sensor, at: Map, *, bent: bool
) -> tuple[Floats, Floats, Floats, Floats] | None:
    """Return readings, linear regressors (prediction, 1, time) and derivatives to bend, shift and drift, where known.

    And how far each prediction lies between two samples of the fast log, 0 on one and 1 half-way; nothing where that is
    no matter.
    """
    x = slow.time_s - at.anchor_s
    u = slow.time_s + at.shift_s + at.drift * x
    u, turn = c.bent(u, at.bend_s) if bent else (u, align_noise.NOWHERE)
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
    gain = align_squares.fit(linear, y)[0]
    columns = [slope, slope * x]
    if not bent:
        return y, linear, gain * np.column_stack(columns), align_noise.NOWHERE
    turn = turn[keep]
    wave = np.sin(turn)
    if not align_noise.spread(wave):
        # samples that always lie alike between each other's tell nothing of the bend; a few strays behind gaps must not
        wave = np.full(turn.size, float(np.copysign(max(abs(np.median(wave)), LEAST_WAVE), np.median(wave))))
    return y, linear, gain * np.column_stack([slope * wave, *columns]), np.sin(turn / 2) ** 2


def _move(
    y: Floats, linear: Floats, moved: Floats, *, floor_s: float, bend: tuple[float, float], beyond: float
) -> tuple[float, float, float]:
    """Return the joint least-squares step of bend, shift and drift; priors on bend and drift are pseudo-observations.

    Where the model's own error over the lever of the edges is large against the prior, what looks like drift is that
    error: the prior is narrowed so that drift is believed as far as statistics and model together tell it.
    """
    base = align_squares.fit(linear, y)
    sigma = float(np.std(y - linear @ base)) or 1.0
    design = np.column_stack([linear, moved])
    inner, norm = align_squares.unit(design)
    pull = (design.T @ y) / norm
    if moved.shape[1] == BENT:
        short, se = bend
        sure = (sigma / se / norm[-BENT]) ** 2
        inner[-BENT, -BENT] += sure
        pull[-BENT] += sure * short * norm[-BENT]
    lever = max(float(norm[-1] / norm[-2]), 1.0)
    se = sigma * float(np.sqrt(max(align_squares.last_variance(inner), 1e-30))) / float(norm[-1])
    prior = PRIOR_DRIFT * se / float(np.hypot(se, floor_s / lever))
    sure = (sigma / prior / norm[-1]) ** 2
    inner[-1, -1] += sure
    pull[-1] -= sure * beyond * norm[-1]
    step = align_squares.solve(inner, pull) / norm
    return float(step[-BENT]) if moved.shape[1] == BENT else 0.0, float(step[-2]), float(step[-1])


def _report(c: Curve, slow: Signal, sensor: Sensor, at: Map, converged: bool, *, bent: bool) -> Fit | None:
    """Return the fit at a solution: gain, covariance of shift and drift, likelihood against no relation."""
    system = _system(c, slow, sensor, at, bent=bent)
    if system is None:
        return None
    y, linear, moved, between = system
    coef = align_squares.fit(linear, y)
    rest = y - linear @ coef
    noise = align_noise.estimate(rest, slow, between)
    wy, wl, wm = (align_noise.white(a, noise, between) for a in (y, linear, moved))
    design = np.column_stack([wl, wm])
    coef = align_squares.fit(wl, wy)
    r = wy - wl @ coef
    none = wy - wl[:, 1:] @ align_squares.fit(wl[:, 1:], wy)
    # unrelated logs would have noise of their own: judged by the fit's filter they look better or worse than they are
    apart = y - linear[:, 1:] @ align_squares.fit(linear[:, 1:], y)
    apart = align_noise.white(apart, align_noise.estimate(apart, slow, align_noise.NOWHERE))
    n = r.size
    rss, rss0 = float(r @ r) or 1e-30, float(none @ none) or 1e-30
    llr = n / 2 * np.log(max(float(np.mean(apart**2)) * n / rss, 1.0))
    d = wm[:, -2]
    power = float((d**2).sum())
    x = (slow.time_s - at.anchor_s)[: d.size]
    weight = d**2 / max(power, 1e-300)
    centre = float(weight @ x) if x.size == d.size else 0.0
    spread = float(np.sqrt(weight @ (x - centre) ** 2)) if x.size == d.size else 0.0
    believed = np.full(design.shape[1], np.inf)
    believed[-1] = PRIOR_DRIFT
    if wm.shape[1] == BENT:
        believed[-BENT] = BEND_SE * c.period_s
    return Fit(
        *at, float(coef[0]), align_evidence.covariance(design, r, believed), float(llr), n,
        power**2 / max(float((d**4).sum()), 1e-300), spread, float(np.std(rest)), max(0.0, 1 - rss / rss0), sensor,
        converged, *align_evidence.stretches(d, r, float(np.sqrt(rss / n))),
        *align_evidence.beyond(wl[:, 0], r, float(coef[0])),
    )  # fmt: skip
