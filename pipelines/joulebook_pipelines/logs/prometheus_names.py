"""What the metrics of exporters are about: DCGM, nvidia_gpu_exporter, ipmi_exporter, Node Exporter, Kepler, Scaphandre.

A metric is known by its name and labels together: they say device, boundary, quantity and unit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from joulebook_pipelines.logs import rapl, sensors

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Meaning:
    """What a series says.

    Parameters
    ----------
    device, scope
        Within its host, as in the store; a card is ``gpu:`` followed by what :func:`card_key` tells.
    quantity, unit
        Column of ``readings`` and unit of the numbers.
    rank
        Of two series of one device and quantity the lower rank is the main one.
    name
        What tells it from another one of the same device and quantity.
    field
        For cards: the query field that the power is, which decides the averaging window.
    """

    device: str
    scope: str
    quantity: str
    unit: str
    rank: int
    name: str
    field: str = ""


_CARDS: dict[str, tuple[str, str, str]] = {
    "DCGM_FI_DEV_POWER_USAGE": ("power_w", "W", "power.draw"),
    "DCGM_FI_DEV_POWER_USAGE_INSTANT": ("power_w", "W", "power.draw.instant"),
    "dcgm_power_usage": ("power_w", "W", "power.draw"),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("energy_counter_j", "mJ", ""),
    "dcgm_total_energy_consumption": ("energy_counter_j", "mJ", ""),
    "DCGM_FI_DEV_GPU_UTIL": ("utilization_ratio", "%", ""), "dcgm_gpu_utilization": ("utilization_ratio", "%", ""),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": ("utilization_ratio", "ratio", ""),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("memory_utilization_ratio", "%", ""),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("memory_utilization_ratio", "ratio", ""),
    "DCGM_FI_DEV_FB_USED": ("memory_used_bytes", "MiB", ""),
    "DCGM_FI_DEV_GPU_TEMP": ("temperature_c", "C", ""), "dcgm_gpu_temp": ("temperature_c", "C", ""),
    "DCGM_FI_DEV_MEMORY_TEMP": ("memory_temperature_c", "C", ""),
    "DCGM_FI_DEV_SM_CLOCK": ("sm_clock_hz", "MHz", ""), "DCGM_FI_DEV_MEM_CLOCK": ("memory_clock_hz", "MHz", ""),
    "DCGM_FI_DEV_ENFORCED_POWER_LIMIT": ("power_limit_w", "W", ""), "DCGM_FI_DEV_POWER_MGMT_LIMIT": ("power_limit_w", "W", ""),
    "DCGM_FI_DEV_FAN_SPEED": ("fan_ratio", "%", ""),
    "nvidia_smi_power_draw_watts": ("power_w", "W", "power.draw"),
    "nvidia_smi_power_draw_average_watts": ("power_w", "W", "power.draw.average"),
    "nvidia_smi_power_draw_instant_watts": ("power_w", "W", "power.draw.instant"),
    "nvidia_smi_utilization_gpu_ratio": ("utilization_ratio", "ratio", ""),
    "nvidia_smi_utilization_memory_ratio": ("memory_utilization_ratio", "ratio", ""),
    "nvidia_smi_memory_used_bytes": ("memory_used_bytes", "bytes", ""),
    "nvidia_smi_temperature_gpu": ("temperature_c", "C", ""), "nvidia_smi_temperature_memory": ("memory_temperature_c", "C", ""),
    "nvidia_smi_clocks_current_sm_clock_hz": ("sm_clock_hz", "Hz", ""),
    "nvidia_smi_clocks_current_memory_clock_hz": ("memory_clock_hz", "Hz", ""),
    "nvidia_smi_enforced_power_limit_watts": ("power_limit_w", "W", ""), "nvidia_smi_fan_speed_ratio": ("fan_ratio", "ratio", ""),
    "nvidia_gpu_power_usage_milliwatts": ("power_w", "mW", "power.draw"),
    "nvidia_gpu_duty_cycle": ("utilization_ratio", "%", ""), "nvidia_gpu_memory_used_bytes": ("memory_used_bytes", "bytes", ""),
    "nvidia_gpu_temperature_celsius": ("temperature_c", "C", ""),
    "gpu_package_power": ("power_w", "W", ""), "gpu_average_package_power": ("power_w", "W", ""),
}  # fmt: skip
"""Metrics of a card: quantity, unit, query field. Earlier ones win where two are of one quantity."""

_RANKS = {name: i for i, name in enumerate(_CARDS)}

_IPMI = {
    "ipmi_power_watts": "Watts", "ipmi_temperature_celsius": "degrees C", "ipmi_fan_speed_rpm": "RPM",
    "ipmi_voltage_volts": "Volts", "ipmi_current_amperes": "Amps",
}  # fmt: skip
_HWMON = frozenset({"node_hwmon_power_average_watt", "node_hwmon_power_input_watt"})
_ACPI_METER = "acpi000d"
"""The chip by which Linux reads the power meter of a server's firmware; other chips are of cards and boards."""

