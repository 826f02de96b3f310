"""What ``rocm-smi`` and ``amd-smi`` call the quantities of a card, in tables and in JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl

from joulebook.findings import Finding, Severity

QUANTITIES: dict[str, tuple[str, str]] = {
    "average graphics package power (w)": ("power_w", "W"), "current socket graphics package power (w)": ("power_w", "W"),
    "socket_power": ("power_w", "W"), "current_socket_power": ("power_w", "W"), "average_socket_power": ("power_w", "W"),
    "power_usage": ("power_w", "W"),
    "max graphics package power (w)": ("power_limit_w", "W"), "power_limit": ("power_limit_w", "W"), "max_power": ("power_limit_w", "W"),
    "accumulated energy (uj)": ("energy_counter_j", "uJ"), "total_energy_consumption": ("energy_counter_j", "J"),
    "gpu use (%)": ("utilization_ratio", "%"), "gfx_activity": ("utilization_ratio", "%"), "gfx": ("utilization_ratio", "%"),
    "gfx%": ("utilization_ratio", "%"), "gfx_util": ("utilization_ratio", "%"),
    "gpu memory use (%)": ("memory_utilization_ratio", "%"), "gpu memory read/write activity (%)": ("memory_utilization_ratio", "%"),
    "umc_activity": ("memory_utilization_ratio", "%"), "mem_util": ("memory_utilization_ratio", "%"),
    "mem%": ("memory_utilization_ratio", "%"),
    "vram total used memory (b)": ("memory_used_bytes", "b"), "vram_used": ("memory_used_bytes", "MiB"),
    "used_vram": ("memory_used_bytes", "MiB"),
    "temperature (sensor edge) (c)": ("temperature_c", "C"), "temperature (sensor junction) (c)": ("temperature_c", "C"),
    "hotspot_temperature": ("temperature_c", "C"), "gpu_temp": ("temperature_c", "C"), "gpu_t": ("temperature_c", "C"),
    "hotspot": ("temperature_c", "C"),
    "temperature (sensor memory) (c)": ("memory_temperature_c", "C"), "memory_temperature": ("memory_temperature_c", "C"),
    "mem_temp": ("memory_temperature_c", "C"), "mem_t": ("memory_temperature_c", "C"),
    "sclk clock speed:": ("sm_clock_hz", "MHz"), "gfx_clock": ("sm_clock_hz", "MHz"), "gfx_clk": ("sm_clock_hz", "MHz"),
    "mclk clock speed:": ("memory_clock_hz", "MHz"), "mem_clock": ("memory_clock_hz", "MHz"), "mem_clk": ("memory_clock_hz", "MHz"),
    "fan speed (%)": ("fan_ratio", "%"), "voltage (mv)": ("voltage_v", "mV"),
}  # fmt: skip
"""Folded names; earlier ones win where a card has two of one quantity. A card's temperature is the edge's, else the hotspot's."""

POWERS = frozenset(k for k, (q, _) in QUANTITIES.items() if q in {"power_w", "energy_counter_j"})

TIMES = frozenset({"timestamp", "time", "date", "datetime"})

MODEL = ("card series", "card model", "market_name", "product_name")

IDENTITY = ("unique id", "uuid")

NAMING = frozenset({*MODEL, *IDENTITY})

SECOND_DIE = r"(?i)\(secondary die\)"
"""What the tool writes in place of a power where the first die of a module reports for both."""

_CARD = re.compile(r"^(?:card|gpu)?\s*:?\s*(\d+)$", re.IGNORECASE)


def card(text: str) -> str | None:
    """Return the device of a card's name, ``None`` where it is none.

    Examples
    --------
    >>> card("card1"), card("0"), card("system")
    ('gpu:1', 'gpu:0', None)
    """
    found = _CARD.match(text.strip())
    return f"gpu:{int(found[1])}" if found else None


def chosen(names: Iterable[str]) -> dict[str, str]:
    """Return for each quantity the name that is read, out of those that a file has: the earliest in :data:`QUANTITIES`."""
    present = set(names)
    made: dict[str, str] = {}
    for name, (quantity, _) in QUANTITIES.items():
        if name in present:
            made.setdefault(quantity, name)
    return made


def others(names: Iterable[str], read: str) -> list[str]:
    """Return the further names of a quantity that a file has, beside the one that is read, in order of preference."""
    present, quantity = set(names), QUANTITIES[read]
    return [n for n, q in QUANTITIES.items() if q == quantity and n in present and n != read]


def dies(name: str, rejects: pl.DataFrame, readings: pl.DataFrame | None) -> tuple[Finding, ...]:
    """Return the finding about dies without a sensor of their own: modules of two dies report all power at the first.

    Parameters
    ----------
    name
        The file.
    rejects, readings
        All of the file.
    """
    second = pl.col("raw").str.contains(SECOND_DIE)
    silent = set(rejects.filter((pl.col("rule") == "zero-power") | second)["device"].drop_nulls().unique())
    speaking: set[str] = set()
    if readings is not None and "power_w" in readings.columns:
        speaking = set(readings.filter(pl.col("power_w").is_not_null())["device"].unique())
    alone = sorted(silent - speaking)
    if not alone or not speaking:
        return ()
    return (Finding(
        "die-without-sensor", Severity.WARNING, name,
        f"{', '.join(alone)} always reads 0 W or nothing beside cards that do not: the second die of a module has no sensor, and the "
        "first one's reading covers both. It is neither idle nor averaged.", {"devices": alone},
    ),)  # fmt: skip
