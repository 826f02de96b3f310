"""Which readings of one device describe it: not a zero, not a spike, not a sensor that repeats its last value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from joulebook import ranks, spikes, stats
from joulebook.findings import Finding, Severity

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

STUCK_READINGS: Final = 10
"""Equal readings in a row from which a sensor may be stuck."""

STUCK_CHANCE: Final = 1e-4
"""Chance of such a run by accident, over the whole log, below which it is called stuck."""

COARSE_STEP_W: Final = 0.5
"""Sensor step from which equal readings at low power are normal: an idle board moves by less."""

SPIKE_SCALES: Final = 8.0
"""Distance of a spike from its surroundings [robust standard deviations]."""

SPIKE_READINGS: Final = 2
"""Longest spike upward; downward one reading, since two may be a stall."""

SPIKE_LARGEST_RATIO: Final = 0.03
"""Share of the readings above which single excursions are the ripple of the steps, not spikes."""

SPIKE_FLOOR_RATIO: Final = 0.01
"""Least noise that is assumed, as a share of the level."""


@dataclass(frozen=True)
class Trust:
    """What is wrong with the readings of one device.

    Parameters
    ----------
    stuck
        Readings that repeat the last value.
    zero
        Readings of no power or less.
    spike
        Single readings far from their surroundings.
    findings
        The same in words.
    """

    stuck: Mask
    zero: Mask
    spike: Mask
    findings: tuple[Finding, ...]

    @property
    def usable(self) -> Mask:
        """Readings that describe the device."""
        return ~(self.stuck | self.zero | self.spike)


def runs(mask: Mask) -> tuple[Indices, Indices]:
    """Return first index and end (exclusive) of every stretch of true.

    Examples
    --------
    >>> [x.tolist() for x in runs(np.array([False, True, True, False, True]))]
    [[1, 4], [3, 5]]
    """
    edges = np.diff(np.concatenate(([False], mask, [False])).astype(np.int8))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)


def _stuck(watts: Array) -> Mask:
    out = np.zeros(watts.size, np.bool_)
    first, end, tie = spikes.repeats(watts, least=STUCK_READINGS)
    if first.size == 0:
        return out
    lengths = end - first
    chance = watts.size * tie ** (lengths - 1.0)
    at_load = (watts[first] > ranks.quantile(watts, 0.98) / 2.0) | (stats.resolution(watts) < COARSE_STEP_W)
    alone = lengths[0] == watts.size
    found = (chance < STUCK_CHANCE) & (at_load | alone)
    for a, b in zip(first[found].tolist(), end[found].tolist(), strict=True):
        out[a:b] = True
    return out


def _spikes(watts: Array) -> Mask:
    away = spikes.excursions(watts, scales=SPIKE_SCALES, floor_ratio=SPIKE_FLOOR_RATIO)
    out = np.zeros(watts.size, np.bool_)
    for side, longest in ((1, SPIKE_READINGS), (-1, 1)):
        first, end = runs(away == side)
        short = end - first <= longest
        if short.sum() > SPIKE_LARGEST_RATIO * watts.size:
            continue
        for offset in range(longest):
            hit = first[short] + offset
            out[hit[hit < end[short]]] = True
    return out


def judge(power_w: npt.ArrayLike, *, subject: str) -> Trust:
    """Judge the readings of one device.

    Parameters
    ----------
    power_w
        Finite readings in time order [W].
    subject
        Device, for the findings.

    Returns
    -------
    Trust
        Masks of the length of ``power_w``.

    Examples
    --------
    >>> import numpy as np
    >>> watts = np.random.default_rng(0).normal(400.0, 3.0, 60)
    >>> found = judge(np.append(watts, [watts[-1]] * 20), subject="gpu:0")
    >>> int(found.stuck.sum()), [f.code for f in found.findings]
    (21, ['stuck-sensor'])
    """
    watts = np.asarray(power_w, dtype=np.float64)
    zero = watts <= 0.0
    powered = ~zero if zero.any() else slice(None)  # most logs have none: a view then, no copy
    stuck = np.zeros(watts.size, np.bool_)
    spike = np.zeros(watts.size, np.bool_)
    if watts[powered].size:
        stuck[powered] = _stuck(watts[powered])
        spike[powered] = _spikes(watts[powered])
    spike &= ~stuck
    findings = []
    if stuck.any():
        text = f"{int(stuck.sum())} readings repeat one value: the sensor or its export is stuck. They are in no baseline, level or "
        text += "scatter; an energy from them is only as good as that value."
        findings.append(Finding("stuck-sensor", Severity.WARNING, subject, text, {"readings": int(stuck.sum())}))
    if zero.any():
        text = f"{int(zero.sum())} readings are zero or less, which no powered device draws; they are in no baseline, level or scatter."
        findings.append(Finding("zero-power", Severity.WARNING, subject, text, {"readings": int(zero.sum())}))
    if spike.any():
        n = int(spike.sum())
        some = "1 reading stands" if n == 1 else f"{n} readings stand"
        text = f"{some} alone, far from those before and after; the search for steady stretches leaves them out."
        findings.append(Finding("spikes", Severity.NOTE, subject, text, {"readings": int(spike.sum())}))
    return Trust(stuck, zero, spike, tuple(findings))
