"""How finely a sensor reads: the smallest step between its values, which bounds what its scatter can tell."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import pairwise

import polars as pl

from joulebook.findings import Finding, Severity

COARSE_STEP_W = 2.0
"""From this step on [W] the scatter of a steady load is the sensor's own; finer steps drown in the load's noise."""

ENOUGH_READINGS = 8
"""Fewer readings do not show a step."""

MOST_LEVELS = 4096
"""A sensor with more levels than this is not coarse."""


@dataclass
class Levels:
    """The distinct powers of each device, gathered block by block."""

    seen: dict[str, set[float]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, readings: pl.DataFrame) -> None:
        """Take note of the powers of ``device, power_w``."""
        if "power_w" not in readings.columns:
            return
        known = readings.filter(pl.col("power_w").is_not_null())
        for device, values, count in (
            known.group_by("device").agg(pl.col("power_w").unique(), n=pl.len()).sort("device").iter_rows()
        ):
            levels = self.seen.setdefault(device, set())
            if len(levels) <= MOST_LEVELS:
                levels.update(values)
            self.counts[device] = self.counts.get(device, 0) + count

    def findings(self, name: str) -> list[Finding]:
        """Return a finding for each device that reads in coarse steps, or never changes at all."""
        return [f for d in sorted(self.seen) if (f := self._of(name, d)) is not None]

    def _of(self, name: str, device: str) -> Finding | None:
        levels, count = sorted(self.seen[device]), self.counts[device]
        if count < ENOUGH_READINGS or len(levels) > MOST_LEVELS or levels == [0.0]:
            return None
        if len(levels) == 1:
            return Finding(
                "reading-never-changes", Severity.NOTE, f"{name} {device}",
                f"All {count} powers of {device} are {levels[0]:g} W: that shows the step of the sensor, not a load "
                "without scatter.",
                {"device": device, "readings": count, "power_w": levels[0]},
            )  # fmt: skip
        step_w = min(b - a for a, b in pairwise(levels))
        if step_w < COARSE_STEP_W:
            return None
        error_w = step_w / math.sqrt(12)
        return Finding(
            "coarse-resolution", Severity.NOTE, f"{name} {device}",
            f"The powers of {device} come in steps of {step_w:g} W ({len(levels)} levels in {count} readings), so "
            f"each is known to ±{error_w:.2f} W "
            "(step / √12); scatter of that size is the sensor's, not the load's.",
            {"device": device, "step_w": step_w, "error_w": error_w, "levels": len(levels), "readings": count},
        )  # fmt: skip
