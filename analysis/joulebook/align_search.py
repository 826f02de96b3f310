"""Candidates for the shift between two logs: correlation at every lag that leaves enough overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from joulebook.align_signal import COUNTER, Floats, Signal

HIGH_PASS_S = 600.0
"""Length of the running mean that is taken off [s]: slower changes (fans, room) are not common to both logs."""

LEAST_OVERLAP = 0.3
"""Least share of the shorter log that a shift must leave in common."""

CANDIDATES = 6
"""How many peaks are refined."""

GRID_SAMPLES = 2**22
"""Most samples of the common grid."""


@dataclass(frozen=True)
class Candidates:
    """Shifts slow clock -> fast clock [s], best first, their correlation, and how many other peaks are nearly as high.

    Parameters
    ----------
    shift_s
        Shifts [s].
    correlation
        Correlation at each.
    rivals
        Peaks with at least 0.9 of the best correlation, without the best.
    overlap
        Share of the shorter log in common, at each.
    """

    shift_s: Floats
    correlation: Floats
    rivals: int
    overlap: Floats


def find(fast: Signal, slow: Signal, *, apart_s: float) -> Candidates:
    """Correlate two logs at every lag and return the highest separate peaks.

    The search covers all lags, hours included, so a wrong time zone is found like any other shift.

    Parameters
    ----------
    fast, slow
        The logs, each on its own clock.
    apart_s
        Least distance between two peaks [s].

    Returns
    -------
    Candidates
        Empty where nothing varies or overlaps.
    """
    step = max(slow.period_s / (4 if slow.period_s > 4 * fast.period_s else 1), fast.period_s)
    span = max(np.ptp(fast.time_s), np.ptp(slow.time_s))
    step = max(step, span / GRID_SAMPLES * 2)
    x, has_x, x0 = _grid(fast, step)
    y, has_y, y0 = _grid(slow, step)
    if not (np.any(x) and np.any(y)):
        return Candidates(np.zeros(0), np.zeros(0), 0, np.zeros(0))
    lags, r, common = _correlation(x, has_x, y, has_y)
    need = LEAST_OVERLAP * min(has_x.sum(), has_y.sum())
    r = np.where(common >= max(need, 16), r, -1.0)
    wait = max(1, round(apart_s / step))
    peaks = _peaks(r, wait)
    if peaks.size == 0:
        return Candidates(np.zeros(0), np.zeros(0), 0, np.zeros(0))
    rivals = int((r[peaks] >= 0.9 * r[peaks[0]]).sum()) - 1
    top = peaks[:CANDIDATES]
    # slow sample j lies on fast sample j + lag of the grids
    shift = lags[top] * step + x0 - y0
    shorter = max(min(has_x.sum(), has_y.sum()), 1)
    return Candidates(shift, r[top], rivals, common[top] / shorter)


def _grid(s: Signal, step: float) -> tuple[Floats, Floats, float]:
    """Put a log on a regular grid as means of its cells, less its running mean; 0 and unmarked where it has a gap.

    Each value stands for the time back to the sample before it.
    """
    t, v = s.time_s, s.value
    if s.kind == COUNTER:
        t, v = t[1:], np.diff(v) / np.diff(t)
    width = np.minimum(np.diff(t, prepend=t[0] - s.period_s), 2.5 * s.period_s)
    origin = t[0] - width[0]
    # a last cell that is not half full would count as a gap
    edges = origin + step * np.arange(max(round((t[-1] - origin) / step - 0.01), 1) + 1)
    knots = np.column_stack([t - width, t]).ravel()
    knots = np.maximum.accumulate(knots)
    held = np.column_stack([np.zeros_like(v), v * width]).ravel().cumsum()
    seen = np.column_stack([np.zeros_like(v), width]).ravel().cumsum()
    cover = np.diff(np.interp(edges, knots, seen))
    power = np.diff(np.interp(edges, knots, held))
    has = cover > 0.5 * step
    cell = np.where(has, power / np.maximum(cover, 1e-12), 0.0)
    n = max(3, round(HIGH_PASS_S / step))
    count = _running(has.astype(float), n)
    level = _running(cell, n) / np.maximum(count, 1e-9)
    return np.where(has, cell - level, 0.0), has.astype(float), float(origin)


def _running(a: Floats, n: int) -> Floats:
    """Return centred running sums over ``n`` cells, fewer at the ends."""
    total = np.concatenate([[0.0], np.cumsum(a)])
    i = np.arange(a.size)
    return np.asarray(total[np.minimum(i + n // 2 + 1, a.size)] - total[np.maximum(i - n // 2, 0)])


def _correlation(x: Floats, has_x: Floats, y: Floats, has_y: Floats) -> tuple[Floats, Floats, Floats]:
    """Return lags, the correlation over the common part at each, and the size of that part in cells."""
    size = fft.next_fast_len(x.size + y.size, real=True)

    def spectrum(a: Floats) -> Floats:
        return np.asarray(fft.rfft(a, size, workers=2))

    lags = np.concatenate([np.arange(-(y.size - 1), 0), np.arange(x.size)])
    pick = lags % size
    xy = fft.irfft(spectrum(x) * np.conj(spectrum(y)), size, workers=2)[pick]
    if has_x.all() and has_y.all():
        xx, yy, n = _overlap(x, y, lags)
    else:
        fyy, fym = (np.conj(spectrum(a)) for a in (y * y, has_y))
        fxx, fxm = (spectrum(a) for a in (x * x, has_x))
        xx, yy, n = (fft.irfft(a, size, workers=2)[pick] for a in (fxx * fym, fxm * fyy, fxm * fym))
    scale = np.sqrt(np.maximum(xx, 0) * np.maximum(yy, 0))
    floor = 1e-6 * np.sqrt((x @ x) * (y @ y))
    return lags.astype(float), np.where(scale > floor, xy / np.maximum(scale, floor), 0.0), n


def _overlap(x: Floats, y: Floats, lags: NDArray[np.intp]) -> tuple[Floats, Floats, Floats]:
    """Return the sums of squares of two series over what they have in common at each lag, and its size: without gaps."""
    since, until = np.maximum(lags, 0), np.minimum(y.size + lags, x.size)
    squares_x, squares_y = (np.concatenate([[0.0], np.cumsum(a * a)]) for a in (x, y))
    xx = squares_x[until] - squares_x[since]
    yy = squares_y[until - lags] - squares_y[since - lags]
    return xx, yy, (until - since).astype(float)


def _peaks(r: Floats, wait: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return positions of positive local maxima, highest first, no two closer than ``wait``."""
    inner = np.flatnonzero((r[1:-1] >= r[:-2]) & (r[1:-1] > r[2:]) & (r[1:-1] > 0)) + 1
    if inner.size == 0:
        return inner
    inner = inner[r[inner] >= 0.3 * r[inner].max()]
    order = inner[np.argsort(-r[inner], kind="stable")][:5000]
    taken: list[int] = []
    near = np.zeros(r.size, dtype=bool)
    for i in order:
        if not near[i]:
            taken.append(int(i))
            near[max(0, i - wait) : i + wait + 1] = True
        if len(taken) > 40:
            break
    return np.array(taken, dtype=np.intp)
