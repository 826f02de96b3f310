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
    score = np.full(grid.size, -np.inf)
    rough = _delay(fast, slow, longest_s / 3, np.arange(-2.0, 2.0, slow.period_s / 10))
    fine = np.arange(rough - longest_s / 3, rough + longest_s / 3, max(fast.period_s, slow.period_s / 20))
    at = float(slow.time_s.mean())
    for i, w in enumerate(grid):
        # a periodic load has many delays that look alike: the common one and the window's own are both tried
        for delay in (rough, _delay(fast, slow, float(w), fine)):
            start = delay + float(w) / 2
            one = align_model.fit(fast, slow, Sensor(float(w), 0.0, False), shift_s=start, drift=0.0, anchor_s=at)
            if one is not None and one.gain > 0:
                score[i] = max(score[i], one.llr)
    best = int(np.argmax(score))
    if not score[best] > 25:
        return Estimate.refused("the reference does not explain the readings", unit="s", n=len(new), method=method)
    if best in (0, grid.size - 1):
        edge = "shorter" if best == 0 else "longer"
        return Estimate.refused(f"{edge} than the windows tried", unit="s", n=len(new), method=method)
    near = np.flatnonzero(score >= score[best] - Z95**2 / 2)
    lo, hi = grid[max(near[0] - 1, 0)], grid[min(near[-1] + 1, grid.size - 1)]
    return Estimate(float(grid[best]), float(lo), float(hi), "s", n=len(new), method=method)


def _delay(fast: align_signal.Signal, slow: align_signal.Signal, window_s: float, shifts: Floats) -> float:
    """Return the shift of the middle of a window at which the reference agrees best with the readings [s]."""
    c = align_curve.curve(fast, Sensor(window_s, 0.0, False))
    score = []
    for s in shifts:
        f = align_curve.predict(c, slow, Sensor(window_s, 0.0, False), slow.time_s + s + window_s / 2)
        known = np.isfinite(f)
        good = known.sum() > 16 and np.ptp(f[known]) > 0
        score.append(float(np.corrcoef(f[known], slow.value[known])[0, 1]) if good else -1.0)
    return float(shifts[int(np.argmax(score))])
