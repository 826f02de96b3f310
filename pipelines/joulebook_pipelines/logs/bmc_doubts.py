"""What is doubtful about the readings of a management controller, gathered block by block."""

from __future__ import annotations

import statistics
from collections.abc import Collection
from dataclasses import dataclass, field

import polars as pl

from joulebook import own_time
from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs.resolution import Levels

INACTIVE = "(?i)^(deactivated|not active|inactive)"
"""What a controller calls its power measurement when it is switched off."""

MOST_OF_A_ZONE_S = 14 * 3600 + 60
"""No zone lies further from UTC [s]."""

SUPPLIES_LIMIT = 1.25
"""Supplies together over the machine's total: both read the same power, each to some per cent and some seconds. Less may be a
supply that is not in the log; more cannot be."""

MOST_COMPARED = 10_000
"""As many stamps show how far two clocks lie apart."""


@dataclass
class Doubts:
    """Counts over a whole file."""

    levels: Levels = field(default_factory=Levels)
    sums_w: dict[str, tuple[float, int]] = field(default_factory=dict)
    clock_unset: int = 0
    inactive_kept: int = 0
    own_late_s: list[int] = field(default_factory=list)

    def count(self, readings: pl.DataFrame) -> None:
        """Take note of a block's readings."""
        self.levels.add(readings)
        if "power_w" not in readings.columns:
            return
        sums = (
            readings.filter(pl.col("power_w").is_not_null()).group_by("device").agg(pl.col("power_w").sum(), n=pl.len())
        )
        for device, total, n in sums.sort("device").iter_rows():
            before = self.sums_w.get(device, (0.0, 0))
            self.sums_w[device] = (before[0] + total, before[1] + n)

    def note(self, raw: pl.DataFrame, *, two_clocks: bool) -> None:
        """Take note of controllers that have no clock, call their reading inactive, or run on another time."""
        dcmi = raw.filter("is_dcmi")
        set_ = pl.col("own") >= own_time.SET_FROM.replace(tzinfo=None)
        self.clock_unset += dcmi.filter(~set_).height
        self.inactive_kept += dcmi.filter(pl.col("state").str.contains(INACTIVE) & pl.col("rule").is_null()).height
        late = dcmi.filter(set_).select(
            (pl.col("own") - pl.col("ts_utc").dt.replace_time_zone(None)).dt.total_seconds()
        )
        if two_clocks and len(self.own_late_s) < MOST_COMPARED:
            self.own_late_s += late.to_series().drop_nulls().head(MOST_COMPARED).to_list()

    def findings(self, name: str, side_unnamed: Collection[str] = ()) -> list[Finding]:
        """Return what the reader of the file should know.

        Parameters
        ----------
        name
            The file.
        side_unnamed
            Sensors of supplies whose name does not say whether they are an input or an output.
        """
        found = self.levels.findings(name)
        if self.clock_unset:
            found.append(Finding(
                "controller-clock-not-set", Severity.WARNING, name,
                f"The controller's own stamps of {self.clock_unset} readings are from before 2001: it has no clock. "
                "They are not used, and its "
                "minimum, maximum and average are no statistics.", {"readings": self.clock_unset},
            ))  # fmt: skip
        if self.inactive_kept:
            found.append(Finding(
                "controller-says-inactive", Severity.WARNING, name,
                f"{self.inactive_kept} readings were kept although the controller calls its power measurement "
                "deactivated; compare them with another "
                "instrument before you trust them.", {"readings": self.inactive_kept},
            ))  # fmt: skip
        if side_unnamed:
            found.append(Finding(
                "supply-side-unnamed", Severity.WARNING, name,
                f"The names {', '.join(sorted(side_unnamed))} do not say whether they are the input or the "
                "output of a supply; they are taken for the "
                "input. If they are outputs, the machine draws a tenth more.", {"sensors": sorted(side_unnamed)},
            ))  # fmt: skip
        return found + self._two_clocks(name) + self._twice(name, told=not side_unnamed)

    def _two_clocks(self, name: str) -> list[Finding]:
        """Say how far the controller's clock lies from the collector's, where both stamp the readings."""
        late_s = int(statistics.median(self.own_late_s)) if self.own_late_s else 0
        if late_s == 0:
            return []
        if abs(late_s) > MOST_OF_A_ZONE_S:
            return [Finding(
                "controller-clock-wrong", Severity.WARNING, name,
                f"The controller's own stamps lie {late_s:+d} s from the collector's, more than any zone explains: its clock is "
                "wrong. Times are the collector's.", {"late_s": late_s},
            )]  # fmt: skip
        return [Finding(
            "controller-clock-differs", Severity.NOTE, name,
            f"The controller's own stamps, as printed, lie {late_s:+d} s from the collector's in UTC (a zone may be "
            "part of it). Times are the collector's.",
            {"late_s": late_s},
        )]  # fmt: skip

    def _twice(self, name: str, *, told: bool) -> list[Finding]:
        """Say that a total and the supplies it is made of are both there, and how far they differ where it is told what they read."""
        supplies = {d: v for d, v in self.sums_w.items() if d.startswith("psu:") and "/" not in d}
        if supplies and "node" not in self.sums_w:
            return [Finding(
                "node-from-supplies", Severity.NOTE, name,
                "No sensor reads the whole machine; its power is the sum of the inputs of "
                f"{', '.join(sorted(supplies))}. A supply that is not in the "
                "log is missing from it.", {"supplies": sorted(supplies)},
            )]  # fmt: skip
        if not supplies or not told:
            return []
        total_w = self.sums_w["node"][0] / self.sums_w["node"][1]
        parts_w = sum(s / n for s, n in supplies.values())
        if parts_w > SUPPLIES_LIMIT * total_w:
            return [Finding(
                "total-contradicts-supplies", Severity.WARNING, name,
                f"The machine's total is {total_w:.4g} W on average, the inputs of its supplies {parts_w:.4g} W together: one of the two "
                "is no measurement of this machine (a rating, an old value, a supply that feeds others too). The total is used; compare "
                "it with a meter, or name the device to read.", {"total_w": total_w, "supplies_w": parts_w},
            )]  # fmt: skip
        return [Finding(
            "total-and-supplies", Severity.NOTE, name,
            f"The machine is read twice: its total ({total_w:.4g} W on average) and the inputs of its supplies "
            f"({parts_w:.4g} W together, "
            f"{parts_w / total_w - 1:+.1%}). The total is used; the supplies are never added to it.",
            {"total_w": total_w, "supplies_w": parts_w},
        )]  # fmt: skip
