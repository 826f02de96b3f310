"""Shape of a run's power: one level, a step, a slow approach, or no steady state; on plain arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from joulebook import changepoints, rolling, serial, stats

Array = npt.NDArray[np.float64]

TOLERANCE_RATIO: Final = 0.01
"""Levels that differ by less are one level; leakage drift of a warming board is 1 to 4 %."""

BINS: Final = 200
"""Bins that a run is seen in: fine enough for a start within 1 % of the run, coarse enough to average step ripple."""

SMOOTHING_READINGS: Final = 21
"""Window of the rolling median against which spikes and short stalls are judged [readings]."""

OUTLIER_MADS: Final = 4.0
"""Distance from the rolling median beyond which a reading does not count [robust standard deviations]."""

PENALTY_FACTOR: Final = 4.0
"""Price of a change among the bins, in units of log(bins) times the noise variance."""

SCALE_READINGS: Final = 1_000_000
"""Readings that the scale of the residuals is read from; it is known to a tenth of a percent then."""

SCALE_BLOCKS: Final = 20
"""Blocks, all over a longer log, that these are taken from."""

BRIEF_RATIO: Final = 0.03
"""Excursions shorter than this share of the run, back to the same level, do not end steady state."""

DRIFT_F: Final = 8.0
"""F value from which an exponential approach is believed."""

LATEST_START_RATIO: Final = 0.5
"""Steady state that begins later than this share of the run is a late change, not a warm-up."""

TIME_CONSTANTS: Final = 14
"""Time constants tried, evenly in their logarithm."""

TAIL_TIME_CONSTANTS: Final = 3.0
"""Time constants of the approach that steady state must outlast."""


class Kind(StrEnum):
    """What the run does before steady state; the last three have none."""

    STEADY = "steady"
    STEP = "step"
    THERMAL = "thermal"
    DRIFT = "drift"
    LATE_CHANGE = "late change"
    NONE = "none"


ANSWERED: Final = (Kind.STEADY, Kind.STEP, Kind.THERMAL)
"""Kinds with a steady state."""


@dataclass(frozen=True)
class Verdict:
    """What the run does, the first steady bin, and why."""

    kind: Kind
    first_bin: int
    reason: str


def robust(watts: Array) -> Array:
    """Replace readings far from the rolling median by it: short stalls and spikes say nothing about the level."""
    if watts.size <= SCALE_READINGS:
        center = rolling.median(watts, SMOOTHING_READINGS)
        away = watts - center
        scale = stats.mad(away)
        return watts if scale == 0.0 else np.where(np.abs(away) > OUTLIER_MADS * scale, center, watts)
    scale = _usual_distance(watts)
    if scale == 0.0:
        return watts
    out = watts.copy()
    near = rolling.far_from_median(watts, SMOOTHING_READINGS, distance=OUTLIER_MADS * scale)
    center = rolling.median_at(watts, near, SMOOTHING_READINGS)
    far = np.abs(watts[near] - center) > OUTLIER_MADS * scale
    out[near[far]] = center[far]
    return out


def _usual_distance(watts: Array) -> float:
    """Return the scale of the distances from the rolling median, from blocks all over a long log."""
    size = SCALE_READINGS // SCALE_BLOCKS
    blocks = [watts[a : a + size] for a in np.linspace(0, watts.size - size, SCALE_BLOCKS).astype(np.int64)]
    return stats.mad(np.concatenate([block - rolling.median(block, SMOOTHING_READINGS) for block in blocks]))


def binned(values: Array, bins: int) -> Array:
    """Return the means of ``bins`` stretches of nearly equal length."""
    edges = np.linspace(0, values.size, bins + 1).astype(np.int64)
    return np.asarray(np.add.reduceat(values, edges[:-1]) / np.diff(edges))


def _walk_back(starts: npt.NDArray[np.int64], means: Array, bins: int) -> int:
    """Return the segment from which on all levels agree with the last one, brief excursions left out."""
    lengths = np.diff(np.append(starts, bins))
    brief = max(1, round(BRIEF_RATIO * bins))
    # A run that ends in the middle of an excursion (a last checkpoint, the shutdown) is judged by what came before.
    last = means.size - 1
    while last > 0 and lengths[last] <= brief:
        last -= 1
    weight, total = float(lengths[last]), float(means[last] * lengths[last])
    first, i = last, last - 1
    while i >= 0:
        level = total / weight
        if abs(means[i] - level) <= TOLERANCE_RATIO * abs(level):
            weight, total, first = weight + lengths[i], total + means[i] * lengths[i], i
        elif lengths[i] > brief or i == 0:
            break
        i -= 1
    return int(first)


def _approach(values: Array) -> tuple[float, float, float]:
    """Fit a + b exp(-t/T); return the F value against a constant, b (0 where nothing is gained) and T [bins]."""
    k = values.size
    if k < 8:
        return 0.0, 0.0, 1.0
    time = np.arange(k, dtype=np.float64)
    centered = values - values.mean()
    flat = float(centered @ centered)
    constants = np.geomspace(2.0, 2.0 * k, TIME_CONSTANTS)
    shapes = np.exp(-time / constants[:, None])
    shapes -= shapes.mean(axis=1, keepdims=True)
    slopes = (shapes * centered).sum(axis=1) / (shapes * shapes).sum(axis=1)
    left = flat - slopes * (shapes * centered).sum(axis=1)
    least = int(np.argmin(left))
    best, amplitude, constant = flat, 0.0, 1.0
    if left[least] < flat:
        best, amplitude, constant = float(left[least]), float(slopes[least]), float(constants[least])
    # Neighbouring bins are alike, so a gain counts for less than among independent ones.
    alike = min(max(serial.lag1(np.diff(values)) + 0.5, 0.0), 0.45)
    deflation = (1.0 - alike) / (1.0 + alike)
    return (flat - best) / 2.0 / max(best / (k - 3), 1e-300) * deflation, amplitude, constant


def _sooner(values: Array, first: int, limit: float) -> int:
    """Return where the approach of the whole run ends, if nothing else lies between there and the first steady bin.

    Change points cut an approach into stairs, and the end of its last stair may lie long after the approach.
    """
    f_value, amplitude, constant = _approach(values)
    if f_value <= DRIFT_F or abs(amplitude) <= limit:
        return first
    start = math.ceil(constant * math.log(abs(amplitude) / limit))
    if start >= first:
        return first
    approach = values[first:].mean() + amplitude * np.exp(-np.arange(start, first) / constant)
    also_level = abs(float((values[start:first] - approach).mean())) <= limit
    return start if also_level and _drift(values[start:], limit) == 0.0 else first


def _drift(values: Array, limit: float) -> float:
    """Return the change along a trend that is sure and beyond the tolerance, 0 where there is none."""
    rise, error = slope(values)
    change = rise * values.size
    return change if abs(rise) > 3.0 * error and abs(change) > limit else 0.0


def slope(values: Array) -> tuple[float, float]:
    """Return slope and its standard error per bin, with the noise's long-run variance."""
    k = values.size
    time = np.arange(k, dtype=np.float64) - (k - 1) / 2.0
    spread = float(time @ time)
    slope = float(time @ values) / spread
    residual = values - values.mean() - slope * time
    return slope, math.sqrt(max(serial.long_run_variance(residual), float(np.var(residual))) / spread)


