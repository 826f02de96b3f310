"""Which phases a fit can tell apart, which only together, which not at all; and how far each energy may be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from joulebook import distributions, phase_repeats
from joulebook.occupancy import Series
from joulebook.phase_regression import Fit, Sensor, inverted
from joulebook.phase_rivals import Rivals
from joulebook.phase_timeline import OTHER, Floats, Timeline
from joulebook.phase_variance import batched

MIN_READINGS = 2
"""A phase with fewer readings has no number [1]."""

MIN_PERIODS = 20.0
"""Phases shorter than two reading intervals need so many reading intervals in all [1]."""

MAX_RELATIVE_SE = 0.30
"""Above this relative standard error a phase is merged with the one it is confused with [1]."""

MAX_VIF = 1e4
"""Above this variance inflation two phases cannot be told apart, however small the residual [1]."""

LONG_PERIODS = 10.0
"""A phase that lasts so many reading intervals is integrated, its edges being a small share [1]."""

RARE = 20
"""With fewer stretches than this the edges of a phase do not average out [1]."""

UNSEEN_SHARE = 0.9
"""A sensor that averages over less than this share of its interval may alias a fast load [1]."""

BEAT_PERIODS = 50.0
"""Beats between such a load and the sampling average out over so many reading intervals [1]."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a split rests on: phases, readings, sensor, reach of the search [s], sensors that cannot be told from it.

    ``unsure_s`` is how large a clock error may be that was not found [s]; 0 where it was, or where clocks agree.
    """

    line: Timeline
    data: tuple[Series, ...]
    sensor: Sensor
    reach_s: float
    rivals: Rivals
    unsure_s: float = 0.0

    @property
    def at_edge(self) -> bool:
        """Whether the search for the clock error failed."""
        return self.unsure_s > 0

    @property
    def interval_s(self) -> float:
        """Time that one reading speaks for [s]."""
        return max(self.sensor.window_s, *(d.period_s for d in self.data))


@dataclass(frozen=True, slots=True)
class Part:
    """One phase, or several that cannot be told apart; ``reason`` says why it has no number.

    ``drawn_ratio`` is the share of the way by which its power was drawn to the mean of its repeats, ``open_j`` the most
    that time without readings can add [J].
    """

    names: tuple[str, ...]
    energy_j: float
    half_width_j: float
    seconds: float
    n: int
    long: bool
    drawn_ratio: float
    reason: str
    open_j: float = 0.0

    @property
    def name(self) -> str:
        """Names joined by a plus."""
        return "+".join(self.names)


def find(case: Case, fit: Fit) -> tuple[Part, ...]:
    """Group the labels of a fit into parts that have a number, and name those that have not.

    Parameters
    ----------
    case
        What the split rests on.
    fit
        Powers by label.

    Returns
    -------
    tuple of Part
        Every label of the fit is in one part.
    """
    line, interval = case.line, case.interval_s
    seconds, count = line.seconds[fit.columns], line.stretches[fit.columns]
    energy = fit.power_w.sum(axis=0) * seconds
    mean_s = seconds / count
    short = mean_s < 2 * interval
    little = (fit.n < MIN_READINGS) | (short & (seconds < MIN_PERIODS * interval))
    free = little | (mean_s >= LONG_PERIODS * interval)
    groups = _groups(fit, energy, free, _sensor_spread(case, fit))
    if len(groups) == 1 and len(groups[0]) > 1:
        little[:], why = True, _nothing_apart(fit, energy, free)
    else:
        why = "readings are too few"
    long = mean_s >= LONG_PERIODS * interval
    repeats = [line.names[int(fit.columns[g[0]])] if len(g) == 1 and not little[g[0]] else "" for g in groups]
    alike = phase_repeats.kinds([name if name != OTHER else "" for name in repeats])
    lasts = np.array([seconds[g].sum() for g in groups])
    power = np.array([energy[g].sum() for g in groups]) / lasts
    half, variance = _half_widths(case, fit, groups, long, alike)
    power, share = phase_repeats.drawn(phase_repeats.without_odd_ones(alike, power), power, lasts, variance)
    parts = []
    for i, (members, width) in enumerate(zip(groups, half, strict=True)):
        reason = ""
        if little[members].any():
            reason = why if len(groups) == 1 else f"{int(fit.n[members].max())} {why}: {seconds[members].sum():.3g} s"
        elif (mean_s[members] < LONG_PERIODS * case.unsure_s).any():
            reason = "too short for a clock error that was not found"
        parts.append(Part(
            tuple(sorted(line.names[int(k)] for k in fit.columns[members])), float(power[i] * lasts[i]), float(width),
            float(lasts[i]), int(fit.n[members].max()), bool(long[members].all()), float(share[i]), reason,
        ))  # fmt: skip
    return tuple(parts)


def _nothing_apart(fit: Fit, energy: Floats, free: NDArray[np.bool_]) -> str:
    """Return why no phase can be told from any other."""
    if len(_groups(fit, energy, free, np.zeros_like(fit.covariance))) > 1:
        return "sensors of another lag or clock error explain the readings as well, and give the phases other powers"
    return "every reading holds the same mix of phases: they cannot be told apart"


def _groups(fit: Fit, energy: Floats, free: NDArray[np.bool_], spread: Floats) -> list[NDArray[np.int64]]:
    """Join each phase that is too uncertain with the one its estimate trades energy with, until none is left.

    ``spread`` is what the sensor leaves open, as a covariance [J²].
    """
    size = len(energy)
    groups = [np.array([k]) for k in range(size)]
    cov = fit.covariance + spread
    while len(groups) > 1:
        sums = np.array([np.isin(np.arange(size), g) for g in groups], dtype=float)
        total, between = sums @ energy, sums @ cov @ sums.T
        se = np.sqrt(np.maximum(np.diag(between), 0))
        gram = sums @ fit.gram @ sums.T
        inflation = np.diag(gram) * np.diag(inverted(gram))
        bad = np.maximum(se / np.maximum(total, 1e-12) / MAX_RELATIVE_SE, inflation / MAX_VIF)
        alone = np.array([free[g].all() or fit.columns[g].tolist() == [0] for g in groups])
        bad[alone] = 0.0
        worst = int(np.argmax(bad))
        if bad[worst] <= 1:
            break
        pull = between[worst] / np.maximum(se * se[worst], 1e-300)
        pull[worst] = np.inf
        partner = int(np.argmin(pull))
        joined = np.sort(np.concatenate([groups[worst], groups[partner]]))
        groups = [g for i, g in enumerate(groups) if i not in (worst, partner)] + [joined]
    return sorted(groups, key=lambda g: int(g[0]))


def _half_widths(
    case: Case, fit: Fit, groups: list[NDArray[np.int64]], long: NDArray[np.bool_], alike: phase_repeats.Kinds
) -> tuple[Floats, Floats]:
    """Return half of the 95 % interval of each group's energy [J], and its variance by itself [J²].

    Readings count and, for rare or long phases, edges; what the repeats of a phase show is in the interval.
    """
    interval = case.interval_s
    sums = np.array([np.isin(np.arange(len(fit.columns)), g) for g in groups], dtype=float).T
    influence, direct = fit.influence @ sums, fit.direct @ sums
    seconds, count = case.line.seconds[fit.columns] @ sums, case.line.stretches[fit.columns] @ sums
    steady = np.array([bool(long[g].all()) for g in groups])
    rare = steady | (count < RARE)
    covered = np.maximum(np.diag(sums.T @ fit.covariance @ sums), np.einsum("ij,ij->j", influence, influence))
    noise = np.where(steady, fit.roughness_j2 @ sums + fit.grain_j2 @ sums, covered)
    n = np.array([int(fit.n[g].max()) for g in groups])
    near = distributions.student_quantile(0.975, np.maximum(n - 1, 2)) * np.sqrt(noise)
    beats, freedom = batched(direct)
    blind = case.sensor.window_s < UNSEEN_SHARE * interval
    beaten = rare & (seconds < BEAT_PERIODS * interval * count) & (~steady | blind)
    squares, bound = _edges(case, fit, groups)
    seen: Floats = np.where(beaten, beats, 0.0)
    variance = np.maximum(noise, seen) + np.where(rare, squares, 0.0)
    power = (fit.power_w.sum(axis=0) * case.line.seconds[fit.columns]) @ sums / seconds
    seen, freedom = phase_repeats.pooled([k for k in alike if beaten[k].all()], power, seconds, seen, freedom)
    noisy = np.maximum(near, distributions.student_quantile(0.975, freedom) * np.sqrt(seen))
    if case.reach_s <= 0:
        return noisy + bound, variance
    reach = _rival_reach(case, fit, sums)
    return np.maximum(np.hypot(noisy, 1.96 * np.sqrt(np.where(rare, squares, 0.0))), reach), variance


def _sensor_spread(case: Case, fit: Fit) -> Floats:
    """Return what sensors that fit as well add to the covariance of the energies [J²]."""
    return case.rivals.spread_j2()[np.ix_(fit.columns, fit.columns)]


def _rival_reach(case: Case, fit: Fit, sums: Floats) -> Floats:
    """Return how far groups' energies reach under sensors that fit as well [J]."""
    whole = np.zeros((len(case.line.names), sums.shape[1]))
    whole[fit.columns] = sums
    return case.rivals.reach_j(whole)


