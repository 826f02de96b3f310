"""Doubts about a meter log that only show over many lines: a turned sign, a counter that contradicts the power."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook.wording import counted
from joulebook_pipelines.logs.contract import Part
from joulebook_pipelines.logs.electrical import Electrical
from joulebook_pipelines.logs.meter_columns import Layout
from joulebook_pipelines.logs.resolution import Levels

CONTRADICTION = 1.5
"""Counter and integral of one meter differ by a few per cent; beyond half as much again, one of the two is wrong."""

LONGEST_STEP_S = 1_800.0
"""Across a longer step the power between two readings is not known, so it is left out on both sides."""

LEAST_COUNTS = 4
"""Steps of the counter that must lie in the log before the two are compared."""

SIGN_TOLERANCE = 0.005
"""Phases and total are rounded each by itself: this share of the sum is no mismatch."""


@dataclass
class Balance:
    """Energy of one device by its power and by its counter, over the same stretches of time."""

    last_us: int | None = None
    last_w: float = 0.0
    last_j: float = 0.0
    power_j: float = 0.0
    counter_j: float = 0.0
    counts: int = 0
    readings: int = 0
    negative: int = 0
    zeros: int = 0
    drops: int = 0

    def add(self, readings: pl.DataFrame) -> None:
        """Take in readings of the device, in order of lines."""
        if "power_w" not in readings.columns:
            return
        power = readings["power_w"].drop_nulls()
        self.readings += len(power)
        self.negative += int((power < 0).sum())
        if "energy_counter_j" not in readings.columns:
            return
        rows = readings.select(us=pl.col("ts_utc").dt.timestamp("us"), w="power_w", j="energy_counter_j").drop_nulls()
        if rows.is_empty():
            return
        if self.last_us is not None:
            before = pl.DataFrame({"us": [self.last_us], "w": [self.last_w], "j": [self.last_j]}, schema=rows.schema)
            rows = pl.concat([before, rows])
        steps = rows.select(
            s=pl.col("us").diff() / 1e6,
            w=(pl.col("w") + pl.col("w").shift(1)) / 2,
            j=pl.col("j").diff(),
            off=(pl.col("w") == 0) & (pl.col("w").shift(1) == 0),
        ).filter(pl.col("s") >= 0)
        self.drops += int((steps["j"] < 0).sum())
        steps = steps.filter((pl.col("s") <= LONGEST_STEP_S) & (pl.col("j") >= 0))
        self.zeros += int((steps["off"] & (steps["j"] > 0)).sum())
        self.power_j += float((steps["s"] * steps["w"]).sum())
        self.counter_j += float(steps["j"].sum())
        self.counts += int((steps["j"] > 0).sum())
        self.last_us, self.last_w, self.last_j = (rows[c][-1] for c in ("us", "w", "j"))


@dataclass
class Phases:
    """Whether the parts beside a total add up to it."""

    total: str
    parts: tuple[str, ...]
    rows: int = 0
    off: int = 0
    turned: dict[str, int] = field(default_factory=dict)

    def add(self, readings: pl.DataFrame) -> None:
        """Take in readings of all devices of some lines."""
        mine = readings.filter(pl.col("device").is_in([self.total, *self.parts]) & pl.col("power_w").is_not_null())
        wide = mine.pivot("device", index="line", values="power_w", aggregate_function="first")
        if not {self.total, *self.parts} <= set(wide.columns):
            return
        wide = wide.drop_nulls()
        total, summed = pl.col(self.total), pl.sum_horizontal(*self.parts)
        slack = SIGN_TOLERANCE * pl.sum_horizontal(pl.col(p).abs() for p in self.parts) + len(self.parts)
        off = wide.filter((summed - total).abs() > slack)
        self.rows += wide.height
        self.off += off.height
        for part in self.parts:
            hit = off.filter((summed - total - 2 * pl.col(part)).abs() <= slack)
            self.turned[part] = self.turned.get(part, 0) + hit.height


@dataclass
class Checks:
    """All checks of one file."""

    name: str
    sign: int = 1
    balances: dict[str, Balance] = field(default_factory=dict)
    electrical: dict[str, Electrical] = field(default_factory=dict)
    levels: Levels = field(default_factory=Levels)
    phases: Phases | None = None
    powers: int = 0
    beyond: int = 0
    read: bool = False

    def see(self, part: Part) -> Part:
        """Take in what a part of the file says, and return it."""
        readings = part.readings
        if readings is not None and readings.height:
            self.read = True
            self.add(readings)
            if "power_w" in readings.columns:
                self.powers += readings.height - readings["power_w"].null_count()
        if part.rejects is not None:
            self.beyond += int((part.rejects["rule"] == "beyond-physical").sum())
        return part

    def add(self, readings: pl.DataFrame) -> None:
        """Take in the readings of a block."""
        if "power_w" not in readings.columns:
            return
        self.levels.add(readings)
        for (device,), mine in readings.group_by("device", maintain_order=True):  # one turn a device, not a row
            self.balances.setdefault(str(device), Balance()).add(mine)
            self.electrical.setdefault(str(device), Electrical()).add(mine)
        if self.phases is not None:
            self.phases.add(readings)

    def findings(self) -> tuple[Finding, ...]:
        """Return what is doubtful."""
        found = [f for device, b in sorted(self.balances.items()) for f in self._of_device(device, b)]
        found += [f for device, e in sorted(self.electrical.items()) for f in e.findings(self.name, device)]
        found += self.levels.findings(self.name)
        return (*found, *self._of_phases(), *self._of_unit(), *self._of_nothing())

    def _of_unit(self) -> list[Finding]:
        if self.beyond <= self.powers:
            return []
        return [Finding(
            "unit-doubtful", Severity.WARNING, self.name,
            f"{self.beyond} of {self.beyond + self.powers} powers are more than such a device can "
            "draw: the unit in the title may be wrong. If they are milliwatts, say so: "
            'columns = { time = "…", power_w = "…" } and units = { power_w = "mW" }.',
            {"beyond": self.beyond, "kept": self.powers},
        )]  # fmt: skip

    def _of_nothing(self) -> list[Finding]:
        if self.read:
            return []
        told = "Not one cell of this table could be read; see its rejects."
        return [Finding("no-readings", Severity.ERROR, self.name, told, {})]

    def _of_device(self, device: str, balance: Balance) -> list[Finding]:
        found = []
        if balance.readings >= 3 and balance.negative == balance.readings:
            found.append(Finding(
                "sign-reversed", Severity.WARNING, f"{self.name}: {device}",
                f"All {balance.readings} powers of {device} are negative: the current clamp sits the wrong way "
                f"round, or power is fed "
                "in. They are kept as read; if it only consumes, add sign = -1 to this "
                "[[source]].", {"readings": balance.readings},
            ))  # fmt: skip
        if balance.drops:
            found.append(Finding(
                "counter-fell", Severity.NOTE, f"{self.name}: {device}",
                f"Counter of {device} falls {counted(balance.drops, 'time')}: it was reset, or went back to what was saved last when the "
                "meter lost power. The energy is made from the power; the counter alone would lack what it lost.",
                {"falls": balance.drops},
            ))  # fmt: skip
        if balance.zeros:
            found.append(Finding(
                "zero-power-counter-runs", Severity.WARNING, f"{self.name}: {device}",
                f"In {balance.zeros} steps {device} shows 0 W while its counter goes on: the power was not read there, and its energy is "
                "too low. Take the counter: name only it, columns = { time = …, energy_counter_j = … }.", {"steps": balance.zeros},
            ))  # fmt: skip
        if balance.counts >= LEAST_COUNTS and balance.power_j > 0 and balance.counter_j > 0:
            ratio = balance.power_j / balance.counter_j
            if not 1 / CONTRADICTION <= ratio <= CONTRADICTION:
                found.append(Finding(
                    "counter-contradicts-power", Severity.WARNING, f"{self.name}: {device}",
                    f"The power of {device} adds up to {balance.power_j / 3.6e6:.4g} kWh, its counter to "
                    f"{balance.counter_j / 3.6e6:.4g} "
                    f"kWh, a ratio of {ratio:.4g}: one of the two has a wrong scale. Say which to read with columns "
                    f"= {{ … }}.",
                    {"ratio": round(ratio, 6), "power_j": balance.power_j, "counter_j": balance.counter_j},
                ))  # fmt: skip
        return found

    def _of_phases(self) -> list[Finding]:
        phases = self.phases
        if phases is None or phases.rows == 0 or 2 * phases.off <= phases.rows:
            return []
        turned = [p for p, n in phases.turned.items() if n == phases.off]
        if turned:
            return [Finding(
                "phase-sign-lost", Severity.WARNING, self.name,
                f"The parts exceed the total by exactly twice {turned[0]} in {phases.off} of {phases.rows} lines: "
                f"{turned[0]} lost its "
                "sign. The total is used; the parts are doubtful.", {"part": turned[0], "lines": phases.off},
            )]  # fmt: skip
        return [Finding(
            "parts-off-total", Severity.WARNING, self.name,
            f"The parts do not add up to the total in {phases.off} of {phases.rows} lines. The total is "
            f"used.", {"lines": phases.off},
        )]  # fmt: skip


def of(name: str, layout: Layout) -> Checks:
    """Return the checks of a file; parts against a total only where the table has both."""
    groups = [g for g in layout.groups if any(f.quantity == "power_w" for f in g.fields)]
    parts = tuple(g.device for g in groups if g.scope == "part")
    total = next((g.device for g in groups if g.total), None)
    return Checks(name, phases=Phases(total, parts) if total and len(parts) > 1 else None)
