"""How well a sensor's window, lag and clock error explain readings, stretch of the log by stretch.

Each stretch has its own residual variance, so that one that no constant powers describe, as a warm-up, does not choose
the sensor; and of two sensors one is better only where it is so all over the log.

References
----------
Vuong 1989, doi:10.2307/1912557. Chandler and Bate 2007, doi:10.1093/biomet/asm015.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulebook import distributions
from joulebook.occupancy import Series, share
from joulebook.phase_regression import Sensor, inverted, powers, usable
from joulebook.phase_timeline import Floats, Ints, Timeline

STRETCHES = 24
"""Stretches that a log is cut into [1]."""

MIN_READINGS = 8
"""Readings in a stretch, at least [1]."""

LEAST_VARIANCE = 0.25
"""Residual variance of a stretch, at least [median of the stretches]: a calm one says no more than that."""

MET = 1e-3
"""A label that all readings together hold less of is not met [readings]."""


@dataclass(frozen=True, slots=True)
class View:
    """Readings as one sensor explains them.

    Parameters
    ----------
    cost
        Twice the negative log likelihood, less constants; one a stretch.
    energy_j
        Energy of each label [J].
    covariance_j2
        Its covariance at this sensor [J²].
    met
        Whether readings meet a label.
    """

    cost: Floats
    energy_j: Floats
    covariance_j2: Floats
    met: NDArray[np.bool_]


class Judge:
    """Looks at the same readings with several sensors.

    Parameters
    ----------
    data
        Readings by device.
    line
        Phases.
    widest_s, reach_s
        Longest window and largest shift that will be tried [s]: readings whose window may leave the line are left out.
    """

    def __init__(self, data: Sequence[Series], line: Timeline, *, widest_s: float, reach_s: float) -> None:
        self.line = line
        used = (usable(d, line, widest_s, reach_s) for d in data)
        self.data: list[Series] = [u for u in used if len(u.t_s) > MIN_READINGS // 2]
        least = min((len(u.t_s) for u in self.data), default=0)
        self.count = max(min(STRETCHES, least // MIN_READINGS), 1)
        self.slots: list[Ints] = [np.arange(len(u.t_s)) * self.count // len(u.t_s) for u in self.data]
        freedom = np.array([max(self.count - 1.0, 1.0)])
        self._threshold = float(distributions.student_quantile(0.975, freedom)[0]) ** 2

    def look(self, sensor: Sensor) -> View:
        """Return what a sensor makes of the readings, with powers that are not negative.

        Parameters
        ----------
        sensor
            Window, lag and shift.

        Returns
        -------
        View
            Cost by stretch, energies by label.
        """
        width, seconds = len(self.line.names), self.line.seconds
        cost, energy, covariance = np.zeros(self.count), np.zeros(width), np.zeros((width, width))
        met = np.ones(width, dtype=bool)
        for one, slot in zip(self.data, self.slots, strict=True):
            x = share(self.line, one.t_s - sensor.shift_s, window_s=sensor.window_s, lag_s=sensor.lag_s)
            w = one.weight_s / one.weight_s.mean()
            n = np.bincount(slot, minlength=self.count)
            power, gram = powers(x, one.power_w, w)
            squares = w * (one.power_w - x @ power) ** 2
            varied = floored(np.bincount(slot, squares, self.count) / n, one)
            even, _ = powers(x, one.power_w, w / varied[slot])
            left = np.bincount(slot, w * (one.power_w - x @ even) ** 2, self.count) / n
            cost += n * np.log(floored(left, one))
            energy += power * seconds
            covariance += float(squares.mean()) * inverted(gram) * seconds[:, None] * seconds
            met &= np.diag(gram) > MET
        return View(cost, energy, covariance, met)

    def excess(self, one: Floats, best: Floats) -> float:
        """Return by how much a sensor is worse than another, from their costs [1]: from 1 on it is excluded.

        Parameters
        ----------
        one, best
            Cost of each stretch under both.

        Returns
        -------
        float
            Likelihood ratio over its 95 % limit, less where few stretches make most of it; 0 where it is not worse.
        """
        by = one - best
        gap = float(by.sum())
        if gap <= 0:
            return 0.0
        # were the better one true, the ratio would vary by four times its size
        uneven = max(len(by) * float(np.var(by, ddof=1)) / (4 * gap), 1.0) if len(by) > 1 else 1.0
        return gap / uneven / self._threshold


def floored(variance: Floats, one: Series) -> Floats:
    """Return residual variances of stretches, none below what a calm stretch may say.

    Parameters
    ----------
    variance
        Variances [W²], the last axis being stretches.
    one
        Readings.
    """
    middle = np.sort(variance, axis=-1)[..., variance.shape[-1] // 2, None]
    least = max(1e-9 * float(np.mean(one.power_w**2)), 1e-12)
    return np.maximum(variance, np.maximum(LEAST_VARIANCE * middle, least))
