"""The fast log as an energy curve, and what a slow sensor should have read from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from joulebook.align_signal import COUNTER, GAP_PERIODS, Floats, Signal

WALK = 8
"""Knots that are passed one by one before they are searched for."""


LEAST_KNOTS = 64
"""Fewest samples of the fast log that a curve is cut down to."""


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
    steps
        Whether what comes out of the lag is held from stamp to stamp, rather than creeping on.
    """

    window_s: float
    lag_s: float
    held: bool
    steps: bool = False


@njit(cache=True, nogil=True)
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
        if t[i] > x or (i < last and t[i + 1] < x):
            # near knots are walked to, far ones are searched for
            near = i + WALK
            if t[i] <= x and near <= last and t[near] >= x:
                while t[i + 1] < x:
                    i += 1
            else:
                i = min(max(np.searchsorted(t, x) - 1, 0), last)
        h = t[i + 1] - t[i]
        s = (x - t[i]) / h
        a = 1 - s
        out[k] = (
            total[i] * a * a * (1 + 2 * s)
            + total[i + 1] * s * s * (3 - 2 * s)
            + h * s * a * (slope[i] * a - slope[i + 1] * s)
        )
    return out


@njit(cache=True, nogil=True)
def _lagged(t: Floats, p: Floats, lag_s: float, held: bool) -> Floats:
    """Pass power through a first-order lag; between samples it is constant at the later value, or goes in a straight line."""
    out = np.empty(p.size)
    out[0] = p[0]
    for i in range(1, p.size):
        step = (t[i] - t[i - 1]) / lag_s
        keep = np.exp(-step)
        out[i] = keep * out[i - 1] + (1 - keep) * p[i]
        if not held:
            out[i] += (p[i] - p[i - 1]) * (keep - (1 - keep) / step)
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

    def bent(self, u: Floats, bend_s: float) -> tuple[Floats, Floats]:
        """Return times put on by a bend a quarter of the way from sample to sample, and the place there as an angle."""
        t = self.time_s
        i = np.clip(np.searchsorted(t, u) - 1, 0, t.size - 2)
        turn = 2 * np.pi * (u - t[i]) / (t[i + 1] - t[i])
        return u + bend_s * np.sin(turn), turn

    def whole(self, since: Floats, until: Floats) -> NDArray[np.bool_]:
        """Return where no gap lies in between."""
        if self.gap_s[-1] == 0:
            return np.ones(np.shape(since), dtype=bool)
        lost = np.interp(until, self.time_s, self.gap_s) - np.interp(since, self.time_s, self.gap_s)
        return np.asarray(lost <= 1e-9)


SETTLED_LAGS = 12.0
"""Time constants after which a lagging sensor has forgotten what came before."""


def curve(fast: Signal, sensor: Sensor, *, since_s: float = -np.inf, until_s: float = np.inf) -> Curve:
    """Return the energy curve of the fast log as this sensor sees it, at least between two times."""
    since_s -= sensor.window_s + SETTLED_LAGS * sensor.lag_s
    first, last = (int(i) for i in np.searchsorted(fast.time_s, (since_s, until_s)))
    if last - first > LEAST_KNOTS:
        fast = fast.part(slice(max(first - 2, 0), last + 2))
    t, p = fast.time_s, fast.value
    if fast.kind == COUNTER:
        t, p, held = t[1:], np.diff(p) / np.diff(t), True
    else:
        held = sensor.held
    if sensor.lag_s > 0:
        # Means passed through a lag are points at their stamps.
        p, held = np.asarray(_lagged(t, p, sensor.lag_s, held)), held and sensor.steps
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
    return f if c.gap_s[-1] == 0 else np.where(c.whole(u - w, u), f, np.nan)
