"""How finely a sensor reads: the smallest step between its values, which bounds what its scatter can tell."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import polars as pl

from joulebook.findings import Finding, Severity

COARSE_STEP_W = 2.0
"""From this step on [W] the scatter of a steady load is the sensor's own; finer steps drown in the load's noise."""

LARGEST_STEP_SHARE = 0.25
"""A load that is switched between two powers shows two levels; no sensor is so coarse that its step is that much of them."""

ENOUGH_READINGS = 8
"""Fewer readings do not show a step."""

MOST_LEVELS = 4096
"""A sensor with more levels than this is not coarse."""


ALL_BITS_W = (65.535, 655.35)
"""65535 milliwatts and centiwatts; single ones may be real, a log of nothing else is not."""

LAST_COUNT = 255
"""Management controllers keep a sensor in 8 bits."""

LEAST_AT_END = 3
"""So many readings at the end of the scale are no chance."""


def _step_w(levels: list[float]) -> float:
    """Return the largest step [W] of which all distances between levels are multiples.

    Examples
    --------
    >>> _step_w([98.0, 112.0, 140.0]), _step_w([100.1, 107.3, 121.9])
    (14.0, 0.2)
    """
    return math.gcd(*(round(1e3 * (b - a)) for a, b in pairwise(levels))) / 1e3


@dataclass
class Levels:
    """The distinct powers of each device, gathered block by block."""

    seen: dict[str, set[float]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    tops: dict[str, tuple[float, int]] = field(default_factory=dict)

    def add(self, readings: pl.DataFrame) -> None:
        """Take note of the powers of ``device, power_w``."""
        if "power_w" not in readings.columns:
            return
        if self.seen and all(len(levels) > MOST_LEVELS for levels in self.seen.values()):
            return
        power = pl.col("power_w")
        known = readings.filter(power.is_not_null())
        found = known.group_by("device").agg(
            power.unique().head(MOST_LEVELS + 1), n=pl.len(), top=power.max(), at_top=(power == power.max()).sum()
        )
        for device, values, count, top_w, at_top in found.sort("device").iter_rows():
            levels = self.seen.setdefault(device, set())
            if len(levels) <= MOST_LEVELS:
                levels.update(values)
            self.counts[device] = self.counts.get(device, 0) + count
            before = self.tops.get(device, (-math.inf, 0))
            self.tops[device] = max(before, (top_w, at_top)) if before[0] != top_w else (top_w, before[1] + at_top)

    def findings(self, name: str) -> list[Finding]:
        """Return a finding for each device that reads in coarse steps, never changes at all, or reads the end of its scale."""
        made = [self._at_end(name, d) for d in sorted(self.seen)] + [self._of(name, d) for d in sorted(self.seen)]
        return [f for f in made if f is not None]

    def _at_end(self, name: str, device: str) -> Finding | None:
        levels, (top_w, at_top) = sorted(self.seen[device]), self.tops[device]
        if at_top < LEAST_AT_END or not 2 <= len(levels) <= MOST_LEVELS or len(levels) > LAST_COUNT + 1:
            return None
        step_w = _step_w(levels)
        if step_w < 1.0 or not math.isclose(top_w, LAST_COUNT * step_w):
            return None
        return Finding(
            "sensor-at-its-end", Severity.WARNING, f"{name} {device}",
            f"{at_top} of {self.counts[device]} powers of {device} are {top_w:g} W, which is {LAST_COUNT} steps of {step_w:g} W: the "
            "highest number that a sensor of 8 bits can say. The machine may have drawn more; energy and peak are lower bounds there.",
            {"device": device, "power_w": top_w, "step_w": step_w, "readings": at_top},
        )  # fmt: skip

    def _of(self, name: str, device: str) -> Finding | None:
        levels, count = sorted(self.seen[device]), self.counts[device]
        if count < ENOUGH_READINGS or len(levels) > MOST_LEVELS or levels == [0.0]:
            return None
        if len(levels) == 1 and levels[0] in ALL_BITS_W:
            return Finding(
                "error-code-only", Severity.WARNING, f"{name} {device}",
                f"All {count} powers of {device} are {levels[0]:g} W, which is 16 bits set: the driver says that it cannot read this, not "
                "a power. The energy of it means nothing; read another field.", {"device": device, "readings": count},
            )  # fmt: skip
        if len(levels) == 1:
            return Finding(
                "reading-never-changes", Severity.NOTE, f"{name} {device}",
                f"All {count} powers of {device} are {levels[0]:g} W: that shows the step of the sensor, not a load "
                "without scatter.",
                {"device": device, "readings": count, "power_w": levels[0]},
            )  # fmt: skip
        step_w = _step_w(levels)
        if step_w < COARSE_STEP_W or step_w > LARGEST_STEP_SHARE * levels[-1]:
            return None
        error_w = step_w / math.sqrt(12)
        return Finding(
            "coarse-resolution", Severity.NOTE, f"{name} {device}",
            f"The powers of {device} come in steps of {step_w:g} W ({len(levels)} levels in {count} readings), so "
            f"each is known to ±{error_w:.2f} W "
            "(step / √12); scatter of that size is the sensor's, not the load's.",
            {"device": device, "step_w": step_w, "error_w": error_w, "levels": len(levels), "readings": count},
        )  # fmt: skip