def _edges(case: Case, fit: Fit, groups: list[NDArray[np.int64]]) -> tuple[Floats, Floats]:
    """Return variance [J²] and bound [J] of the energy that edges may put on the wrong side."""
    size = len(case.line.names)
    level, owner = np.zeros(size), np.full(size, -1)
    level[fit.columns] = fit.power_w.sum(axis=0)
    for i, g in enumerate(groups):
        owner[fit.columns[g]] = i
    at = case.line.label[np.diff(case.line.breaks_s) > 0]
    left, right = owner[at[:-1]], owner[at[1:]]
    apart_s = max(case.interval_s, 2 * case.unsure_s)
    step = np.where((left != right) & (left >= 0) & (right >= 0), np.abs(np.diff(level[at])) * apart_s, 0.0)
    left, right = np.maximum(left, 0), np.maximum(right, 0)
    squares = np.bincount(left, step**2, len(groups)) + np.bincount(right, step**2, len(groups))
    bound = np.bincount(left, step, len(groups)) + np.bincount(right, step, len(groups))
    return squares / 12, bound / 2


def largest_edge_j(case: Case, fit: Fit) -> float:
    """Return the largest energy that one edge may put on the wrong side [J]: half an interval times the step in power.

    Parameters
    ----------
    case
        What the split rests on.
    fit
        Powers by label.

    Returns
    -------
    float
        Energy [J].
    """
    level = np.zeros(len(case.line.names))
    level[fit.columns] = fit.power_w.sum(axis=0)
    steps = np.abs(np.diff(level[case.line.label]))
    return float(steps.max() * case.interval_s / 2) if len(steps) else 0.0
