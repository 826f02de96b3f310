"""Steps of a clock inside a log: the two halves then want different offsets."""

from __future__ import annotations

import numpy as np
import polars as pl

from joulebook import align_checks, align_curve, align_model, align_search
from joulebook.align_model import Fit
from joulebook.align_signal import Floats, Signal

LEAST_F = 20.0
"""Least improvement of the residual, in units of its own variance per parameter, that proves a step."""

LEAST_SE = 3.0
"""Least size of a step in its standard errors."""

LEAST_HALF = 200
"""Fewest samples of the slower log in a half."""

NONE = pl.DataFrame(schema={"ts_utc": pl.Datetime("us", "UTC"), "step_s": pl.Float64})


def find(fast: Signal, slow: Signal, whole: Fit) -> pl.DataFrame:
    """Find a step of either clock: fit both halves apart, and see where one map hands over to the other.

    Parameters
    ----------
    fast, slow
        The logs.
    whole
        The fit of one line to all.

    Returns
    -------
    pl.DataFrame
        ``ts_utc`` (on the slower log's clock) and ``step_s``, by how much the slower clock was put forward against
        the faster one; no row where one line holds.
    """
    n = slow.time_s.size
    if n < 2 * LEAST_HALF:
        return NONE
    first = _half(fast, slow.part(slice(0, n // 2)), whole)
    second = _half(fast, slow.part(slice(n // 2, n)), whole)
    for _ in range(3):
        if first is None or second is None:
            return NONE
        cut = _handover(fast, slow, first, second)
        if not LEAST_HALF // 4 < cut < n - LEAST_HALF // 4:
            return NONE
        first = _again(fast, slow.part(slice(0, cut)), first)
        second = _again(fast, slow.part(slice(cut, n)), second)
    if first is None or second is None:
        return NONE
    at = float(slow.time_s[cut])
    size = _at(first, at) - _at(second, at)
    se = np.hypot(_se(first, at), _se(second, at))
    floor = align_checks.floor_s(whole, fast)
    sure = abs(size) > LEAST_SE * np.hypot(se, floor) + fast.stamp_s + slow.stamp_s
    if not sure or _improvement(fast, slow, (whole, first, second), cut) < LEAST_F:
        return NONE
    return pl.DataFrame(
        {"ts_utc": [slow.epoch_us + round(at * 1e6)], "step_s": [size]},
        schema={"ts_utc": pl.Int64, "step_s": pl.Float64},
    ).cast(NONE.schema)


def _at(fit: Fit, time_s: float) -> float:
    """Return the shift at a time of the slow clock [s]."""
    return fit.shift_s + fit.drift * (time_s - fit.anchor_s)


def _se(fit: Fit, time_s: float) -> float:
    """Return the standard error of the shift at a time [s]."""
    j = np.array([1.0, time_s - fit.anchor_s])
    return float(np.sqrt(max(j @ fit.covariance @ j, 0.0)))


def _half(fast: Signal, half: Signal, whole: Fit) -> Fit | None:
    """Fit a half from the whole's map and from its own best correlation; the better one counts."""
    found = align_search.find(fast, half, apart_s=1.5 * half.period_s)
    anchor = float(half.time_s[0] + half.time_s[-1]) / 2
    starts = [_at(whole, anchor), *found.shift_s[:1].tolist()]
    fits = [
        align_model.fit(fast, half, whole.sensor, shift_s=s, drift=whole.drift, anchor_s=anchor)
        for i, s in enumerate(starts)
        if i == 0 or abs(s - starts[0]) > half.period_s
    ]
    good = [f for f in fits if f is not None and align_checks.related(f, half)]
    return max(good, key=lambda f: f.llr / f.n) if good else None


def _again(fast: Signal, part: Signal, fit: Fit) -> Fit | None:
    """Fit a part anew from a map."""
    if part.time_s.size < LEAST_HALF // 4:
        return None
    anchor = float(part.time_s[0] + part.time_s[-1]) / 2
    return align_model.fit(fast, part, fit.sensor, shift_s=_at(fit, anchor), drift=fit.drift, anchor_s=anchor)


def _misfit(fast: Signal, slow: Signal, fit: Fit) -> Floats:
    """Return the squared differences between readings and prediction, level removed."""
    u = slow.time_s + fit.shift_s + fit.drift * (slow.time_s - fit.anchor_s)
    f = align_curve.predict(align_curve.curve(fast, fit.sensor), slow, fit.sensor, u)
    r = np.diff(slow.value - fit.gain * f, prepend=np.nan)
    known = np.isfinite(r)
    return np.where(known, (r - np.mean(r[known])) ** 2 if known.any() else 0.0, 0.0)


def _handover(fast: Signal, slow: Signal, first: Fit, second: Fit) -> int:
    """Return the sample from which on the second map is the better one."""
    a, b = _misfit(fast, slow, first), _misfit(fast, slow, second)
    both = (a > 0) & (b > 0)
    return int(np.argmin(np.cumsum(np.where(both, a - b, 0.0)))) + 1


def _improvement(fast: Signal, slow: Signal, maps: tuple[Fit, Fit, Fit], cut: int) -> float:
    """Return how much better two maps are than one, per extra parameter, in residual variances."""
    one, a, b = (_misfit(fast, slow, f) for f in maps)
    two = np.concatenate([a[:cut], b[cut:]])
    both = (one > 0) & (two > 0)
    return float((one[both].sum() - two[both].sum()) / 2 / max(two[both].mean(), 1e-30))
