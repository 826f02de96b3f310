"""Sensors that explain readings about as well as the best one: what they make of each phase is as likely.

Readings that meet few parts of a step, or steps that are short against a sensor's memory, fit several pairs of lag and
clock error alike, each with other powers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from joulebook.phase_judge import Judge
from joulebook.phase_regression import Sensor
from joulebook.phase_timeline import Floats

MOST = 80
"""Sensors looked at closely [1]."""

LIKELIEST = 10
"""How many of them are the most likely; the others are from all over what was tried [1]."""


@dataclass(frozen=True, slots=True)
class Rivals:
    """Sensors that cannot be told from the best.

    Parameters
    ----------
    sensors
        One each.
    off_j
        Energy of each label less that under the best [J]: one row a sensor, one column a label.
    covariance_j2
        Covariance of these energies at the given sensor [J²].
    slack
        Part of a 95 % interval that is left at the sensor [1]: 1 where it explains readings as well as the best, 0 where
        it is just not excluded.
    """

    sensors: tuple[Sensor, ...]
    off_j: Floats
    covariance_j2: Floats
    slack: Floats

    def reach_j(self, sums: Floats) -> Floats:
        """Return how far energies reach from those under the best sensor [J].

        Parameters
        ----------
        sums
            One row a label, one column a sum of labels; 0 or 1.

        Returns
        -------
        ndarray
            One a column: the farthest end of the intervals of the rivals; 0 without any.
        """
        if not self.sensors:
            return np.zeros(sums.shape[1])
        own = np.einsum("kl,skm,ml->sl", sums, self.covariance_j2, sums)
        half = 1.96 * np.sqrt(np.maximum(own, 0)) * self.slack[:, None]
        return np.asarray(np.max(np.abs(self.off_j @ sums) + half, axis=0))

    def spread_j2(self) -> Floats:
        """Return the covariance of labels that has the farthest rivals as ends of 95 % intervals [J²]."""
        width = self.off_j.shape[1]
        if not self.sensors:
            return np.zeros((width, width))
        moment = self.off_j.T @ self.off_j
        scale = np.sqrt(np.maximum(np.diag(moment), 1e-300))
        far = np.abs(self.off_j).max(axis=0) / 1.96
        return np.asarray(moment / scale[:, None] / scale * far[:, None] * far)


def none(width: int) -> Rivals:
    """Return no rivals, for so many labels."""
    return Rivals((), np.zeros((0, width)), np.zeros((0, width, width)), np.zeros(0))


def find(judge: Judge, best: Sensor, tried: Mapping[Sensor, Floats]) -> Rivals:
    """Return those of the tried sensors that the readings do not exclude.

    Parameters
    ----------
    judge
        Where they were tried.
    best
        The chosen sensor.
    tried
        Sensors with their costs, stretch by stretch.

    Returns
    -------
    Rivals
        At most eighty: the most likely, and others from all over the search.
    """
    mine = judge.look(best)
    top = min(*tried.values(), mine.cost, key=_total)
    near = sorted((s for s, c in tried.items() if judge.excess(c, top) < 1), key=lambda s: _total(tried[s]))
    rest = sorted(near[LIKELIEST:], key=lambda s: (s.window_s, s.lag_s, s.shift_s))
    near = near[:LIKELIEST] + rest[:: max(-(-len(rest) // (MOST - LIKELIEST)), 1)]
    seen = [(s, judge.look(s)) for s in near]
    # powers below nothing, which the search allows, make some sensors look better than they are
    top = min(*(v.cost for _, v in seen), mine.cost, key=_total) if seen else mine.cost
    kept = [(s, v, x) for s, v in seen if (x := judge.excess(v.cost, top)) < 1]
    if not kept:
        return none(len(mine.energy_j))
    # a phase that a rival's readings would not have met may have any share of the whole
    whole = float(mine.energy_j.sum())
    off = np.array([np.where(v.met | ~mine.met, v.energy_j - mine.energy_j, whole) for _, v, _ in kept])
    # of a phase that lies outside of what was looked at, nothing was learnt: what its powers could be there is no doubt of it
    covariance = np.array([v.covariance_j2 * np.outer(v.met, v.met) for _, v, _ in kept])
    return Rivals(tuple(s for s, _, _ in kept), off, covariance, np.sqrt([1 - x for *_, x in kept]))


def _total(cost: Floats) -> float:
    return float(cost.sum())
