"""Averaging window, lag and clock error of a sensor: those under which phases of constant power explain readings best.

References
----------
Golub and Pereyra 2003, variable projection, doi:10.1088/0266-5611/19/2/201.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize

from joulebook import phase_grid, phase_rivals
from joulebook.occupancy import Series
from joulebook.phase_grid import Costs
from joulebook.phase_judge import Judge
from joulebook.phase_regression import SETTLED_LAGS, Sensor
from joulebook.phase_rivals import Rivals
from joulebook.phase_timeline import Floats, Timeline

SHIFT_STEP_S = 0.05
"""Step of the search for the clock error [s]: about the shortest phase that can be resolved."""

LAGS_S = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.9, 1.2, 1.8, 2.7)
"""Sensor time constants that are tried [s]."""

WINDOW_PERIODS = (0.05, 0.25, 0.5, 1.0)
"""Averaging windows to try where none is declared [median steps]."""

WINDOW_FIXED_S = 1.0
"""Averaging window of many boards [s], tried where none is declared (arXiv:2312.02741)."""

INSTANT_S = 0.01
"""Window of a sensor that does not average [s]: short against any phase that can be resolved."""

MIN_EVIDENCE = 12.0
"""A lag or a window has to raise the log likelihood by so much to be adopted [1]."""

SEARCH_CELLS = 4e4
"""Readings of all devices times labels used in the search [1]: more make it slower, not better."""

LOOKED_AT = 4.0
"""Worse by so much, a point of the grid may still lie beside one that is not excluded [shares of what excludes]."""

MOST_UNSETTLED = 0.1
"""At most this share of the phases is left out at their beginning, where a lag may hold what was before [1]."""

HILLS = 2
"""Local optima that are refined [1]."""

BEYOND = 4.0
"""A clock error is looked for so far, to see that it does not lie outside of the search [searches]."""


@dataclass(frozen=True, slots=True)
class Found:
    """How a sensor follows power.

    Parameters
    ----------
    sensor
        Window, lag and shift that explain the readings best.
    at_edge
        Whether the clock error was not found within the search.
    rivals
        Sensors that cannot be told from it.
    """

    sensor: Sensor
    at_edge: bool
    rivals: Rivals


def search(
    data: Sequence[Series],
    line: Timeline,
    *,
    window_s: float | None,
    clock_error_s: float,
    fit_lag: bool = True,
) -> Found:
    """Find window, lag and shift under which phases of constant power explain the readings best.

    Parameters
    ----------
    data
        Readings by device.
    line
        Phases.
    window_s
        Averaging window [s]; ``None`` = to be found.
    clock_error_s
        Largest shift to search [s]; 0 = the clocks agree.
    fit_lag
        Whether a sensor lag is searched.

    Returns
    -------
    Found
        The best sensor, whether its shift was not found, and the sensors that cannot be told from it.
    """
    data = [_excerpt(d, len(line.names) * len(data)) for d in data]
    windows, lags = _windows(data, window_s), LAGS_S if fit_lag else LAGS_S[:1]
    steps = math.floor(clock_error_s / SHIFT_STEP_S)
    shifts = np.arange(-steps, steps + 1, dtype=np.float64) * SHIFT_STEP_S
    settled_s = min(SETTLED_LAGS * lags[-1], MOST_UNSETTLED * float(line.breaks_s[-1]))
    widest_s = max(*windows, *(d.period_s for d in data)) + settled_s
    judge = Judge(data, line, widest_s=widest_s, reach_s=clock_error_s)
    tried = phase_grid.costs(judge, windows, lags, shifts)
    if not tried:
        return Found(Sensor(windows[0]), False, phase_rivals.none(len(line.names)))
    if steps == 0:
        return Found(
            _lowest(tried, _of(tried, _window(judge, tried, windows))), False, phase_rivals.none(len(line.names))
        )
    if fit_lag and len(windows) > 1:
        for start in [_lowest(tried, _of(tried, w)) for w in windows]:
            _descend(judge, tried, start, clock_error_s, free_lag=True)
    best = _polished(judge, tried, _window(judge, tried, windows), clock_error_s, fit_lag=fit_lag)
    wide = Judge(data, line, widest_s=widest_s, reach_s=BEYOND * clock_error_s)
    edge = abs(best.shift_s) > shifts[-1] - SHIFT_STEP_S / 2
    if edge or _outside(wide, best, (windows, lags), clock_error_s):
        return Found(best, True, phase_rivals.none(len(line.names)))
    return Found(best, False, phase_rivals.find(judge, best, tried))


def _windows(data: Sequence[Series], window_s: float | None) -> tuple[float, ...]:
    """Return the windows to try, shortest first."""
    if window_s is not None:
        return (window_s,)
    period = max(d.period_s for d in data)
    fixed = {w for w in (INSTANT_S, WINDOW_FIXED_S) if w < 30 * period and abs(w / period - WINDOW_PERIODS[0]) > 0.03}
    return tuple(sorted({k * period for k in WINDOW_PERIODS} | fixed))


def _of(tried: Costs, window: float, lag: float | None = None) -> list[Sensor]:
    return [s for s in tried if s.window_s == window and lag in (None, s.lag_s)]


def _lowest(tried: Costs, among: Iterable[Sensor]) -> Sensor:
    return min(among, key=lambda s: float(tried[s].sum()))


def _clearly(judge: Judge, better: Floats, other: Floats) -> bool:
    """Tell whether costs are clearly lower, and not in a few stretches only."""
    return float(other.sum() - better.sum()) > 2 * MIN_EVIDENCE and judge.excess(other, better) > 1


def _window(judge: Judge, tried: Costs, windows: Sequence[float]) -> float:
    """Return the window that explains readings best; the shortest unless another is clearly better."""
    first, other = _lowest(tried, _of(tried, windows[0])), _lowest(tried, tried)
    return other.window_s if _clearly(judge, tried[other], tried[first]) else windows[0]


def _hills(tried: Costs, window: float, lags: Sequence[float]) -> list[Sensor]:
    """Return the best local optima over the clock error."""
    out: list[Sensor] = []
    for lag in lags:
        row = sorted(_of(tried, window, lag), key=lambda s: s.shift_s)
        cost = np.array([np.inf, *(tried[s].sum() for s in row), np.inf])
        out += [row[i] for i in np.flatnonzero((cost[1:-1] <= cost[:-2]) & (cost[1:-1] <= cost[2:]))]
    return sorted(out, key=lambda s: float(tried[s].sum()))


def _descend(judge: Judge, tried: Costs, start: Sensor, reach: float, *, free_lag: bool) -> Sensor:
    """Refine the shift of a sensor, and its lag where it is free; whatever is tried on the way is kept."""

    def cost(x: Floats) -> tuple[float, Sensor]:
        lag = min(abs(float(x[1])), 2 * LAGS_S[-1]) if free_lag else start.lag_s
        sensor = replace(start, lag_s=lag, shift_s=float(np.clip(x[0], -reach, reach)))
        if sensor not in tried:
            tried[sensor] = judge.look(sensor).cost
        return float(tried[sensor].sum()), sensor

    x0 = np.array([start.shift_s, max(start.lag_s, 0.03)][: 1 + free_lag])
    simplex = np.vstack([x0, x0 + SHIFT_STEP_S / 2 * np.eye(len(x0))])
    options = {"initial_simplex": simplex, "xatol": 2e-4, "fatol": 2e-3, "maxiter": 120}
    return cost(minimize(lambda x: cost(x)[0], x0, method="Nelder-Mead", options=options).x)[1]


def _polished(judge: Judge, tried: Costs, window: float, reach: float, *, fit_lag: bool) -> Sensor:
    """Refine shift and lag from the best points of the grid; drop the lag where it explains nothing."""
    hills = _hills(tried, window, LAGS_S)[:HILLS]
    none = _hills(tried, window, LAGS_S[:1])[:HILLS]
    plain = _lowest(tried, [_descend(judge, tried, s, reach, free_lag=False) for s in none])
    if not fit_lag:
        return plain
    full = _lowest(tried, [_descend(judge, tried, s, reach, free_lag=True) for s in hills])
    # between the points of the grid, lag and clock error may trade places all along a narrow valley
    for start in (h for lag in LAGS_S[1:] for h in _hills(tried, window, (lag,))[:1]):
        if judge.excess(tried[start], tried[full]) < LOOKED_AT:
            _descend(judge, tried, start, reach, free_lag=False)
    return full if _clearly(judge, tried[full], tried[plain]) else plain


def _outside(judge: Judge, best: Sensor, tried: tuple[Sequence[float], Sequence[float]], reach: float) -> bool:
    """Tell whether a clock error outside of the search explains readings clearly better."""
    steps = np.arange(reach + 2 * SHIFT_STEP_S, BEYOND * reach, 2 * SHIFT_STEP_S)
    others = phase_grid.costs(judge, tried[0], tried[1][::3], np.concatenate([-steps, steps]))
    return bool(others) and _clearly(judge, others[_lowest(others, others)], judge.look(best).cost)


def _excerpt(one: Series, width: int) -> Series:
    """Keep a stretch in the middle that is short enough to search over."""
    keep = max(int(SEARCH_CELLS / width), 1500)
    first = max((len(one.t_s) - keep) // 2, 0)
    cut = slice(first, first + keep)
    return replace(one, t_s=one.t_s[cut], power_w=one.power_w[cut], weight_s=one.weight_s[cut])
