"""What the members of JSON readings are called by the tools that write them, and in which unit they count."""

from __future__ import annotations

import re
from collections.abc import Sequence

from joulebook_pipelines.logs import json_text, meter_titles
from joulebook_pipelines.logs.contract import Head, Log, LogRefusedError
from joulebook_pipelines.logs.json_records import Record, first

_UNITS = {
    # Tasmota's SENSOR message.
    "ENERGY.Power": "W", "ENERGY.Total": "kWh", "ENERGY.Voltage": "V", "ENERGY.Current": "A",
    "ENERGY.ApparentPower": "VA", "ENERGY.ReactivePower": "var", "ENERGY.Factor": "1",
    # Kasa's old emeter answer, told by its error code.
    "emeter.power": "W", "emeter.total": "kWh", "emeter.voltage": "V", "emeter.current": "A",
    # Shelly's second generation, as in its manual.
    "apower": "W", "voltage": "V", "current": "A", "aenergy.total": "Wh",
    # experiment-impact-tracker and macmon write watts.
    "nvidia_draw_absolute": "W", "rapl_power_draw_absolute": "W",
    "all_power": "W", "cpu_power": "W", "gpu_power": "W", "ane_power": "W", "sys_power": "W", "ram_power": "W", "gpu_ram_power": "W",
}  # fmt: skip

_FIRST_SHELLY = {"power": "W", "total": "Wmin", "reactive": "var", "voltage": "V"}
"""Shelly's first generation counts watt-minutes."""

_ZIGBEE = {"power": "W", "energy": "kWh", "voltage": "V", "current": "A"}
"""As zigbee2mqtt lists them for every plug."""

_MARKS = {
    "ENERGY.": ("ENERGY.Power",), "emeter.": ("err_code", "power", "voltage", "current", "total"), "shelly": ("apower", "aenergy.total"),
    "zigbee": ("linkquality", "power"),
    "shelly1": ("power", "is_valid", "total", "timestamp"), "tracker": ("nvidia_draw_absolute",), "mac": ("all_power", "ane_power"),
}  # fmt: skip
"""Members that tell whose record it is."""

_RENAMED = {
    "nvidia_draw_absolute": "gpu power", "rapl_power_draw_absolute": "cpu power", "all_power": "package power",
    "ENERGY.Factor": "power factor",
}  # fmt: skip
_RENAMED_ON_MAC = {"cpu_power": "cores power", "gpu_power": "igpu power", "sys_power": "system power"}
"""Of Apple's chips the package holds processors, graphics and neural engine."""

_IGNORED = re.compile(
    r"^(ENERGY\.(TotalStartTime|Yesterday|Today|Period)|.*\.?minute_ts|.*by_minute.*|ret_aenergy.*|.*estimated_attributable.*)$"
)
_ENTITY = re.compile(r"^[a-z_]+\.|_(?:power|energy|voltage|current|temperature|consumption)$")
"""What an entity's name says beside the thing it is about: its power and its energy are of one device."""

_STATES = re.compile(r'"state"\s*:\s*"')


def titles(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the titles of the columns that records make, ``""`` for what is not looked at, and their units."""
    known = set(names)
    tools = {t for t, marks in _MARKS.items() if set(marks) <= known}
    renamed = _RENAMED | (_RENAMED_ON_MAC if "mac" in tools else {})
    told = []
    for name in names:
        unit = ""
        if name.startswith("ENERGY.") and "ENERGY." in tools:
            unit = _UNITS.get(name, "")
        elif "emeter." in tools:
            unit = _UNITS.get(f"emeter.{name}", "")
        elif "shelly1" in tools:
            unit = _FIRST_SHELLY.get(name, "")
        elif "zigbee" in tools:
            unit = _ZIGBEE.get(name, "")
        elif tools:
            unit = _UNITS.get(name, "")
        told.append(("" if _IGNORED.match(name) else renamed.get(name, name) if unit else name, unit))
    return tuple(t for t, _ in told), tuple(u for _, u in told)


def plain(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names as titles that carry their unit, where a tool is known by its members."""
    found, units = titles(names)
    return tuple(f"{t} [{u}]" if u else t for t, u in zip(found, units, strict=True))


def is_states(head: Head) -> bool:
    """Tell whether the file is an answer of Home Assistant's history: lists of states with the time of their change."""
    text = head.text.lstrip()
    return text.startswith("[") and '"entity_id"' in text and _STATES.search(text) is not None and '"last_' in text


def states(log: Log) -> tuple[list[Record], int]:
    """Return the states of Home Assistant's history as records of time, entity, state and unit.

    Raises
    ------
    LogRefusedError
        The document is cut, or no entity says its unit.
    """
    text = log.whole_text()
    document = json_text.document(log, text)
    places = iter([1 + text.count("\n", 0, m.start()) for m in re.finditer(r'"state"\s*:', text)])
    lists = document if document and isinstance(document[0], list) else [document]
    records = []
    for states_ in lists:
        entity, unit = "", ""
        for state in states_ if isinstance(states_, list) else []:
            if not isinstance(state, dict):
                continue
            line = next(places, 1) if "state" in state else 1
            said = state.get("attributes")
            entity = str(state.get("entity_id") or entity)
            unit = str((said if isinstance(said, dict) else {}).get("unit_of_measurement") or unit)
            when = state.get("last_changed") or state.get("last_updated") or ""
            if meter_titles.quantity_of(unit):
                records.append(
                    Record(
                        line,
                        {
                            "time": str(when),
                            "device": _ENTITY.sub("", entity),
                            "value": str(state.get("state")),
                            "unit": unit,
                        },
                    )
                )
    if not records:
        raise LogRefusedError(
            f"{log.name}: no entity says a unit of power or energy (attributes.unit_of_measurement); export the history with its "
            "attributes (without minimal_response and no_attributes)"
        )
    return records, text.count("\n") + (not text.endswith("\n"))


def why_unknown(head: Head) -> str:
    """Return what a JSON file holds that might be read, and what study.toml would have to say."""
    cells = first(head, bool) or {}
    meant = [(n, meter_titles.meaning(t, u)) for n, t, u in zip(cells, *titles(list(cells)), strict=True)]
    times = [n for n, m in meant if m.role in {"time", "start", "end", "clock", "relative"}]
    powers = [n for n, m in meant if m.quantity in {"power_w", "energy_j"}]
    if not cells and not head.complete:
        return (
            "its beginning shows no whole object; if it holds a time and a power, or columns of them, say so: "
            'adapter = "meter-json" in this [[source]]'
        )
    if not cells:
        return "none of its objects could be read: it is cut, or nested too deep; export it again"
    if powers and not times:
        return (
            f"its objects hold {_some(powers)} but no time that a name tells; log a time with each object, or name it: "
            f'columns = {{ time = "…", power_w = "{powers[0]}" }}'
        )
    if times and not powers:
        numbers = [n for n, v in cells.items() if re.fullmatch(r"-?\d+(\.\d+)?", v) and n not in times]
        return (
            f"its objects hold a time ({times[0]!r}) but no name of a power or an energy"
            + (f" among {_some(numbers)}; if one is, name it: " if numbers else "; if one is there, name it: ")
            + f'columns = {{ time = "{times[0]}", power_w = "…" }} and units = {{ power_w = "W" }}, with adapter = "meter-json"'
        )
    return (
        f"its objects hold neither a time nor a power that a name tells (there are {_some(list(cells))}); if they do, name them: "
        'columns = { time = "…", power_w = "…" } and units = { power_w = "W" }, with adapter = "meter-json"'
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(repr(n) for n in names[:8]) + (" …" if len(names) > 8 else "")
