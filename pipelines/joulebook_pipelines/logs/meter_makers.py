"""Titles that only the titles beside them explain, as one tool writes both: jtop, TP-Link's plugs, GEOPM, NVIDIA's query."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from joulebook_pipelines.logs.meter_titles import Meaning

_TAPO = frozenset({"current_power", "today_energy", "month_energy"})
_TAPO_UNITS = {"power_w": "mW", "energy_j": "Wh"}
"""What TP-Link's plugs answer, and in which units: they do not say so."""

_GEOPM = frozenset({"epoch_count", "region_hash"})
_GEOPM_UNITS = {"power_w": "W", "energy_j": "J"}
"""GEOPM's signals are in SI units; its board is the machine."""

_APPLE_TOTALS = ("package", "combined cpu gpu ane", "combined", "soc")
_NVIDIA = {"power.draw", "power.draw [w]", "power.draw.instant [w]", "power.draw.average [w]", "power.draw.instant"}
_NVIDIA_CARDS = ("index", "gpu_bus_id", "pci.bus_id", "uuid", "gpu_uuid")


def told(bare: Sequence[str], found: list[Meaning]) -> list[Meaning]:
    """Return what titles mean where their tool is known by them.

    Parameters
    ----------
    bare
        The titles in small letters.
    found
        What each says by itself.
    """
    titles = set(bare)
    if "jetson_clocks" in titles:
        # jtop counts milliwatts and does not say so; its bare GPU is a load.
        loads = [m.role == "device" or re.fullmatch(r"gpu ?\d*", t) for t, m in zip(bare, found, strict=True)]
        found = [Meaning() if load else m for load, m in zip(loads, found, strict=True)]
        found = _in_units(found, {"power_w": "mW"})
    if titles >= _TAPO:
        # The energies of the day and of the month are of the same plug: one counter is enough.
        found = [Meaning() if t == "month_energy" else m for t, m in zip(bare, found, strict=True)]
        found = [replace(m, place="") if t == "today_energy" else m for t, m in zip(bare, found, strict=True)]
        found = _in_units(found, _TAPO_UNITS)
    found = _of_apple(found)
    if titles & _GEOPM:
        found = [replace(m, place="node") if m.place == "board" else m for m in _in_units(found, _GEOPM_UNITS)]
    if _NVIDIA & titles and not any(m.role == "device" for m in found):
        # In NVIDIA's query the index is the card; anywhere else it numbers the rows.
        card = next((bare.index(t) for t in _NVIDIA_CARDS if t in titles), None)
        found = [Meaning("device", place="gpu") if i == card else m for i, m in enumerate(found)]
    return found


def _of_apple(found: list[Meaning]) -> list[Meaning]:
    """Return the meanings with a package that holds all, where a neural engine tells of a chip of Apple and a total is there."""
    places = {m.place for m in found if m.quantity in {"power_w", "energy_j"}}
    total = next((p for p in _APPLE_TOTALS if p in places), None)
    if "ane" not in places or total is None:
        return found
    told = {total: "package", "cpu": "cores", "gpu": "igpu"}
    return [replace(m, place=told.get(m.place, m.place)) for m in found]


def _in_units(found: list[Meaning], units: dict[str, str]) -> list[Meaning]:
    return [replace(m, unit=units[m.quantity]) if not m.unit and m.quantity in units else m for m in found]
