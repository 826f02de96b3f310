"""What a Redfish document says about power: resources of any vendor to device, scope, quantity and value."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from joulebook_pipelines.logs import sensors

TIME_KEYS = (
    "time",
    "timestamp",
    "ts",
    "_time",
    "@timestamp",
    "date",
    "datetime",
    "collected_at",
    "collected",
    "ReadingTime",
)
"""Names under which collectors write when they asked; ``ReadingTime`` is the sensor's own."""

Reader = Callable[[Mapping[str, Any], str], Iterator["Value"]]

_MACHINE = re.compile(r"(?i)\b(?:node|blade|sled|server)[\s_#-]*(\d+)\b")
"""A machine of an enclosure, by its number."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True)
class Value:
    """One value of a document.

    Parameters
    ----------
    device, scope, quantity, unit
        What it is about; the unit of its number.
    column
        Where it stands in the document.
    raw
        The value as it stands.
    time
        Its own time, where it has one.
    """

    device: str
    scope: str
    quantity: str
    unit: str
    column: str
    raw: object
    time: object = None


def time_of(document: Mapping[str, Any]) -> object:
    """Return the time that a collector or a sensor wrote into a document, ``None`` where there is none."""
    lower = {str(k).lower(): v for k, v in document.items()}
    return next((lower[k.lower()] for k in TIME_KEYS if isinstance(lower.get(k.lower()), (str, int, float))), None)


def values(document: object, path: str = "", time: object = None) -> Iterator[Value]:
    """Yield the values of a document and of the documents inside it.

    Parameters
    ----------
    document
        Parsed JSON: a resource, a collection, or a collector's wrapper around them.
    path
        Where the document stands.
    time
        Time of the documents around it.
    """
    if isinstance(document, list):
        for i, item in enumerate(document):
            yield from values(item, f"{path}[{i}]", time)
        return
    if not isinstance(document, Mapping):
        return
    time = time_of(document) or time
    found = False
    for key, read in _READERS.items():
        if key in document:
            found = True
            for value in read(document, f"{path}.{key}".lstrip(".")):
                yield value if value.time is not None else replace(value, time=time)
    if not found or "Members" in document:
        for key, inner in document.items():
            if isinstance(inner, (Mapping, list)) and key not in {"Oem", "Links", "Actions", "Status"}:
                yield from values(inner, f"{path}.{key}".lstrip("."), time)


def _items(document: Mapping[str, Any], key: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    inner = document.get(key)
    for i, item in enumerate(inner if isinstance(inner, list) else [inner]):
        if isinstance(item, Mapping):
            yield i, item


def _controls(document: Mapping[str, Any], path: str) -> Iterator[Value]:
    """Yield the power of the machine, and of parts that some vendors list beside it; several numbered machines each have theirs."""
    machines = {
        i: m[1] for i, item in _items(document, "PowerControl") if (m := _MACHINE.search(str(item.get("Name"))))
    }
    for i, item in _items(document, "PowerControl"):
        where = f"{path}[{i}]"
        device, scope = "node", "node"
        if len(set(machines.values())) > 1 and i in machines:
            device, scope = f"node:{machines[i]}", ""
        elif i:
            name = f"{item.get('Name') or item.get('PhysicalContext') or item.get('MemberId') or i}"
            part = sensors.classify(name if "power" in name.lower() else f"{name} Power", "Watts")
            whole = part is None or part.device == "node"
            device, scope = (
                (f"node/{sensors.slug(name)}", "part") if part is None or whole else (part.device, part.scope)
            )
        if "PowerConsumedWatts" in item:
            yield Value(device, scope, "power_w", "W", f"{where}.PowerConsumedWatts", item["PowerConsumedWatts"])
        limit = item.get("PowerLimit")
        if isinstance(limit, Mapping) and limit.get("LimitInWatts") is not None:
            yield Value(device, scope, "power_limit_w", "W", f"{where}.PowerLimit.LimitInWatts", limit["LimitInWatts"])


def _supplies(document: Mapping[str, Any], path: str) -> Iterator[Value]:
    for i, item in _items(document, "PowerSupplies"):
        device = f"psu:{_number(item, ('MemberId', 'Name')) or i + 1}"
        if str(item.get("MemberId", "")).isdigit():
            device = f"psu:{int(str(item['MemberId'])) + 1}"  # members are counted from 0, bays from 1
        where = f"{path}[{i}]"
        output = next((k for k in ("PowerOutputWatts", "LastPowerOutputWatts") if item.get(k) is not None), "")
        if "PowerInputWatts" in item:
            yield Value(device, "node", "power_w", "W", f"{where}.PowerInputWatts", item["PowerInputWatts"])
        if output:
            yield Value(f"{device}/out", "dc", "power_w", "W", f"{where}.{output}", item[output])
        if item.get("LineInputVoltage") is not None:
            yield Value(device, "node", "voltage_v", "V", f"{where}.LineInputVoltage", item["LineInputVoltage"])


def _supply_metrics(document: Mapping[str, Any], path: str) -> Iterator[Value]:
    """Yield what a PowerSupplyMetrics resource says of one supply."""
    number = re.search(r"PowerSupplies/\D*(\d+)", str(document.get("@odata.id", "")))
    device = f"psu:{number[1] if number else _number(document, ('Name', 'Id')) or 1}"
    above = path.rpartition(".")[0]
    for key, target, scope, quantity, unit in (
        ("InputPowerWatts", device, "node", "power_w", "W"),
        ("OutputPowerWatts", f"{device}/out", "dc", "power_w", "W"),
        ("InputVoltage", device, "node", "voltage_v", "V"), ("InputCurrentAmps", device, "node", "current_a", "A"),
    ):  # fmt: skip
        inner = document.get(key)
        if inner is not None:
            yield _excerpt(inner, (target, scope), quantity, unit, f"{above}.{key}".lstrip("."))


def _environment(document: Mapping[str, Any], path: str) -> Iterator[Value]:
    """Yield the power and heat of a chassis, or of the processor that the resource belongs to."""
    device, scope = _place(str(document.get("@odata.id", "")))
    above = path.rpartition(".")[0]
    if document.get("PowerWatts") is not None:
        yield _excerpt(document["PowerWatts"], (device, scope), "power_w", "W", f"{above}.PowerWatts".lstrip("."))
    if document.get("TemperatureCelsius") is not None:
        heat = ("chassis", "part") if device == "node" else (device, scope)
        yield _excerpt(document["TemperatureCelsius"], heat, "temperature_c", "C",
                       f"{above}.TemperatureCelsius".lstrip("."))  # fmt: skip
    if document.get("EnergykWh") is not None:
        # Whole kilowatt-hours on many machines: kept as a witness of its own, never in place of the power.
        yield _excerpt(document["EnergykWh"], (f"{device}/energy", "part"), "energy_counter_j", "kWh",
                       f"{above}.EnergykWh".lstrip("."))  # fmt: skip


def _place(address: str) -> tuple[str, str]:
    board = re.search(r"(?:Processors|Chassis|PCIeDevices)/[^/]*GPU\D*(\d+)?", address, re.IGNORECASE)
    if board:
        return (f"gpu:{board[1]}" if board[1] else "gpu"), "board"
    processor = re.search(r"Processors/\D*(\d+)", address)
    if processor:
        return f"cpu:{processor[1]}", "package"
    if "/Memory/" in address:
        return "dram", "part"
    return "node", "node"


def _excerpt(inner: object, place: tuple[str, str], quantity: str, unit: str, column: str) -> Value:
    device, scope = place
    if isinstance(inner, Mapping):
        return Value(device, scope, quantity, unit, f"{column}.Reading", inner.get("Reading"), inner.get("ReadingTime"))
    return Value(device, scope, quantity, unit, column, inner)


def _named(key: str, reading: str, unit: str) -> Reader:
    """Return a reader of a list of named readings (temperatures, fans)."""

    def read(document: Mapping[str, Any], path: str) -> Iterator[Value]:
        for i, item in _items(document, key):
            name = str(item.get("Name") or item.get("FanName") or item.get("MemberId") or i)
            printed = str(item.get("ReadingUnits") or unit)
            sensor = sensors.classify(name if key != "Fans" or "fan" in name.lower() else f"Fan {name}", printed)
            if sensor is not None and reading in item:
                yield Value(
                    sensor.device, sensor.scope, sensor.quantity, sensor.unit, f"{path}[{i}].{reading}", item[reading]
                )

    return read


def _sensor(document: Mapping[str, Any], path: str) -> Iterator[Value]:
    """Yield the reading of a Sensor resource."""
    sensor = sensors.classify(
        str(document.get("Name") or document.get("Id") or ""), str(document.get("ReadingUnits") or "")
    )
    if sensor is not None and "Reading" in document:
        column = f"{path.rpartition('.')[0]}.Reading".lstrip(".")
        yield Value(sensor.device, sensor.scope, sensor.quantity, sensor.unit, column, document["Reading"])


def _report(document: Mapping[str, Any], path: str) -> Iterator[Value]:
    """Yield the powers of a metric report; each value has its own time."""
    for i, item in _items(document, "MetricValues"):
        words = _CAMEL.sub(" ", str(item.get("MetricId") or item.get("MetricProperty", "").rpartition("/")[2]))
        if not re.search(r"power|watts", words, re.IGNORECASE) or re.search(
            r"\b(?:max|min|avg|average|limit|cap)", words, re.I
        ):
            continue
        sensor = sensors.classify(words, "Watts")
        if sensor is not None:
            where = f"{path}[{i}].MetricValue"
            yield Value(
                sensor.device, sensor.scope, sensor.quantity, "W", where, item.get("MetricValue"), item.get("Timestamp")
            )


def _number(item: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        found = re.findall(r"\d+", str(item.get(key, "")))
        if found:
            return str(int(found[-1]))
    return ""


_READERS: dict[str, Reader] = {
    "PowerControl": _controls,
    "PowerSupplies": _supplies,
    "InputPowerWatts": _supply_metrics,
    "PowerWatts": _environment,
    "Temperatures": _named("Temperatures", "ReadingCelsius", "C"),
    "Fans": _named("Fans", "Reading", "%"),
    "ReadingUnits": _sensor,
    "MetricValues": _report,
}
"""The key that tells what a resource is, and what reads it."""
