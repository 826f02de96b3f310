"""Power of each phase by regression of readings on occupancy, with clock error and sensor lag fitted jointly.

A reading is the mean over a window, so it is a mix of the phases in that window. With many repeats the mix varies and
the power of phases shorter than the sampling interval can be solved for, provided that the clocks of log and phases
agree to a fraction of the shortest phase: hence the shift is part of the fit.

References
----------
Golub and Pereyra 2003, variable projection, doi:10.1088/0266-5611/19/2/201.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from joulebook.occupancy import Series, share
from joulebook.phase_timeline import Floats, Timeline
from joulebook.phase_variance import grain_w, hac

SETTLED_LAGS = 4.0
"""Readings of a sensor still hold what was before the phases for so many of its time constants [1]."""

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
    columns
        Label indices that are in the fit.
    power_w
        One row a device, one column a label of ``columns`` [W].
    influence
        What each moment adds to the error of the energy of each label, summed over devices [J]: one row a reading
        interval, one column a label of ``columns``.
    direct
        The same with clock and lag taken as known; 0 where a reading is in another phase.
    gram
        Weighted products of the columns of the fit, summed over devices.
    residual_w
        Root mean square that the fit leaves, per reading [W].
    roughness_j2
        Variance of the energy of each label from successive differences of readings wholly inside of it [J²].
    grain_j2
        Variance of the energy of each label from the steps of a sensor that moves by few of them [J²].
    n
        Readings with at least a tenth of a percent of each label.
    readings
        Readings in the fit.
    """

    sensor: Sensor
    shift_se_s: float
    lag_se_s: float
    columns: NDArray[np.int64]
    power_w: Floats
    influence: Floats
    direct: Floats
    gram: Floats
    residual_w: float
    roughness_j2: Floats
    grain_j2: Floats
    n: NDArray[np.int64]
    readings: int

    @property
    def covariance(self) -> Floats:
        """Covariance of the energies [J²], consistent with autocorrelation."""
        return hac(self.influence)


def usable(one: Series, line: Timeline, window_s: float, reach: float) -> Series:
    """Keep readings whose window lies inside of the line for every shift that is searched.

    Parameters
    ----------
    one
        Readings.
    line
        Phases.
    window_s, reach
        Length of the window and largest shift [s].

    Returns
    -------
    Series
        The readings that are kept.
    """
    ok = (one.t_s - window_s - reach >= -1e-9) & (one.t_s + reach <= line.breaks_s[-1] + 1e-9)
    return replace(one, t_s=one.t_s[ok], power_w=one.power_w[ok], weight_s=one.weight_s[ok])


def powers(x: Floats, y: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Solve for powers by weighted least squares; none is negative.

    Parameters
    ----------
    x
        Shares of each reading's window, one column a label.
    y
        Readings [W].
    w
        Weights [1].

    Returns
    -------
    ndarray, ndarray
        Powers [W], Gram matrix.
    """
    xw = x * w[:, None]
    gram, xy = x.T @ xw, xw.T @ y
    scale = np.sqrt(np.where(np.diag(gram) > 1e-12, np.diag(gram), 1.0))
    normal = gram / scale[:, None] / scale + RIDGE * np.eye(len(gram))
    root = np.linalg.cholesky(normal)
    target = solve_triangular(root, xy / scale, lower=True)
    return nnls(root.T, target)[0] / scale, gram


def whole(data: Sequence[Series], line: Timeline, sensor: Sensor) -> list[Series]:
    """Return, of the devices that have three of them, the readings of which all that they are a mean of lies in the run."""
    whole_s = sensor.window_s + SETTLED_LAGS * sensor.lag_s
    return [u for u in (usable(d, line, whole_s, abs(sensor.shift_s)) for d in data) if len(u.t_s) > 2]


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
    used = whole(data, line, sensor)
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
    error = np.concatenate([p.error for p in parts])
    return Fit(
        sensor, float(se[0]), float(se[1]), columns,
        np.array([p.power for p in parts]), influence, direct, np.asarray(sum(p.gram for p in parts)),
        float(np.sqrt(np.mean(error**2))),
        np.asarray(sum(p.roughness for p in parts)), np.asarray(sum(p.grain for p in parts)) * seconds**2 / 12,
        np.asarray(sum((p.x > 1e-3).sum(axis=0) for p in parts), dtype=np.int64), sum(len(u.t_s) for u in used),
    )  # fmt: skip


def inverted(gram: Floats) -> Floats:
    """Invert a Gram matrix; labels that always go together get a huge entry rather than none.

    Parameters
    ----------
    gram
        Symmetric matrix.

    Returns
    -------
    ndarray
        Its inverse, kept finite by a ridge of 1e-10.
    """
    scale = np.sqrt(np.where(np.diag(gram) > 1e-12, np.diag(gram), 1.0))
    inner = np.linalg.inv(gram / scale[:, None] / scale + RIDGE * np.eye(len(gram)))
    return np.asarray(inner / scale[:, None] / scale, dtype=np.float64)


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
    grain: Floats
    slopes: Floats
    drag: Floats


def _device(one: Series, line: Timeline, sensor: Sensor, columns: NDArray[np.int64], *, fitted: bool) -> _Part:
    """Fit one device; ``slopes`` are the parts of the shift and lag derivatives that powers cannot absorb."""
    x = _share(one, line, sensor)[:, columns]
    w = one.weight_s / one.weight_s.mean()
    power, gram = powers(x, one.power_w, w)
    inverse = inverted(gram)
    error = one.power_w - x @ power
    # residuals of readings that pull the fit are too small
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
    grain = np.array([grain_w(np.abs(np.diff(one.power_w))[inside]) for inside in pure.T])
    return _Part(power, x, gram, scores, error, noise, rough, grain**2, g - x @ drag, drag)


def _share(one: Series, line: Timeline, sensor: Sensor) -> Floats:
    return share(line, one.t_s - sensor.shift_s, window_s=sensor.window_s, lag_s=sensor.lag_s)
