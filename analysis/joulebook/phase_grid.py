"""How well many sensors explain readings, all at once: windows and clock errors of one lag share a walk over the phases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit

from joulebook.occupancy import Series
from joulebook.phase_judge import Judge, floored
from joulebook.phase_regression import RIDGE, Sensor
from joulebook.phase_timeline import Floats, Ints, Timeline
from joulebook.sensor_response import cumulated

BLOCK_CELLS = 1e6
"""Numbers worked on at once [1]."""

Costs = dict[Sensor, Floats]


def costs(judge: Judge, windows: Sequence[float], lags: Sequence[float], shifts: Floats) -> Costs:
    """Return the cost of each combination, stretch by stretch, with powers of either sign.

    Parameters
    ----------
    judge
        Readings.
    windows, lags, shifts
        What is tried [s].

    Returns
    -------
    dict
        Cost of each stretch by sensor; empty without readings.
    """
    out: Costs = {}
    if not judge.data:
        return out
    cells = max(len(u.t_s) for u in judge.data) * len(judge.line.names) * (len(windows) + 1)
    block = max(int(BLOCK_CELLS / cells), 1)
    for lag in lags:
        for first in range(0, len(shifts), block):
            part = shifts[first : first + block]
            total = np.zeros((len(windows), len(part), judge.count))
            for one, slot in zip(judge.data, judge.slots, strict=True):
                total += _device(judge.line, one, slot, (windows, lag, part))
            out |= {Sensor(w, lag, s): total[i, j] for i, w in enumerate(windows) for j, s in enumerate(part.tolist())}
    return out


def _device(line: Timeline, one: Series, slot: Ints, tried: tuple[Sequence[float], float, Floats]) -> Floats:
    """Return what one device adds to the costs: by window, shift and stretch."""
    windows, lag, shifts = tried
    back = np.array([0.0, *windows])
    times = one.t_s - shifts[:, None] - back[:, None, None]
    sums = cumulated(line, times.reshape(-1, len(one.t_s)), lag_s=lag).reshape(*times.shape, -1)
    w = one.weight_s / one.weight_s.mean()
    starts, n = np.unique(slot, return_index=True, return_counts=True)[1:]
    out = np.empty((len(windows), len(shifts), len(n)))
    for i, window in enumerate(windows):
        x = (sums[0] - sums[i + 1]) / window
        squares = w * _errors(x, one.power_w, np.broadcast_to(w, x.shape[:2])) ** 2
        varied = floored(np.add.reduceat(squares, starts, axis=1) / n, one)
        squares = w * _errors(x, one.power_w, w / varied[:, slot]) ** 2
        out[i] = n * np.log(floored(np.add.reduceat(squares, starts, axis=1) / n, one))
    return out


def _errors(x: Floats, y: Floats, w: Floats) -> Floats:
    """Return what weighted least squares leaves; one row a sensor, one column a reading."""
    gram, xy = _sums(x, y, w)
    size = np.einsum("skk->sk", gram)
    scale = np.sqrt(np.where(size > 1e-12, size, 1.0))
    normal = gram / scale[:, :, None] / scale[:, None] + RIDGE * np.eye(x.shape[2])
    p = np.linalg.solve(normal, (xy / scale)[..., None])[..., 0] / scale
    left: Floats = _left(x, y, p)
    return left


@njit(cache=True)
def _sums(x: Any, y: Any, w: Any) -> Any:
    """Return the weighted products of shares with each other and with readings; most shares are zero."""
    sensors, n, width = x.shape
    gram, xy = np.zeros((sensors, width, width)), np.zeros((sensors, width))
    for s in range(sensors):
        for j in range(n):
            for a in range(width):
                weighted = x[s, j, a] * w[s, j]
                if weighted != 0.0:
                    xy[s, a] += weighted * y[j]
                    for b in range(a + 1):
                        gram[s, a, b] += weighted * x[s, j, b]
        for a in range(width):
            for b in range(a):
                gram[s, b, a] = gram[s, a, b]
    return gram, xy


@njit(cache=True)
def _left(x: Any, y: Any, p: Any) -> Any:
    sensors, n, width = x.shape
    out = np.empty((sensors, n))
    for s in range(sensors):
        for j in range(n):
            told = 0.0
            for a in range(width):
                told += x[s, j, a] * p[s, a]
            out[s, j] = y[j] - told
    return out
