"""Sampling against a load that repeats: what a log cannot see when its period and that of the steps run together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from joulebook.arrays import Floats

RESOLVED = 4.5
"""With more samples in a step than this, what a step's harmonics can hide is small against other parts."""

ORDERS = (1, 2, 3, 4)
"""Harmonics of a step that so many samples may hide."""

FEWEST_STEPS = 20
"""Fewer steps, or samples within steps, say nothing of how the two meet."""

CHANCE = 3.0
"""Samples at phases of chance agree by less than this over the square root of their number, but once in ten thousand."""

LOCKED, LOCKED_ORDER = 0.5, 2
"""Agreement from which samples count as meeting always the same phases of a step; more than so many phases show the rest of it."""

SAME_STEP = 0.1
"""Share of a step by which its stamps, or its place on an even row of steps, may be off to still tell a sample's phase."""

PARTS, FEWEST_OF_PART = 8, 3
"""Parts of a step that samples are laid into to see how power goes within it, and samples that a part needs."""

LONGEST_STEPS = 1.5
"""A step of so many usual ones holds a pause, in which nothing has a phase."""


@dataclass(frozen=True)
class Met:
    """How samples meet a repeating step, as its logged ends tell.

    Parameters
    ----------
    share
        How far they agree in phase: 1 where each sample meets the same one, 0 where all are met alike or nothing is known.
    order
        At how many phases of the step they meet.
    step_s
        The usual step [s].
    spread_w
        Highest less lowest mean power of the phases that were met [W].
    """

    share: float = 0.0
    order: int = 1
    step_s: float = 0.0
    spread_w: float = 0.0

    @property
    def locked(self) -> bool:
        """Whether the samples cannot speak for the whole step."""
        return self.share >= LOCKED and self.order <= LOCKED_ORDER

    def amplitude_w(self, *, spread_w: float, window_s: float, sample_s: float) -> float:
        """Return by how much the samples' mean may be off [W], of a power with that highest less lowest value [W]."""
        return self.share * spread_w / 2 * max(0.0, 1 - window_s / sample_s) / self.order


@dataclass(frozen=True)
class Beat:
    """How samples walk over the phases of a repeating step.

    Parameters
    ----------
    beat_s
        Time in which the samples pass over every phase once [s]; infinite where they always meet the same.
    amplitude_w
        By how much the samples' mean may be off while they dwell on one phase [W].
    """

    beat_s: float
    amplitude_w: float

    def half_j(self, length_s: float) -> float:
        """Return by how much the energy of a window may be off [J]: half of a beat that was not completed."""
        return self.amplitude_w * min(self.beat_s / 2, length_s)


def beat(*, step_s: float, sample_s: float, window_s: float, spread_w: float) -> Beat:
    """Return how samples of a log beat with a repeating step.

    Parameters
    ----------
    step_s
        Duration of a step of the load [s].
    sample_s
        Period of the samples: that of the log, or of the sensor where it is longer [s].
    window_s
        Averaging window of the sensor [s]: a sensor that sees all of its period hides nothing.
    spread_w
        Highest less lowest power [W].

    Raises
    ------
    ValueError
        A period is not positive.

    References
    ----------
    Yang, Adamek, Armour 2024, arXiv:2312.02741.

    Examples
    --------
    >>> beat(step_s=0.1, sample_s=0.1, window_s=0.025, spread_w=200.0)
    Beat(beat_s=inf, amplitude_w=75.0)
    """
    if not (step_s > 0 and sample_s > 0):
        raise ValueError(f"step_s, sample_s: {step_s}, {sample_s}; both must be positive")
    ratio = step_s / sample_s
    hidden = spread_w / 2 * max(0.0, 1 - window_s / sample_s)
    if ratio > RESOLVED:
        return Beat(0.0, 0.0)
    if ratio >= 1:  # a harmonic of the step meets the samples; its amplitude falls with its order
        order = round(ratio)
        apart = abs(1 / sample_s - order / step_s)
        return Beat(_inverse(apart, sample_s), hidden / order)
    order = round(1 / ratio)
    return Beat(_inverse(abs(1 / step_s - order / sample_s), sample_s), hidden)


def _inverse(apart_hz: float, sample_s: float) -> float:
    """Return the beat's period; a difference below the double's own grain is none."""
    return math.inf if apart_hz * sample_s < 1e-9 else 1 / apart_hz


