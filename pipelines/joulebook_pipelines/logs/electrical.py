"""What volts, amperes and signs beside a power say against it: more watts than volt-amperes, a direction that flips."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from joulebook.findings import Finding, Severity

SLACK = 1.05
"""Volts, amperes and watts are rounded and sampled each by itself: that much more than their product is no contradiction."""

LEAST_W = 5.0
"""Below, the last digits of volts and amperes decide; nothing is said there [W]."""

CONTRADICTION = 1.5
"""Power and the product of volts, amperes and power factor differ by a few per cent; by half as much again one is wrong."""

LEAST_ROWS = 3

FLIP_SHARES = (0.02, 0.98)
"""A meter whose sign flips has readings of both signs; fewer on one side are single oddities."""

ALIKE = 1.5
"""Powers of both signs whose usual sizes lie within this factor are one load read in two directions."""


@dataclass
class Electrical:
    """Counts of one device over a whole file."""

    rows: int = 0
    above: int = 0
    with_factor: int = 0
    off_factor: int = 0
    ratio_sum: float = 0.0
    positive: int = 0
    negative: int = 0
    positive_w: float = 0.0
    negative_w: float = 0.0

    def add(self, readings: pl.DataFrame) -> None:
        """Take in readings of the device."""
        if "power_w" not in readings.columns:
            return
        power = pl.col("power_w")
        up, down = power > LEAST_W, power < -LEAST_W
        n = readings.select(
            up=up.sum(), down=down.sum(), up_w=power.filter(up).sum(), down_w=power.filter(down).sum()
        ).row(0)
        self.positive, self.negative = self.positive + int(n[0] or 0), self.negative + int(n[1] or 0)
        self.positive_w, self.negative_w = self.positive_w + float(n[2] or 0), self.negative_w + float(n[3] or 0)
        self._product(readings)

    def _product(self, readings: pl.DataFrame) -> None:
        apparent = _apparent(readings)
        if apparent is None:
            return
        factor = pl.col("power_factor_ratio") if "power_factor_ratio" in readings.columns else pl.lit(None, pl.Float64)
        rows = readings.select(w=pl.col("power_w").abs(), va=apparent.abs(), pf=factor.abs()).drop_nulls(["w", "va"])
        rows = rows.filter((pl.max_horizontal("w", "va") > LEAST_W) & (pl.col("va") > 0) & (pl.col("w") > 0))
        above = rows.filter(pl.col("w") > SLACK * pl.col("va") + 0.5)
        self.rows, self.above = self.rows + rows.height, self.above + above.height
        self.ratio_sum += float(above.select((pl.col("w") / pl.col("va")).sum()).item())
        told = rows.filter(pl.col("pf").is_between(0.0, 1.0, closed="right"))
        ratio = pl.col("w") / (pl.col("va") * pl.col("pf"))
        self.with_factor += told.height
        self.off_factor += told.filter(~ratio.is_between(1 / CONTRADICTION, CONTRADICTION)).height

    def findings(self, name: str, device: str) -> list[Finding]:
        """Return what is doubtful about the device's power."""
        return [*self._above(name, device), *self._flips(name, device)]

    def _above(self, name: str, device: str) -> list[Finding]:
        if self.above >= LEAST_ROWS and 2 * self.above > self.rows:
            ratio = self.ratio_sum / self.above
            return [Finding(
                "power-above-apparent", Severity.WARNING, f"{name}: {device}",
                f"In {self.above} of {self.rows} lines the power of {device} is more than volts times amperes ({ratio:.3g} times as much): "
                "no power factor is above 1. Volts or amperes are of one phase of three, or one of the three columns has a wrong scale; "
                "check the power with another meter.", {"lines": self.above, "ratio": round(ratio, 4)},
            )]  # fmt: skip
        if self.off_factor >= LEAST_ROWS and 2 * self.off_factor > self.with_factor:
            return [Finding(
                "power-contradicts-volts-amperes", Severity.WARNING, f"{name}: {device}",
                f"In {self.off_factor} of {self.with_factor} lines the power of {device} is not even nearly volts times amperes times "
                "power factor: one of them has a wrong scale, or they are of different phases. Check the power with another meter.",
                {"lines": self.off_factor},
            )]  # fmt: skip
        return []

    def _flips(self, name: str, device: str) -> list[Finding]:
        both = self.positive + self.negative
        if min(self.positive, self.negative) < 1 or both < 2 * LEAST_ROWS:
            return []
        share = self.negative / both
        sizes = (self.positive_w / self.positive, -self.negative_w / self.negative)
        if not FLIP_SHARES[0] <= share <= FLIP_SHARES[1] or max(sizes) > ALIKE * min(sizes):
            return []
        return [Finding(
            "sign-flips", Severity.WARNING, f"{name}: {device}",
            f"{self.negative} of {both} powers of {device} are negative and of the size of the others "
            f"({sizes[1]:.4g} W against {sizes[0]:.4g} W): either power is fed in by turns, or the meter loses the direction of the "
            "current. They are kept as read, so they lower the energy; if the machine only consumes, "
            "this energy is wrong: turn the clamp, or take the log out.",
            {"negative": self.negative, "positive": self.positive},
        )]  # fmt: skip


def _apparent(readings: pl.DataFrame) -> pl.Expr | None:
    """Return the apparent power that the readings tell [VA]: told as such, else volts times amperes."""
    if "apparent_power_va" in readings.columns:
        return pl.col("apparent_power_va")
    if {"voltage_v", "current_a"} <= set(readings.columns):
        return pl.col("voltage_v") * pl.col("current_a")
    return None
