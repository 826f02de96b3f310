"""Steps of a clock inside a log: the two halves then want different offsets."""

from __future__ import annotations

import numpy as np
import polars as pl

from joulebook import align_checks, align_curve, align_model, align_noise, align_rows, align_search
from joulebook.align_model import Fit, Map
from joulebook.align_signal import Floats, Signal

LEAST_F = 20.0
"""Least gain in log-likelihood that proves a step, which is a shift and a place; in the variance that stretches show."""

LEAST_SE = 3.0
"""Least size of a step in its standard errors."""

LEAST_HALF = 200
"""Fewest samples of the slower log in a half."""

POOR_SHARE = 0.9
"""Share of the better half's explained variance below which the other half's shift is looked for anew."""

NONE = pl.DataFrame(schema={"ts_utc": pl.Datetime("us", "UTC"), "step_s": pl.Float64})


def find(fast: Signal, log: Signal, slow: Signal, whole: Fit) -> pl.DataFrame:
    """Find a step of either clock: fit both halves apart, and see where one map hands over to the other.

    Parameters
    ----------
    fast, log
        The logs.
    slow
        The rows of the slower log that fits rest on: all, or some of a long log.
    whole
        The fit of one line to all.

    Returns
    -------
    pl.DataFrame
        ``ts_utc`` (on the slower log's clock) and ``step_s``, by how much the slower clock was put forward against
        the faster one; no row where one line holds.
    """
    halves = _halves(fast, log, slow, whole)
    if halves is None:
        return NONE
    first, second, cut = halves
    at = float(slow.time_s[cut])
    if not _apart(fast, slow, (whole, first, second), at):
        return NONE
    if _improvement(fast, slow, (whole, first, second), cut) < LEAST_F:
        return NONE
    if log.time_s.size > slow.time_s.size:
        at = float(log.time_s[min(_handover(fast, log, first, second), log.time_s.size - 1)])
    return pl.DataFrame(
        {"ts_utc": [slow.epoch_us + round(at * 1e6)], "step_s": [_at(first, at) - _at(second, at)]},
        schema={"ts_utc": pl.Int64, "step_s": pl.Float64},
    ).cast(NONE.schema)


