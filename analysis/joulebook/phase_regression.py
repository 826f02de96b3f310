"""Power of each phase by regression of readings on occupancy, with clock error and sensor lag fitted jointly.

A reading is the mean over a window, so it is a mix of the phases in that window. With many repeats the mix varies and the
power of phases shorter than the sampling interval can be solved for, provided that the clocks of log and phases agree to
a fraction of the shortest phase: hence the shift is part of the fit.

References
----------
Golub and Pereyra 2003, variable projection, doi:10.1088/0266-5611/19/2/201. Newey and West 1987, doi:10.2307/1913610.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import minimize, nnls

from joulebook.occupancy import Floats, Series, Timeline, share

HAC_LAGS = 5
"""Least bandwidth of the autocorrelation-consistent covariance [readings]."""

BATCHES = 5
"""Batches that a rare phase is cut into [1]: few, so that each is longer than a beat between load and sampling."""

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

RIDGE = 1e-10
"""Added to the diagonal of the normalised Gram matrix so that labels which always go together have a solution."""


@dataclass(frozen=True, slots=True)
class Sensor:
    """How readings follow power: window, first-order lag and clock error (stamp minus true time), all [s]."""

    window_s: float
    lag_s: float = 0.0
    shift_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Fit:
    """Powers by label and device.

    Parameters
    ----------
    sensor
        Window, lag and shift of the best fit.
    shift_se_s, lag_se_s
        Their standard errors [s]; 0 where not fitted.
    at_edge
        Whether the best shift lies at the edge of the search.
    columns
        Label indices that are in the fit.
    power_w
        One row a device, one column a label of ``columns`` [W].
    influence
        What each moment adds to the error of the energy of each label, summed over devices [J]: one row a reading
        interval, one column a label of ``columns``.
    direct
        The same with clock and lag taken as known; 0 where a reading is in another phase.
    vif
        Variance inflation of each label [1].
    correlation
        Correlation of the estimates of the labels.
    residual_w
        Root mean square that the fit leaves, per reading [W].
    roughness_j2
        Variance of the energy of each label from successive differences of readings wholly inside of it [J²].
    n
        Readings with at least a tenth of a percent of each label.
    readings
        Readings in the fit.
    """

    sensor: Sensor
    shift_se_s: float
    lag_se_s: float
    at_edge: bool
    columns: NDArray[np.int64]
    power_w: Floats
    influence: Floats
    direct: Floats
    vif: Floats
    correlation: Floats
    residual_w: float
    roughness_j2: Floats
    n: NDArray[np.int64]
    readings: int

    @property
    def covariance(self) -> Floats:
        """Covariance of the energies [J²], consistent with autocorrelation."""
        return hac(self.influence)


def hac(influence: Floats) -> Floats:
    """Return the covariance of a sum of autocorrelated rows, by Bartlett weights.

    Parameters
    ----------
    influence
        One row a moment, one column a quantity.

    Returns
    -------
    ndarray
        Covariance of the column sums.

    Examples
    --------
    >>> hac(np.array([[1.0], [0.0], [0.0], [0.0], [0.0], [0.0], [0.0], [1.0]])).tolist()
    [[2.0]]
    """
    lags = max(HAC_LAGS, int(0.75 * len(influence) ** (1 / 3)))
    total: Floats = influence.T @ influence
    for lag in range(1, min(lags, len(influence) - 1) + 1):
        cross = influence[lag:].T @ influence[:-lag]
        total += (1 - lag / (lags + 1)) * (cross + cross.T)
    return total


def batched(influence: Floats) -> tuple[Floats, Floats]:
    """Return the variance of column sums from a few long batches, and its degrees of freedom.

    A sensor that samples a fast load now and then sees slow beats, longer than the lags of ``hac``.

    Parameters
    ----------
    influence
        One row a moment, one column a quantity; rows of 0 do not belong to it.

    Returns
    -------
    ndarray, ndarray
        Variance and degrees of freedom by column.
    """
    variance, freedom = np.zeros(influence.shape[1]), np.ones(influence.shape[1])
    for j, column in enumerate(influence.T):
        mine = column[column != 0]
        count = min(BATCHES, len(mine) // 3)
        if count > 1:
            sums = np.add.reduceat(mine, np.linspace(0, len(mine), count, endpoint=False).astype(np.int64))
            variance[j], freedom[j] = count * np.var(sums, ddof=1), count - 1
    return variance, freedom


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
        {WINDOW_FIXED_S} if WINDOW_FIXED_S < 30 * period else set())))  # fmt: skip
    grid = np.arange(-math.floor(clock_error_s / SHIFT_STEP_S), math.floor(clock_error_s / SHIFT_STEP_S) + 1)
    shifts = grid * SHIFT_STEP_S
    lags = LAGS_S if fit_lag else LAGS_S[:1]

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


def _usable(one: Series, line: Timeline, window_s: float, reach: float) -> Series:
    """Keep readings whose window lies inside of the line for every shift that is searched."""
    ok = (one.t_s - window_s - reach >= -1e-9) & (one.t_s + reach <= line.breaks_s[-1] + 1e-9)
    return replace(one, t_s=one.t_s[ok], power_w=one.power_w[ok], weight_s=one.weight_s[ok])


def _cost(data: Sequence[Series], line: Timeline, sensor: Sensor, reach: float) -> float:
    """Return twice the negative log likelihood of the readings, less constants."""
    widest = max(sensor.window_s, max(WINDOW_PERIODS) * data[0].period_s)
    total = 0.0
    for one in (_usable(d, line, widest, reach) for d in data):
        if len(one.t_s) < 3:
            return math.inf
        x = share(line, one.t_s - sensor.shift_s, window_s=sensor.window_s, lag_s=sensor.lag_s)
        w = one.weight_s / one.weight_s.mean()
        p, gram, xy = _powers(x, one.power_w, w, bounded=False)
        yy = float(w @ one.power_w**2)
        sse = yy - 2 * float(p @ xy) + float(p @ gram @ p)
        total += len(one.t_s) * math.log(max(sse, 1e-9 * yy, 1e-12))
    return total


def _powers(x: Floats, y: Floats, w: Floats, *, bounded: bool = True) -> tuple[Floats, Floats, Floats]:
    """Solve for powers, not below zero where bounded; return them with Gram matrix and right-hand side."""
    xw = x * w[:, None]
    gram, xy = x.T @ xw, xw.T @ y
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    normal = gram / scale[:, None] / scale + RIDGE * np.eye(len(gram))
    root = np.linalg.cholesky(normal)
    target = solve_triangular(root, xy / scale, lower=True)
    p = nnls(root.T, target)[0] if bounded else solve_triangular(root.T, target)
    return p / scale, gram, xy


def fit(
    data: Sequence[Series],
    line: Timeline,
    sensor: Sensor,
    *,
    columns: NDArray[np.int64],
    reach_s: float = 0.0,
) -> Fit:
    """Fit powers at a given sensor model and say how far each energy may be trusted.

    Parameters
    ----------
    data
        Readings by device.
    line
        Phases.
    sensor
        Window, lag and shift.
    columns
        Labels that enter the fit.
    reach_s
        Largest shift that was searched [s]; 0 = shift and lag are given, not fitted.

    Returns
    -------
    Fit
        Powers by label of ``columns``.
    """
    seconds = line.seconds[columns]
    used = [u for u in (_usable(d, line, sensor.window_s, abs(sensor.shift_s)) for d in data) if len(u.t_s) > 2]
    parts = [_device(u, line, sensor, columns, fitted=reach_s > 0) for u in used]
    period = max(d.period_s for d in data)
    slots = [np.floor((u.t_s - used[0].t_s[0]) / period + 0.5).astype(np.int64) for u in used]
    first = min(int(s.min()) for s in slots)
    direct = np.zeros((max(int(s.max()) for s in slots) - first + 1, len(columns)))
    free = parts[0].slopes.shape[1]
    tilt, pull, info = np.zeros((len(columns), free)), np.zeros((len(direct), free)), np.zeros((free, free))
    for part, slot in zip(parts, slots, strict=True):
        np.add.at(direct, slot - first, part.scores * seconds)
        tilt += part.drag * seconds[:, None]
        info += part.slopes.T @ part.slopes / part.noise**2
        np.add.at(pull, slot - first, part.slopes * part.error[:, None] / part.noise**2)
    influence, se = direct, np.zeros(2)
    if free:
        moved = pull @ np.linalg.pinv(info)
        influence = direct - moved @ tilt.T
        se[:free] = np.sqrt(np.maximum(np.diag(hac(moved)), 0))
    gram = sum(p.gram for p in parts)
    inverse = np.linalg.pinv(gram)
    spread = np.sqrt(np.maximum(np.diag(inverse), 1e-300))
    return Fit(
        sensor, float(se[0]), float(se[1]), False, columns,
        np.array([p.power for p in parts]), influence, direct, np.diag(gram) * np.diag(inverse),
        inverse / spread[:, None] / spread, float(np.sqrt(np.mean(np.concatenate([p.error for p in parts]) ** 2))),
        np.asarray(sum(p.roughness for p in parts)),
        np.asarray(sum((p.x > 1e-3).sum(axis=0) for p in parts), dtype=np.int64), sum(len(u.t_s) for u in used),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Part:
    """One device's share of a fit."""

    power: Floats
    x: Floats
    gram: Floats
    scores: Floats
    error: Floats
    noise: float
    roughness: Floats
    slopes: Floats
    drag: Floats


