"""What the chips and features of Linux hwmon are about, as lm-sensors prints them: names to device and scope.

A feature that no driver defines keeps its own device inside of the machine (scope ``part``): it is shown, never added.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from joulebook_pipelines.logs import sensors

CHIP = r"[A-Za-z][\w.]*-(?:isa|pci|i2c|spi|hid|acpi|virtual|mdio|scsi|usb)-\w[\w-]*"
"""A driver, its bus and the address on it."""

CARDS = frozenset({"amdgpu", "radeon", "nouveau", "i915", "xe"})
"""Drivers of accelerators."""

_WHOLE_CARD = re.compile(r"^(?:PPT|slowPPT|power1|energy1|card)$")
_SERVERS = frozenset({"ibmpowernv", "occ"})
_SPENT = frozenset({"power_w", "power_limit_w", "energy_counter_j"})


def device_of(chip: str, label: str, quantity: str, chips: Sequence[str]) -> tuple[str, str]:
    """Return device and scope of a feature.

    Parameters
    ----------
    chip, label
        As the tool prints them.
    quantity
        What is read.
    chips
        All chips of the log, in order: those of one driver are counted by it.

    Examples
    --------
    >>> device_of("amdgpu-pci-0300", "PPT", "power_w", ["amdgpu-pci-0300"]), device_of("power_meter-acpi-0", "power1", "power_w", [])
    (('gpu:0', 'board'), ('node', 'node'))
    """
    driver = _driver(chip)
    card = f"gpu:{_number(chip, chips, CARDS)}"
    if quantity not in _SPENT:
        return _place(driver, chip, label, card), "part"
    if driver in CARDS:
        return (card, "board") if _WHOLE_CARD.match(label) else (f"{card}/{sensors.slug(label)}", "part")
    socket = re.match(r"Esocket(\d+)$", label) if driver == "amd_energy" else None
    if socket or (driver == "fam15h_power" and label == "power1"):
        return f"cpu:{socket[1] if socket else _number(chip, chips, {driver})}", "package"
    alone = sum(_driver(c) == driver for c in chips) <= 1
    meter = driver == "power_meter" and label == "power1"
    if (meter and alone) or (driver in _SERVERS and label.lower() == "system" and not _number(chip, chips, {driver})):
        return "node", "node"
    if meter:  # of several none needs to be that of the machine
        return f"meter:{_number(chip, chips, {driver})}", ""
    return sensors.slug(f"{driver if alone else chip} {label}"), "part"


def _driver(chip: str) -> str:
    return chip.split("-", maxsplit=1)[0]


def _number(chip: str, chips: Sequence[str], drivers: Set[str]) -> int:
    """Return how many chips of these drivers stand before this one."""
    return sum(_driver(c) in drivers for c in chips[: chips.index(chip)]) if chip in chips else 0


def _place(driver: str, chip: str, label: str, card: str) -> str:
    """Return where a temperature, a fan or a voltage is."""
    if driver in CARDS:
        return f"{card}/{sensors.slug(label)}"
    package = re.match(r"Package id (\d+)$", label) if driver == "coretemp" else None
    return f"cpu:{package[1]}" if package else sensors.slug(f"{chip} {label}")