def met(stamp_s: Floats, power_w: Floats, *, end_s: Floats, number: Floats, sample_s: float) -> Met:
    """Return how the samples of a log meet the steps of a load, by where each of them falls within its own step.

    Steps that vary, or samples that do, meet at all phases: only where both keep time, and their times fit, is anything hidden.

    Parameters
    ----------
    stamp_s, power_w
        When samples were taken [s since a whole second], in order, and what they read [W].
    end_s, number
        When steps ended [s since the same] and their numbers, in order of the numbers; a log may name every tenth only.
    sample_s
        Usual period of the samples [s].

    Examples
    --------
    >>> ends, watts = np.arange(0.1, 401, 2.0), np.full(200, 300.0)
    >>> met(np.arange(0.3, 400, 2.0), watts, end_s=ends, number=np.arange(201.0), sample_s=2.0).locked
    True
    >>> met(np.arange(0.3, 380, 1.9), watts, end_s=ends, number=np.arange(201.0), sample_s=1.9).share < 0.1
    True
    """
    rising = np.ones(end_s.size, bool)
    rising[1:] = (end_s[1:] > np.maximum.accumulate(end_s)[:-1]) & (number[1:] > np.maximum.accumulate(number)[:-1])
    end_s, number = end_s[rising], number[rising]
    if end_s.size < FEWEST_STEPS or not sample_s > 0:
        return Met()
    step_s = float(np.median(np.diff(end_s) / np.diff(number)))
    inside = (stamp_s >= end_s[0]) & (stamp_s < end_s[-1])
    n = int(inside.sum())
    if step_s / sample_s > RESOLVED or n < FEWEST_STEPS:
        return Met()
    phase = _phases(_evened(stamp_s[inside], step_s), end_s, number, step_s)
    known = np.isfinite(phase)
    phase, power_w = phase[known], power_w[inside][known]
    if phase.size < FEWEST_STEPS:
        return Met()
    agree = np.array([abs(np.exp(2j * np.pi * order * phase).mean()) for order in ORDERS])
    agree[agree * np.sqrt(phase.size) < CHANCE] = 0.0
    best = int(np.argmax(agree / ORDERS))
    return Met(float(agree[best]) * phase.size / n, ORDERS[best], step_s, _folded_w(phase, power_w))


def _folded_w(phase: Floats, power_w: Floats) -> float:
    """Return the highest less the lowest mean power of the parts of a step that samples met [W]."""
    part = (phase % 1.0 * PARTS).astype(np.int64) % PARTS
    n = np.bincount(part, minlength=PARTS)
    means = np.bincount(part, power_w, minlength=PARTS)[n >= FEWEST_OF_PART] / n[n >= FEWEST_OF_PART]
    return float(np.ptp(means)) if means.size else 0.0


def _evened(stamp_s: Floats, step_s: float) -> Floats:
    """Return stamps that are coarse beside the step as an even row, where they are one; not a number where they are not."""
    grain_s = _grain_s(stamp_s)
    if grain_s <= SAME_STEP * step_s:
        return stamp_s
    row = _row(np.arange(float(stamp_s.size)), stamp_s)
    return row if np.max(np.abs(row - stamp_s)) <= grain_s else np.full(stamp_s.size, np.nan)


def _phases(stamp_s: Floats, end_s: Floats, number: Floats, step_s: float) -> Floats:
    """Return where within its step each sample falls, in steps; not a number where that is not known."""
    even, grain_s = _row(number, end_s), _grain_s(end_s)
    if np.max(np.abs(even - end_s)) <= max(grain_s, SAME_STEP * step_s):
        slope = (even[-1] - even[0]) / (number[-1] - number[0])
        return (stamp_s - even[0]) / slope
    if grain_s > SAME_STEP * step_s:
        return np.full(stamp_s.size, np.nan)
    last = np.clip(np.searchsorted(end_s, stamp_s, side="right") - 1, 0, end_s.size - 2)
    long_s, steps = np.diff(end_s)[last], np.diff(number)[last]
    phase = (stamp_s - end_s[last]) / long_s * steps
    return np.where(long_s <= LONGEST_STEPS * steps * step_s, phase, np.nan)


def _row(number: Floats, at_s: Floats) -> Floats:
    """Return the even row that lies nearest to times."""
    slope, offset = np.polyfit(number, at_s, 1)
    return slope * number + offset


def _grain_s(at_s: Floats) -> float:
    """Return the unit that all of some times are whole numbers of [s]: a second, or a thousandth."""
    return 1.0 if np.all(np.abs(at_s - np.round(at_s)) < 1e-4) else 1e-3
