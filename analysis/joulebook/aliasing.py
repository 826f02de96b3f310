"""Sampling against a load that repeats: what a log cannot see when its period and that of the steps run together."""

from __future__ import annotations

import math
from dataclasses import dataclass

RESOLVED = 4.5
"""With more samples in a step than this, what a step's harmonics can hide is small against other parts."""


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
