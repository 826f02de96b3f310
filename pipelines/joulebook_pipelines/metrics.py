"""What metrics of ``results`` are called, and the units in which people read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Unit:
    """A unit that people read: divide the stored number by ``size``."""

    name: str
    size: float = 1.0


NO_UNIT = Unit("")
ENERGY = (Unit("J"), Unit("Wh", 3.6e3), Unit("kWh", 3.6e6), Unit("MWh", 3.6e9))
POWER = (Unit("W"), Unit("kW", 1e3), Unit("MW", 1e6))
DURATION = (Unit("s"), Unit("min", 60.0), Unit("h", 3600.0), Unit("d", 86400.0))
PER_MILLION = (Unit("Wh", 3.6e-3), Unit("kWh", 3.6))
"""Energy per million tokens, from joules per token."""
COUNT = (NO_UNIT, Unit("million", 1e6), Unit("billion", 1e9))
_FIT = {
    "energy": (ENERGY, (0.0, 360.0, 3.6e5, 3.6e10)),
    "power": (POWER, (0.0, 1e4, 1e7)),
    "duration": (DURATION, (0.0, 300.0, 36000.0, 864000.0)),
    "per_million": (PER_MILLION, (0.0, 0.36)),
    "count": (COUNT, (0.0, 1e6, 1e9)),
}
"""Units per kind, and from which stored value on each is used."""


@dataclass(frozen=True)
class Metric:
    """Words and unit of a metric of ``results``."""

    label: str
    kind: str = ""
    unit: Unit = NO_UNIT


METRICS = {
    "energy_j": Metric("energy", "energy"),
    "marginal_energy_j": Metric("energy above idle", "energy"),
    "facility_energy_j": Metric("energy with the site's overhead", "energy"),
    "mean_power_w": Metric("mean power", "power"),
    "stable_power_w": Metric("power when steady", "power"),
    "idle_power_w": Metric("idle power", "power"),
    "peak_power_w": Metric("peak power", "power"),
    "residual_power_w": Metric("power outside the measured parts", "power"),
    "duration_s": Metric("duration", "duration"),
    "warmup_s": Metric("warm-up", "duration"),
    "cv_ratio": Metric("CV (spread / mean)"),
    "tdp_ratio": Metric("mean power / nameplate"),
    "mfu_ratio": Metric("MFU (share of peak arithmetic used)", unit=Unit("%", 0.01)),
    "hfu_ratio": Metric("HFU (the same with what is recomputed)", unit=Unit("%", 0.01)),
    "energy_per_token_j": Metric("energy per million tokens", "per_million"),
    "tokens_per_j": Metric("tokens per joule", unit=Unit("1/J")),
    "tokens_per_s": Metric("tokens per second", unit=Unit("1/s")),
    "step_time_s": Metric("step time", unit=Unit("s")),
    "tokens_to_target": Metric("tokens to the target", "count"),
    "time_per_token_s": Metric("time per million tokens", unit=Unit("s", 1e-6)),
    "time_to_target_s": Metric("time to the target", "duration"),
    "energy_to_target_j": Metric("energy to the target", "energy"),
    "carbon_kg": Metric("emissions", unit=Unit("kg CO2e")),
    "cost": Metric("cost"),
    "phase_energy_j": Metric("energy", "energy"),
    "phase_share_ratio": Metric("share", unit=Unit("%", 0.01)),
    "phase_power_w": Metric("mean power", "power"),
    "stall_energy_j": Metric("stalls", "energy"),
    "gap_idle_energy_j": Metric("idle between runs", "energy"),
    "checkpoint_energy_j": Metric("checkpoints", "energy"),
    "rework_energy_j": Metric("work that was repeated", "energy"),
}
WASTE = ("stall_energy_j", "gap_idle_energy_j", "checkpoint_energy_j", "rework_energy_j")
_SUFFIXES = (("_j", "energy"), ("_w", "power"), ("_s", "duration"))


def of(name: str) -> Metric:
    """Return words and unit of a metric; those of an unknown one are told from its name.

    Examples
    --------
    >>> of("energy_to_target_within_1.1x_time_j").label
    'energy to the target within 1.1 × the least time'
    """
    if name in METRICS:
        return METRICS[name]
    least, within, ratio = name.partition("_within_")
    if within:
        about = of(f"{least}_j")
        return replace(about, label=f"{about.label} within {ratio.removesuffix('x_time_j')} × the least time")
    kind = next((kind for end, kind in _SUFFIXES if name.endswith(end)), "")
    return Metric((name[:-2] if kind else name).replace("_", " "), kind)


def unit_for(name: str, values: Sequence[float | None], *, currency: str = "") -> Unit:
    """Return the one unit in which these values of a metric are best read.

    Examples
    --------
    >>> unit_for("energy_j", [3.4e6, None]).name
    'kWh'
    """
    about = of(name)
    if name == "cost":
        return Unit(currency)
    if not about.kind:
        return about.unit
    units, starts = _FIT[about.kind]
    largest = max((abs(v) for v in values if v is not None and math.isfinite(v)), default=0.0)
    return [u for u, start in zip(units, starts, strict=True) if largest >= start][-1]


def unit_of(name: str, rows: Sequence[dict[str, Any] | None], *, currency: str = "") -> Unit:
    """Return the one unit for rows of ``results``."""
    return unit_for(name, [row["value"] for row in rows if row is not None], currency=currency)