def _device(one: Series, line: Timeline, sensor: Sensor, columns: NDArray[np.int64], *, fitted: bool) -> _Part:
    """Fit one device; ``slopes`` are the parts of the shift and lag derivatives that powers cannot absorb."""
    x = _share(one, line, sensor)[:, columns]
    w = one.weight_s / one.weight_s.mean()
    power, gram, _ = _powers(x, one.power_w, w)
    inverse = np.linalg.pinv(gram)
    error = one.power_w - x @ power
    leverage = np.clip(np.einsum("ij,jk,ik,i->i", x, inverse, x, w), 0, 0.9)
    error = error / np.sqrt(1 - leverage)
    noise = max(float(np.sqrt(np.mean(error**2))), 1e-9)
    scores = (w * error)[:, None] * (x @ inverse)
    turns = []
    if fitted:
        turns.append((_share(one, line, replace(sensor, shift_s=sensor.shift_s + 2e-3))[:, columns] - x) @ power / 2e-3)
        if sensor.lag_s > 0:
            turns.append((_share(one, line, replace(sensor, lag_s=sensor.lag_s + 2e-3))[:, columns] - x) @ power / 2e-3)
    g = np.array(turns).reshape(len(turns), len(error)).T
    pure = (x[1:] > 0.999) & (x[:-1] > 0.999)
    jumps = np.diff(one.power_w)[:, None] ** 2 * one.weight_s[1:, None] ** 2 / 2
    rough = np.where(pure, jumps, 0.0).sum(axis=0)
    drag = inverse @ (x * w[:, None]).T @ g
    return _Part(power, x, gram, scores, error, noise, rough, g - x @ drag, drag)


def _share(one: Series, line: Timeline, sensor: Sensor) -> Floats:
    return share(line, one.t_s - sensor.shift_s, window_s=sensor.window_s, lag_s=sensor.lag_s)