def _halves(fast: Signal, log: Signal, slow: Signal, whole: Fit) -> tuple[Fit, Fit, int] | None:
    """Return the maps before and after the likeliest step and its row, or nothing where one map serves both."""
    n = slow.time_s.size
    if n < 2 * LEAST_HALF:
        return None
    middle = float(slow.time_s[n // 2])
    first = _again(fast, slow.part(slice(0, n // 2)), whole)
    second = _again(fast, slow.part(slice(n // 2, n)), whole)
    best = max((f.r2 for f in (first, second) if f is not None), default=0.0)
    if _poor(first, slow, best):
        first = _searched(fast, log.part(log.time_s < middle), slow.part(slice(0, n // 2)), whole) or first
    if _poor(second, slow, best):
        second = _searched(fast, log.part(log.time_s >= middle), slow.part(slice(n // 2, n)), whole) or second
    if first is None or second is None:
        return None
    return _cut(fast, slow, (whole, first, second))


def _cut(fast: Signal, slow: Signal, maps: tuple[Fit, Fit, Fit]) -> tuple[Fit, Fit, int] | None:
    """Move the place of the step from the middle to where one map hands over to the other; nothing where they are no two."""
    n = slow.time_s.size
    whole, *two = maps
    pair: list[Fit | None] = [*two]
    cut = n // 2
    for turn in range(4):
        first, second = pair
        if first is None or second is None or not _apart(fast, slow, (whole, first, second), float(slow.time_s[cut])):
            return None
        # The middle may lie far from the step: a half that holds it is explained by neither map until it is cut there.
        if turn and not all(align_checks.related(f, slow) for f in (first, second)):
            return None
        old, cut = cut, _handover(fast, slow, first, second)
        if not LEAST_HALF // 4 < cut < n - LEAST_HALF // 4:
            return None
        if turn and (cut == old or turn == 3):
            return first, second, cut
        pair = [_again(fast, slow.part(slice(0, cut)), first), _again(fast, slow.part(slice(cut, n)), second)]
    return None


def _apart(fast: Signal, slow: Signal, maps: tuple[Fit, Fit, Fit], at: float) -> bool:
    """Return whether two maps differ at a time by more than their errors, the model's and the stamps'."""
    whole, first, second = maps
    size = _at(first, at) - _at(second, at)
    se = np.hypot(_se(first, at), _se(second, at))
    floor = align_noise.floor_s(whole.sensor, fast)
    return bool(abs(size) > LEAST_SE * np.hypot(se, floor) + fast.stamp_s + slow.stamp_s)


def _poor(fit: Fit | None, slow: Signal, best: float) -> bool:
    """Return whether a half is explained so badly that another shift may be the right one."""
    return fit is None or not align_checks.related(fit, slow) or fit.r2 < POOR_SHARE * best


def _at(fit: Fit, time_s: float) -> float:
    """Return the shift at a time of the slow clock [s]."""
    return fit.shift_s + fit.drift * (time_s - fit.anchor_s)


def _se(fit: Fit, time_s: float) -> float:
    """Return the standard error of the shift at a time [s]."""
    j = np.array([1.0, time_s - fit.anchor_s])
    return float(np.sqrt(max(j @ fit.covariance @ j, 0.0) * _scatter(fit)))


def _searched(fast: Signal, half: Signal, rows: Signal, whole: Fit) -> Fit | None:
    """Fit a half from its own best correlation; nothing where that leads nowhere better."""
    part = align_rows.liveliest(half)
    found = align_search.find(fast, part, apart_s=1.5 * half.period_s)
    if not found.shift_s.size:
        return None
    anchor = float(part.time_s[0] + part.time_s[-1]) / 2
    start = float(found.shift_s[0])
    near = align_model.fit(fast, part, whole.sensor, shift_s=start, drift=whole.drift, anchor_s=anchor)
    return None if near is None else _again(fast, rows, near)


def _again(fast: Signal, part: Signal, fit: Fit) -> Fit | None:
    """Fit a part anew from a map."""
    if part.time_s.size < LEAST_HALF // 4:
        return None
    anchor = float(part.time_s[0] + part.time_s[-1]) / 2
    return align_model.fit(
        fast, part, fit.sensor, shift_s=_at(fit, anchor), drift=fit.drift, anchor_s=anchor, bend_s=fit.bend_s
    )


def _misfit(fast: Signal, slow: Signal, fit: Fit) -> Floats:
    """Return the squared differences between readings and prediction, level removed."""
    u = slow.time_s + fit.shift_s + fit.drift * (slow.time_s - fit.anchor_s)
    c = align_curve.curve(fast, fit.sensor)
    f = align_curve.predict(c, slow, fit.sensor, c.bent(u, fit.bend_s)[0])
    r = np.diff(slow.value - fit.gain * f, prepend=np.nan)
    known = np.isfinite(r)
    return np.where(known, (r - np.mean(r[known])) ** 2 if known.any() else 0.0, 0.0)


def _handover(fast: Signal, slow: Signal, first: Fit, second: Fit) -> int:
    """Return the sample from which on the second map is the better one."""
    a, b = _misfit(fast, slow, first), _misfit(fast, slow, second)
    both = (a > 0) & (b > 0)
    return int(np.argmin(np.cumsum(np.where(both, a - b, 0.0)))) + 1


def _improvement(fast: Signal, slow: Signal, maps: tuple[Fit, Fit, Fit], cut: int) -> float:
    """Return how much better two maps are than one, per extra parameter, in the variance that the shifts really have."""
    one, *two = maps
    gained = 0.0
    for half, own in zip((slow.part(slice(0, cut)), slow.part(slice(cut, None))), two, strict=True):
        both = [
            align_model.judge(fast, half, f.sensor, Map(f.shift_s, f.drift, f.anchor_s, f.bend_s)) for f in (own, one)
        ]
        if both[0] is None:
            return 0.0
        # A half that is related under its own map and not at all under the one for both is proof enough.
        if align_checks.related(both[0], half) and (both[1] is None or not align_checks.related(both[1], half)):
            return np.inf
        gained += both[0].llr - (both[1].llr if both[1] is not None else 0.0)
    return gained / max(_scatter(f) for f in two)


def _scatter(fit: Fit) -> float:
    """Return by how much the shifts of stretches scatter beyond their own errors, as a ratio of variances of at least 1."""
    if fit.local_s.size < 4:
        return 1.0
    return max(1.0, float(np.sum((fit.local_s / fit.local_se) ** 2)) / (fit.local_s.size - 2))