_RAPL = re.compile(r"^node_rapl_(package|dram|core|uncore|psys)_joules_total$")
_KEPLER = re.compile(r"^kepler_node_(package|dram|core|uncore|platform|gpu|other|other_host_components)_joules_total$")
_KEPLER_ZONE = re.compile(
    r"^kepler_node_cpu_(joules_total|watts|active_watts|idle_watts|active_joules_total|idle_joules_total)$"
)
_FIRST_KEPLER = "node_package_energy_millijoule"
_SCAPHANDRE = {
    "scaph_host_power_microwatts": "host",
    "scaph_socket_power_microwatts": "socket",
    "scaph_domain_power_microwatts": "domain",
}

_PROCESSES = re.compile(r"(_|^)(pod|container|process|vm|libvirt)_")
_ENERGY = re.compile(r"power|watt|joule|energy", re.IGNORECASE)

_PREFIXES = (
    "DCGM_FI_",
    "dcgm_",
    "nvidia_smi_",
    "nvidia_gpu_",
    "ipmi_",
    "node_rapl_",
    "node_hwmon_power_",
    "kepler_",
    "scaph_",
    _FIRST_KEPLER,
)


def looks_known(name: str) -> bool:
    """Tell whether a metric is of an exporter that is known here."""
    return name.startswith(_PREFIXES) or name in _CARDS


def about_processes(name: str) -> bool:
    """Tell whether a metric splits the node's energy by pod or process: it lies inside the node's."""
    return bool(_PROCESSES.search(name))


def says_energy(name: str) -> bool:
    """Tell whether the name of a metric speaks of power or energy."""
    return bool(_ENERGY.search(name)) and not name.endswith(("_limit_watts", "_supported", "_info"))


def card_key(labels: Labels) -> tuple[str, str]:
    """Return the identifier and the number of the card that a series is about, ``""`` where it has none."""
    uuid = next((labels[k] for k in ("UUID", "uuid", "gpu_uuid") if labels.get(k)), "")
    number = next(
        (labels[k] for k in ("gpu", "index", "gpu_index", "gpu_id", "minor_number") if labels.get(k, "").isdigit()), ""
    )
    if not number:
        found = re.fullmatch(r"nvidia(\d+)|card(\d+)", labels.get("device", ""))
        number = (found[1] or found[2]) if found else ""
    return uuid.removeprefix("GPU-").lower(), number


def classify(name: str, labels: Labels) -> tuple[Meaning, ...]:  # noqa: PLR0911 (one line an exporter)
    """Return what a series says; nothing where its metric is not known.

    Examples
    --------
    >>> classify("node_rapl_package_joules_total", {"index": "1"})[0].device
    'cpu:1'
    >>> classify("http_requests_total", {})
    ()
    """
    if name in _CARDS:
        quantity, unit, field_ = _CARDS[name]
        return (Meaning("gpu:", "board", quantity, unit, _RANKS[name], field_ or name, field_),)
    if name == "ipmi_dcmi_power_consumption_watts":
        return (Meaning("node", "node", "power_w", "W", 0, "dcmi"),)
    if name in _IPMI:
        return _sensor(labels.get("name") or labels.get("sensor") or "", _IPMI[name])
    if name in _HWMON and _ACPI_METER in labels.get("chip", "").lower():
        return (Meaning("node", "node", "power_w", "W", 2, "acpi"),)
    if found := _RAPL.match(name):
        return _domain(found[1], labels, "energy_counter_j", "J")
    if found := _KEPLER.match(name):
        return _kepler(found[1], labels)
    if found := _KEPLER_ZONE.match(name):
        return _kepler_zone(found[1], labels)
    if name in {"kepler_platform_watts", "kepler_node_platform_watts"}:
        return (Meaning("node", "node", "power_w", "W", 1, labels.get("source", "platform")),)
    if name == _FIRST_KEPLER:
        return _domain("package", {"index": labels.get("pkg_id", "")}, "energy_counter_j", "mJ")
    return _scaphandre(name, labels)


