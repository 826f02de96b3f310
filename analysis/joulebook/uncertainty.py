"""Named parts of the uncertainty of an energy: time between readings, the window's edges, the grain of the values."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
from numba import njit
from numpy.typing import NDArray

from joulebook import distributions
from joulebook.stretches import Floats, Stretches

GRAIN_SAMPLE = 4096
"""Readings that are looked at to find the grain of the values; enough to meet every digit many times."""

FINEST_DECIMALS = 6
"""Values with more decimals than this are taken as not rounded."""

SAME_STEP = 1e-3
"""Difference from a whole number of steps that is rounding."""

EXACT_WHOLE = 2.0**40
"""Up to this size a double holds a number with some thousandths to spare."""

COVERAGE_FACTOR = 1.959963984540054
"""Half width of a 95 % interval in standard deviations of a normal error."""


def grain_w(power_w: Floats) -> float:
    """Return the step in which values are given [W], 0 where none can be seen.

    Examples
    --------
    >>> grain_w(np.array([312.0, 326, 298, 340])), grain_w(np.array([215.3, 215.5, 214.0, 216.7]))
    (14.0, 0.1)
    >>> grain_w(np.array([0.0, 72, 180, 288, 396]))  # a register of 0.01 Wh that moved by 2 and 3 of them
    36.0
    """
    some = power_w if power_w.size <= GRAIN_SAMPLE else power_w[:: power_w.size // GRAIN_SAMPLE]
    values = np.unique(some)
    if values.size > 3:
        # Digits alone would call a meter with 14 W steps one with 1 W steps.
        common = _common_step(np.diff(values))
        if common:
            return round(common, FINEST_DECIMALS)
    largest = float(np.abs(values).max(initial=0.0))
    for decimals in range(FINEST_DECIMALS + 1):
        scaled = values * 10.0**decimals
        if largest * 10.0**decimals > EXACT_WHOLE:
            break  # a double has no digits left to tell
        if np.allclose(scaled, np.round(scaled), rtol=0, atol=1e-3):
            return float(10.0**-decimals)
    return 0.0


def _common_step(steps: Floats) -> float:
    """Return the largest number of which all steps are multiples (Euclid's), 0 where none above the finest digit is."""
    step = float(steps.min())
    while step > 10.0**-FINEST_DECIMALS:
        multiples = steps / step
        rest = np.abs(multiples - np.round(multiples))
        if (rest <= SAME_STEP).all():
            return step
        step *= float(rest[rest > SAME_STEP].min())
    return 0.0


def noise_j(stretches: Stretches) -> float:
    """Return the half width [J] for what happened between readings, unseen (95 %).

    Successive differences carry the autocorrelation: a slow signal has small ones and is known well from few readings,
    a fast one has large ones. Student's t stands for the few differences of a short window.

    Examples
    --------
    >>> from joulebook import stretches
    >>> noise_j(stretches.between_instants(np.arange(5.0), np.full(5, 100.0), limit_s=3.0))
    0.0
    """
    total = float(stretches.variance_j2.sum())
    if total <= 0:
        return 0.0
    effective = _effective_number(stretches.variance_j2)
    # Differences that share a reading are worth two thirds of independent ones.
    return float(distributions.student_quantile(0.975, max(2.0, 2 * effective / 3))) * math.sqrt(total)


@njit(cache=True, nogil=True)
def _effective_number(weights: Floats) -> float:
    """Return how many equal weights would spread as far as some that are not all 0 (Kish 1965).

    They are taken as shares of the largest: the squares themselves can vanish below the smallest double.
    """
    total, squares, largest = 0.0, 0.0, weights.max()
    scale = 1.0 / largest
    for weight in weights:
        share = weight * scale if scale < np.inf else weight / largest
        total += share
        squares += share * share
    return float(total * total / squares)


def edges_j(*, blur_s: float, held_s: float, sd_w: float) -> float:
    """Return the half width [J] for the two ends of the window (95 %).

    Parameters
    ----------
    blur_s
        Length over which it is not known when a reading was true [s]: the period of point readings, the span that an
        edge cuts, 0 where edges fall between spans.
    held_s
        Seconds at the edges over which the outer reading was held [s].
    sd_w
        Standard deviation of the readings [W].

    Examples
    --------
    >>> round(edges_j(blur_s=1.0, held_s=0.0, sd_w=30.0), 1)
    33.9
    """
    return COVERAGE_FACTOR * sd_w * (blur_s / math.sqrt(3) + held_s)


def jumps_j(*, blur_s: float, jumps_w: float) -> float:
    """Return the half width [J] for power that jumps where the window begins and ends, as a run's does (95 %).

    A line between readings smears a jump over its blur and puts up to a half of it, a sixth on average, outside. Both
    ends err to the same side, together by less than a third each.

    Parameters
    ----------
    blur_s
        Length over which it is not known when a reading was true [s].
    jumps_w
        Jumps at both ends, added up [W].

    Examples
    --------
    >>> jumps_j(blur_s=1.0, jumps_w=600.0)
    200.0
    """
    return blur_s * jumps_w / 3.0


def resolution_j(stretches: Stretches, *, grain: float, sd_step_w: float) -> float:
    """Return the half width [J] for the rounding of the values (95 %).

    Rounding averages out where the signal moves by more than half a grain from reading to reading. Where it stands
    still, every reading is wrong by the same amount, up to half a grain.

    Parameters
    ----------
    stretches
        What was summed.
    grain
        Step of the values [W].
    sd_step_w
        Standard deviation of the signal from reading to reading [W].

    Examples
    --------
    >>> from joulebook import stretches
    >>> s = stretches.between_instants(np.arange(101.0), np.full(101, 300.0), limit_s=3.0)
    >>> resolution_j(s, grain=14.0, sd_step_w=0.0)
    700.0
    """
    worst = grain / 2 * stretches.covered_s
    if sd_step_w <= grain / 2:
        return worst
    return min(worst, COVERAGE_FACTOR * grain / math.sqrt(12) * math.sqrt(stretches.squared_s2))


def resolution_of_logs_j(stretches: Stretches, *, stamp_s: Floats, power_w: Floats, log: NDArray[np.int64]) -> float:
    """Return the half width [J] for the rounding of values that several logs tell, each with digits of its own (95 %).

    Parameters
    ----------
    stretches
        What was summed.
    stamp_s, power_w, log
        Stamp [s], power [W] and log of each reading, in order of time.

    Examples
    --------
    >>> from joulebook import stretches
    >>> stamp, power = np.arange(101.0), np.where(np.arange(101) < 50, 300.0, 300.25)
    >>> s = stretches.between_instants(stamp, power, limit_s=3.0)
    >>> resolution_of_logs_j(s, stamp_s=stamp, power_w=power, log=np.where(stamp < 50, 1, 2))
    25.25
    """
    nearest = np.clip(np.searchsorted(stamp_s, stretches.start_s, side="right") - 1, 0, None)
    total = 0.0
    for one in np.unique(log):
        own, mine = power_w[log == one], log[nearest] == one
        jumps = np.diff(own)
        sd_w = math.sqrt(float(np.mean(jumps**2)) / 2) if jumps.size else 0.0
        part = Stretches(*(getattr(stretches, f.name)[mine] for f in fields(Stretches)))
        total += resolution_j(part, grain=grain_w(own), sd_step_w=sd_w)
    return total


def digits_j(energy_j: Floats) -> float:
    """Return the half width [J] for the digits of energies that a tool gave interval by interval (95 %).

    Their powers are quotients, in which no digits can be seen any more.

    Parameters
    ----------
    energy_j
        Energies of the intervals that were summed [J].

    Examples
    --------
    >>> digits_j(np.full(100, 0.02))
    0.5
    >>> round(digits_j(np.tile([0.02, 0.05], 200)), 3)
    0.113
    """
    grain = grain_w(energy_j)
    worst = grain / 2 * energy_j.size
    jumps = np.diff(energy_j)
    if not jumps.size or math.sqrt(float(np.mean(jumps**2)) / 2) <= grain / 2:
        return worst
    return min(worst, COVERAGE_FACTOR * grain * math.sqrt(energy_j.size / 12))


def quantum_j(step_j: float, *, blocks: int) -> float:
    """Return the half width [J] for the steps of a counter, of which only the ends of each block count (95 %).

    The difference of two readings, each rounded down, has a triangular error of standard deviation step / sqrt(6).

    Examples
    --------
    >>> round(quantum_j(3600.0, blocks=1), 1)
    2880.5
    """
    return min(step_j * blocks, COVERAGE_FACTOR * step_j * math.sqrt(blocks / 6))
