"""How long a sensor averages, told by a reference that is much faster."""

from __future__ import annotations

import numpy as np
import polars as pl

from joulebook import align_curve, align_model, align_signal
from joulebook.align_curve import Sensor
from joulebook.align_signal import Floats
from joulebook.findings import Estimate

WINDOWS = 60
"""Windows tried on a log grid."""

BEST, BETWEEN = 3, 6
"""How many of the best windows have others tried beside them, and how many: a load of short steps goes in and out of
step with the window, and the likelihood has a hill for each."""

LEAST_W = 1e-3
"""Residual below which two windows explain a log alike: no sensor resolves less [W]."""

Z95 = 1.959964


def window(reading: pl.DataFrame, reference: pl.DataFrame, *, longest_s: float = 3.0) -> Estimate:
    """Estimate a sensor's averaging window against a reference that is much faster.

    Window and delay are fitted together, because each mimics the other.

    Parameters
    ----------
    reading
        The sensor's log: ``ts_utc``, ``power_w`` [W]. Repeats are dropped.
    reference
        A log of the same power at least ten times finer than the window.
    longest_s
        Longest window tried [s].

    Returns
    -------
    Estimate
        Window [s], with the range within 1.92 of the best log-likelihood, widened by the grid.

    References
    ----------
    Z. Yang, K. Adamek, W. Armour, arXiv:2312.02741.

    Examples
    --------
    >>> window(pl.DataFrame({"ts_utc": [], "power_w": []}), pl.DataFrame({"ts_utc": [], "power_w": []})).reason
    'fewer than 20 readings'
    """
    method = "window and delay fitted to a faster reference"
    if min(len(reading), len(reference)) < 20:
        return Estimate.refused("fewer than 20 readings", unit="s", n=len(reading), method=method)
    fast, _ = align_signal.build(reference, window_s=0.0)
    new = reading.sort("ts_utc").filter((pl.col("power_w") != pl.col("power_w").shift(1)).fill_null(True))
    slow, _ = align_signal.build(new, epoch_us=fast.epoch_us)
    grid = np.geomspace(max(2 * fast.period_s, longest_s / 500), longest_s, WINDOWS)
    rough = _delay(fast, slow, longest_s / 3, np.arange(-2.0, 2.0, slow.period_s / 10))
    fine = np.arange(rough - longest_s / 3, rough + longest_s / 3, max(fast.period_s, slow.period_s / 20))
    score = np.array([_likelihood(fast, slow, float(w), rough, fine) for w in grid])
    finer = [np.linspace(grid[max(i - 1, 0)], grid[min(i + 1, WINDOWS - 1)], BETWEEN + 2)[1:-1] for i in _hills(score)]
    if finer:
        more = np.setdiff1d(np.concatenate(finer), grid)
        order = np.argsort(np.concatenate([grid, more]))
        likely = np.array([_likelihood(fast, slow, float(w), rough, fine) for w in more])
        grid, score = np.concatenate([grid, more])[order], np.concatenate([score, likely])[order]
    best = int(np.argmax(score))
    if not score[best] > 25:
        return Estimate.refused("the reference does not explain the readings", unit="s", n=len(new), method=method)
    if best in (0, grid.size - 1):
        edge = "shorter" if best == 0 else "longer"
        return Estimate.refused(f"{edge} than the windows tried", unit="s", n=len(new), method=method)
    near = np.flatnonzero(score >= score[best] - Z95**2 / 2)
    lo, hi = grid[max(near[0] - 1, 0)], grid[min(near[-1] + 1, grid.size - 1)]
    return Estimate(float(grid[best]), float(lo), float(hi), "s", n=len(new), method=method)


def _likelihood(
    fast: align_signal.Signal, slow: align_signal.Signal, window_s: float, rough: float, fine: Floats
) -> float:
    """Return the log-likelihood of a window at its best delay, against no relation, for noise that forgets itself at once.

    Noise that remembers could mimic a load of short steps as well as a window does, whatever remains unexplained.
    """
    best, at = -np.inf, float(slow.time_s.mean())
    # a periodic load has many delays that look alike: the common one and the window's own are both tried
    for delay in (rough, _delay(fast, slow, window_s, fine)):
        start = delay + window_s / 2
        one = align_model.fit(fast, slow, Sensor(window_s, 0.0, False), shift_s=start, drift=0.0, anchor_s=at)
        if one is not None and one.gain > 0:
            best = max(best, one.n * float(np.log(np.std(slow.value) / max(one.residual_w, LEAST_W))))
    return best


def _hills(score: Floats) -> list[int]:
    """Return the places of the highest local maxima."""
    padded = np.concatenate([[-np.inf], score, [-np.inf]])
    tops = np.flatnonzero((score >= padded[:-2]) & (score >= padded[2:]) & np.isfinite(score))
    return [int(i) for i in tops[np.argsort(-score[tops], kind="stable")][:BEST]]


def _delay(fast: align_signal.Signal, slow: align_signal.Signal, window_s: float, shifts: Floats) -> float:
    """Return the shift of the middle of a window at which the reference agrees best with the readings [s]."""
    c = align_curve.curve(fast, Sensor(window_s, 0.0, False))
    score = []
    for s in shifts:
        f = align_curve.predict(c, slow, Sensor(window_s, 0.0, False), slow.time_s + s + window_s / 2)
        known = np.isfinite(f)
        score.append(_correlation(f[known], slow.value[known]) if known.sum() > 16 else -1.0)
    return float(shifts[int(np.argmax(score))])


def _correlation(a: Floats, b: Floats) -> float:
    """Return the correlation of two series, -1 where one of them does not change."""
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm > 0 else -1.0