def in_labels(name: str, labels: Labels) -> tuple[tuple[str, Meaning], ...]:
    """Return label and meaning of numbers that a series carries in its labels: the first Kepler wrote DRAM there."""
    if name != _FIRST_KEPLER:
        return ()
    index = {"index": labels.get("pkg_id", "")}
    told = [
        (k, _domain(k, index, "energy_counter_j", "mJ"))
        for k in ("dram", "core", "uncore")
        if labels.get(k, "0") not in {"0", ""}
    ]
    return tuple((k, m[0]) for k, m in told if m)


def _sensor(name: str, unit: str) -> tuple[Meaning, ...]:
    if not name:
        quantity, canonical = sensors.QUANTITY_OF_UNIT[unit.lower()]
        # Without a sensor's name a controller's power is that of its machine; other unnamed quantities say nothing.
        return (Meaning("node", "node", quantity, canonical, 2, "ipmi"),) if quantity == "power_w" else ()
    found = sensors.classify(name, unit)
    return (
        ()
        if found is None
        else (Meaning(found.device, found.scope, found.quantity, found.unit, 1, sensors.slug(name)),)
    )


def _domain(zone: str, labels: Labels, quantity: str, unit: str) -> tuple[Meaning, ...]:
    path = labels.get("path", "")
    index = labels.get("index") or (str(place[0]) if (place := rapl.zone(path)) else "")
    found = rapl.domain(zone, int(index) if index.isdigit() else None)
    if found is None:
        return ()
    if "mmio" in path:  # the same counter, reached through memory-mapped registers
        return (Meaning(f"{found.device}/mmio", "part", quantity, unit, 0, "mmio"),)
    return (Meaning(found.device, found.scope, quantity, unit, 0, "rapl"),)


def _kepler(what: str, labels: Labels) -> tuple[Meaning, ...]:
    """Return what Kepler's counters cover; ``dynamic`` and ``idle`` are two parts that add up."""
    mode = labels.get("mode", "")
    tail = f"/{mode}" if mode else ""
    if what == "platform":
        return (Meaning(f"node{tail}", "node", "energy_counter_j", "J", 0, labels.get("source", "kepler")),)
    if what == "gpu":
        return (Meaning(f"gpu:{tail}", "board", "energy_counter_j", "J", 100, "kepler"),)
    if what.startswith("other"):
        return (Meaning(f"other{tail}", "part", "energy_counter_j", "J", 0, "kepler"),)
    socket = re.search(r"(\d+)$", labels.get("package", labels.get("core", "")))
    found = rapl.domain(what, int(socket[1]) if socket else None)
    return (
        () if found is None else (Meaning(f"{found.device}{tail}", found.scope, "energy_counter_j", "J", 0, "kepler"),)
    )


def _kepler_zone(what: str, labels: Labels) -> tuple[Meaning, ...]:
    quantity, unit = ("energy_counter_j", "J") if what.endswith("joules_total") else ("power_w", "W")
    told = _domain(
        re.sub(r"-\d+$", "", labels.get("zone", "")), {**labels, "index": labels.get("index", "")}, quantity, unit
    )
    mode = re.match(r"active|idle", what)
    if told and mode:  # shares of the zone's whole, which is there as well
        return (Meaning(f"{told[0].device}/{mode[0]}", "part", quantity, unit, 0, "kepler"),)
    return told


def _scaphandre(name: str, labels: Labels) -> tuple[Meaning, ...]:
    kind = _SCAPHANDRE.get(name)
    if kind == "host":
        return (Meaning("components", "components", "power_w", "uW", 0, "scaphandre"),)
    if kind == "socket":
        return _domain("package", {"index": labels.get("socket_id", "")}, "power_w", "uW")
    if kind == "domain":
        return _domain(labels.get("domain_name", ""), {"index": labels.get("socket_id", "")}, "power_w", "uW")
    return ()
