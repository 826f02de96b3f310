"""What stands beside a power in a table: utilisation, clocks, memory, fans, where the title says it with its unit."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PERCENT = {"%": "%", "percent": "%", "pct": "%", "prozent": "%", "ratio": "ratio", "fraction": "ratio"}
_BYTES = {u: u for u in ("b", "kib", "mib", "gib", "kb", "mb", "gb", "bytes")}
_CLOCKS = {u: u for u in ("hz", "khz", "mhz", "ghz")}
_DEGREES = {"c": "C", "°c": "C", "celsius": "C", "degc": "C"}
_LOADS = {"util", "utilization", "utilisation", "auslastung", "usage", "load", "busy"}
_PLAIN_LOADS = {"util", "utilization", "utilisation", "auslastung"}
"""What says by itself that it is a load of the device; a usage or load of anything may be a share of what it can hold."""

_MEMORY = {"mem", "memory", "vram", "fb", "hbm", "speicher"}
_COMPUTE = {"sm", "graphics", "gr", "core", "gpu", "shader", "gfx"}
_CLOCK_WORDS = {"clock", "clocks", "clk", "freq", "frequency"}
_PROCESSORS = {"gpu", "cpu", "card", "device", "system"}
_OWN = {
    "temperature.gpu": ("temperature_c", "C"), "temperature.memory": ("memory_temperature_c", "C"),
    "utilization.gpu": ("utilization_ratio", "%"), "utilization.memory": ("memory_utilization_ratio", "%"),
    "memory.used": ("memory_used_bytes", "MiB"), "fan.speed": ("fan_ratio", "%"), "clocks.sm": ("sm_clock_hz", "MHz"),
    "clocks.current.sm": ("sm_clock_hz", "MHz"), "clocks.mem": ("memory_clock_hz", "MHz"),
    "clocks.current.memory": ("memory_clock_hz", "MHz"), "clocks.gr": ("", ""), "clocks.current.graphics": ("", ""),
}  # fmt: skip
"""NVIDIA's names, with the units of its manual; a memory's utilisation is traffic there, and fullness anywhere else. The clock of the
graphics units is that of the compute units."""


def find(bare: str, words: Sequence[str], unit: str) -> tuple[str, str, str] | None:
    """Return quantity, unit and place of what a title says beside a power; ``None`` where it says nothing of the kind.

    Parameters
    ----------
    bare
        The title without a unit in brackets.
    words
        Its words, in small letters.
    unit
        What stood in brackets or in a line of units, ``""`` where nothing.

    Examples
    --------
    >>> find("gpu0_util_pct", ["gpu", "0", "util", "pct"], "")
    ('utilization_ratio', '%', 'gpu 0')
    >>> find("SM Clock", ["sm", "clock"], "MHz")
    ('sm_clock_hz', 'mhz', 'gpu')
    """
    own = _OWN.get(re.sub(r"^gpu[ _]?\d+\.", "", bare.strip().casefold()))
    if own is not None:
        number = re.match(r"(?i)gpu[ _]?(\d+)\.", bare.strip())
        return (own[0], unit or own[1], f"gpu {number[1]}" if number else "") if own[0] else None
    said = unit.strip("[]() ").casefold()
    rest = list(words)
    if not said and len(rest) > 1:
        said = rest.pop()
    return _load(rest, said) or _of_card(rest, said)


def _load(words: Sequence[str], unit: str) -> tuple[str, str, str] | None:
    """Return what a title with a share says of the work of a device."""
    told = set(words)
    if unit not in _PERCENT or not told & _LOADS or told & _MEMORY:
        return None
    place = [w for w in words if w not in _LOADS | {"percent", "pct", "ratio", "rate", "avg", "average", "mean"}]
    about = {w for w in place if not w.isdigit()}
    if not about <= _PROCESSORS or not (about or told & _PLAIN_LOADS):
        return None
    return "utilization_ratio", _PERCENT[unit], _of(place)


def _of_card(words: Sequence[str], unit: str) -> tuple[str, str, str] | None:
    """Return what a title says of the clocks, the memory and the fan of a card."""
    told = {w for w in words if not w.isdigit()}
    numbers = [w for w in words if w.isdigit()]
    card, quantity = " ".join(["gpu", *numbers]), ""
    if unit in _CLOCKS and told & _CLOCK_WORDS and not told & {"max", "min", "limit", "offset"}:
        quantity = "memory_clock_hz" if told & _MEMORY else "sm_clock_hz" if told & _COMPUTE else ""
    elif unit in _BYTES and told & _MEMORY and told & {"used", "usage"} and told <= _MEMORY | {"used", "usage", "gpu"}:
        # A usage of memory is that of the machine as often as that of a card.
        quantity = "memory_used_bytes" if "used" in told or told & {"gpu", "vram", "fb", "hbm"} else ""
    elif unit in _DEGREES and told & {"temp", "temperature"} and told & _MEMORY and told & {"gpu", "hbm", "vram"}:
        quantity = "memory_temperature_c"
    elif unit == "rpm" and "fan" in told:
        quantity, card = "fan_speed_rpm", f"fan {numbers[0]}" if numbers else ""
    elif _PERCENT.get(unit) == "%" and told in ({"fan"}, {"fan", "speed"}, {"gpu", "fan", "speed"}):
        quantity, card = "fan_ratio", f"fan {numbers[0]}" if numbers else ""
    return (quantity, _DEGREES.get(unit, _PERCENT.get(unit, unit)), card) if quantity else None


def _of(words: Sequence[str]) -> str:
    """Return the place that words name; a device or a system without a number is the one that the table is about."""
    return " ".join(w for w in words if w not in {"device", "system", "card"})
