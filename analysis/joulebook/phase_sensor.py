"""Averaging window, lag and clock error of a sensor: those under which phases of constant power explain readings best.

References
----------
Golub and Pereyra 2003, variable projection, doi:10.1088/0266-5611/19/2/201.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize

from joulebook.occupancy import Series, share
from joulebook.phase_regression import Sensor, powers, usable
from joulebook.phase_timeline import Floats, Timeline

SHIFT_STEP_S = 0.05
"""Step of the search for the clock error [s]: about the shortest phase that can be resolved."""

LAGS_S = (0.0, 0.1, 0.3)
"""Sensor time constants that the search starts from [s]."""

WINDOW_PERIODS = (0.05, 0.25, 0.5, 1.0)
"""Averaging windows to try where none is declared [median steps]."""

WINDOW_FIXED_S = 1.0
"""Averaging window of many boards [s], tried where none is declared (arXiv:2312.02741)."""

MIN_EVIDENCE = 12.0
"""A lag or a window has to raise the log likelihood by so much to be adopted [1]."""

MIN_GAIN = 0.15
"""A window is adopted where it lowers the variance that the phases leave by this share [1]; else readings are taken as
instantaneous. Loads that vary inside of phases favour one window or other a little."""

SEARCH_CELLS = 1.0e5
"""Readings times labels used in the search [1]: more make it slower, not better."""


def search(
    data: Sequence[Series],
    line: Timeline,
    *,
    window_s: float | None,
    clock_error_s: float,
    fit_lag: bool = True,
) -> tuple[Sensor, bool]:
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
    Sensor, bool
        The best, and whether its shift lies at the edge of the search.
    """
    data = [_excerpt(d, len(line.names)) for d in data]
    period = max(d.period_s for d in data)
    windows = (window_s,) if window_s is not None else tuple(sorted({k * period for k in WINDOW_PERIODS} | (
        {WINDOW_FIXED_S} if 30 * period > WINDOW_FIXED_S else set())))  # fmt: skip
    grid = np.arange(-math.floor(clock_error_s / SHIFT_STEP_S), math.floor(clock_error_s / SHIFT_STEP_S) + 1)
    shifts = grid * SHIFT_STEP_S

    def best_of(windows: Sequence[float], lags: Sequence[float]) -> tuple[float, Sensor]:
        tried = (Sensor(w, g, float(s)) for w in windows for g in lags for s in shifts)
        return min(((_cost(data, line, x, clock_error_s), x) for x in tried), key=lambda pair: pair[0])

    cost, best = best_of(windows[:1], LAGS_S[:1])
    if len(windows) > 1:
        other, wide = best_of(windows[1:], LAGS_S[:1])
        gain = max(2 * MIN_EVIDENCE, MIN_GAIN * sum(len(d.t_s) for d in data))
        cost, best = (other, wide) if cost - other > gain else (cost, best)
    if fit_lag:
        _, best = min((cost, best), best_of((best.window_s,), LAGS_S[1:]), key=lambda pair: pair[0])
    if len(shifts) > 1:
        best = _polished(data, line, best, clock_error_s, fit_lag=fit_lag)
    edge = len(shifts) > 1 and abs(best.shift_s) > shifts[-1] - SHIFT_STEP_S / 2
    return best, edge


def _polished(data: Sequence[Series], line: Timeline, start: Sensor, reach: float, *, fit_lag: bool) -> Sensor:
    """Refine shift and lag from the best point of the grid; drop the lag where it explains nothing."""

    def at(x: Floats) -> float:
        lag = abs(x[1]) if len(x) > 1 else 0.0
        return _cost(data, line, Sensor(start.window_s, lag, float(np.clip(x[0], -reach, reach))), reach)

    def descend(x0: Floats) -> tuple[Floats, float]:
        simplex = np.vstack([x0, x0 + SHIFT_STEP_S / 2 * np.eye(len(x0))])
        r = minimize(at, x0, method="Nelder-Mead",
                     options={"initial_simplex": simplex, "xatol": 2e-4, "fatol": 1e-3, "maxiter": 120})  # fmt: skip
        return r.x, float(r.fun)

    plain, without = descend(np.array([start.shift_s + start.lag_s]))
    if fit_lag:
        full, cost = descend(np.array([start.shift_s, max(start.lag_s, 0.03)]))
        if without - cost > 2 * MIN_EVIDENCE:
            return Sensor(start.window_s, abs(float(full[1])), float(np.clip(full[0], -reach, reach)))
    return Sensor(start.window_s, 0.0, float(np.clip(plain[0], -reach, reach)))


def _excerpt(one: Series, width: int) -> Series:
    """Keep a stretch in the middle that is short enough to search over."""
    keep = max(int(SEARCH_CELLS / width), 1500)
    first = max((len(one.t_s) - keep) // 2, 0)
    cut = slice(first, first + keep)
    return replace(one, t_s=one.t_s[cut], power_w=one.power_w[cut], weight_s=one.weight_s[cut])


def _cost(data: Sequence[Series], line: Timeline, sensor: Sensor, reach: float) -> float:
    """Return twice the negative log likelihood of the readings, less constants."""
    widest = max(sensor.window_s, max(WINDOW_PERIODS) * data[0].period_s)
    total = 0.0
    for one in (usable(d, line, widest, reach) for d in data):
        if len(one.t_s) < 3:
            return math.inf
        x = share(line, one.t_s - sensor.shift_s, window_s=sensor.window_s, lag_s=sensor.lag_s)
        w = one.weight_s / one.weight_s.mean()
        p, gram, xy = powers(x, one.power_w, w, bounded=False)
        yy = float(w @ one.power_w**2)
        sse = yy - 2 * float(p @ xy) + float(p @ gram @ p)
        total += len(one.t_s) * math.log(max(sse, 1e-9 * yy, 1e-12))
    return total