def judge(values: Array) -> Verdict:  # noqa: PLR0911
    """Return kind, first steady bin and reason for the binned power of one run."""
    bins = values.size
    if np.ptp(values) == 0.0:
        return Verdict(Kind.NONE, 0, "all readings are equal: the sensor may be stuck")
    starts, _, means, *_ = changepoints.levels(values, penalty_factor=PENALTY_FACTOR)
    segment = _walk_back(starts, means, bins)
    first = int(starts[segment])
    latest = LATEST_START_RATIO * bins
    level = float(values[first:].mean())
    limit = TOLERANCE_RATIO * abs(level)
    staircase = segment >= 2 and bool(np.all(np.diff(means[: segment + 1]) * (means[segment] - means[0]) > 0.0))
    if first > latest:
        kind = Kind.DRIFT if staircase else Kind.LATE_CHANGE
        return Verdict(kind, first, f"the level still changes after {first / bins:.0%} of the run")
    thermal = staircase
    f_value, amplitude, constant = _approach(values[first:])
    if f_value > DRIFT_F:
        end = amplitude * math.exp(-(bins - first) / constant)
        if abs(amplitude - end) > limit:
            thermal = True
            first += math.ceil(constant * math.log(abs(amplitude) / (limit + abs(end))))
            if first > latest:
                return Verdict(Kind.DRIFT, first, "power is still approaching its final level at the end of the run")
            if bins - first < TAIL_TIME_CONSTANTS * constant and abs(end) > limit / 2.0:
                return Verdict(Kind.DRIFT, first, "the run ends within three time constants of its warm-up")
    first = _sooner(values, first, limit)
    change = _drift(values[first:], limit)
    if change:
        return Verdict(Kind.DRIFT, first, f"power drifts by {change / level:+.1%} to the end of the run")
    if first == 0:
        return Verdict(Kind.STEADY, 0, "level from the first reading on")
    kind = Kind.THERMAL if thermal else Kind.STEP
    cause = "slow approach" if thermal else "change of level"
    return Verdict(kind, first, f"{cause} ends after {first / bins:.1%} of the run")
