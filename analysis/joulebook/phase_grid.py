"""How well many sensors explain readings, all at once: windows and clock errors of one lag share a walk over the phases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joulebook import occupancy
from joulebook.occupancy import Series
from joulebook.phase_judge import Judge, floored
from joulebook.phase_regression import RIDGE, Sensor
from joulebook.phase_timeline import Floats, Ints, Timeline

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
    sums = occupancy.responded(line, times.ravel(), lag_s=lag).reshape(*times.shape, -1)
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
    xw = np.swapaxes(x * w[..., None], 1, 2)
    gram, xy = xw @ x, xw @ y
    size = np.einsum("skk->sk", gram)
    scale = np.sqrt(np.where(size > 1e-12, size, 1.0))
    normal = gram / scale[:, :, None] / scale[:, None] + RIDGE * np.eye(x.shape[2])
    p = np.linalg.solve(normal, (xy / scale)[..., None]) / scale[..., None]
    return np.asarray(y - (x @ p)[..., 0])
