"""What the sensors of a management controller are about: vendor names to device, scope and quantity.

A name that says nothing keeps its own device inside the node (scope ``part``): it is shown, never added.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

QUANTITY_OF_UNIT = {
    "watts": ("power_w", "W"), "watt": ("power_w", "W"), "w": ("power_w", "W"),
    "degrees c": ("temperature_c", "C"), "c": ("temperature_c", "C"), "celsius": ("temperature_c", "C"),
    "rpm": ("fan_speed_rpm", "RPM"),
    "volts": ("voltage_v", "V"), "v": ("voltage_v", "V"),
    "amps": ("current_a", "A"), "a": ("current_a", "A"),
}  # fmt: skip
"""Units that the tools print, in lower case, with the quantity and its unit; feet, percent and states are not read."""

FAN_PERCENT = ("percent", "%")
"""Units in which a fan's speed is a share of its maximum."""


@dataclass(frozen=True)
class Sensor:
    """What a sensor reads.

    Parameters
    ----------
    device, scope
        As in the store; ``part`` lies inside another reading.
    quantity, unit
        Column of ``readings`` and unit of the numbers; ``""`` where the tool printed none.
    side_unnamed
        A supply's power of which the name does not say whether it is input or output.
    """

    device: str
    scope: str
    quantity: str
    unit: str
    side_unnamed: bool = False


_N = r"[\s_\-#]*(\d+)"
_SUPPLY = re.compile(rf"\b(?:PSU?|PWS|Power[\s_]?Supply|Pwr[\s_]?Supply|Supply)(?:{_N})?(?=\D|$)", re.IGNORECASE)
_OUTPUT = re.compile(r"(?<![a-z])(out(put)?|p[_ ]?out)(?![a-z])", re.IGNORECASE)
_INPUT = re.compile(r"(?<![a-z])(in(put)?|p[_ ]?in|ac)(?![a-z])", re.IGNORECASE)
_LIMIT = re.compile(r"\b(cap(ping)?|limit|budget)\b", re.IGNORECASE)
_EXTREME = re.compile(r"\b(max|peak|min|threshold|capacity)", re.IGNORECASE)
_PROCESSOR = re.compile(rf"\b(?:CPUs?|Proc(?:essor)?)(?:{_N})?(?=\D|$)", re.IGNORECASE)
_MEMORY = re.compile(r"\b(?:DIMMs?|DRAM|Mem(?:ory)?)", re.IGNORECASE)
_BOARD = re.compile(
    rf"\b(?:GPU|Accelerator|OAM)s?(?:[\s_-]*(?:SXM|OAM|PCIe|Slot|Module|Board))?(?:{_N})?(?=\D|$)", re.IGNORECASE
)
_TOGETHER = re.compile(r"(?i)\b(?:total|all|sum)\b")
_FAN = re.compile(
    r"\b(?:Sys(?:tem)?[\s_]?)?Fan(?:[\s_]?(?:Tray|Module|Tach|Speed))?[\s_\-#]*([0-9]+[A-Z]?\b)?", re.IGNORECASE
)
_INLET = re.compile(r"\b(?:inlet|intake|ambient|front[\s_]?panel)|\bair[\s_]?in\b", re.IGNORECASE)
_OUTLET = re.compile(rf"\b(?:outlet|exhaust|air[\s_]?out)\b(?:{_N})?", re.IGNORECASE)
_WHOLE = re.compile(
    r"(?:\b|_)(?:pwr|power)[\s_]?(?:consumption|usage|meter|reading|draw)\b"
    r"|\b(?:sys(?:tem)?|total|chassis|node|server|avg|average|input|hsc[\s_]?input|ac|module)[\s_]?(?:input[\s_]?)?(?:pwr|power)"
    r"|\bsystem[\s_](?:board[\s_])?(?:pwr|power)|\b(?:pwr|power)[\s_](?:total|sys(?:tem)?|node)\b|^(?:pwr|power|watts)$|\bPSU?[\s_]?total"
    r"|\bsystem[\s_]level$|\bconsumed[\s_]?(?:pwr|power)|current power|instantaneous power",
    re.IGNORECASE,
)


def says_power(name: str) -> bool:
    """Tell whether a name surely is a power sensor's, even where no unit stands beside it."""
    plain = _plain(name)
    supply = _SUPPLY.search(plain)
    if supply:
        return bool(
            re.search(r"power|pwr|watt|p[_ ]?in|p[_ ]?out", plain[: supply.start()] + plain[supply.end() :], re.I)
        )
    return _WHOLE.search(plain) is not None and not _LIMIT.search(plain) and not _EXTREME.search(plain)


def classify(name: str, unit: str, entity: str = "") -> Sensor | None:
    """Return what a sensor reads; ``None`` where its unit is of no quantity that is kept.

    Parameters
    ----------
    name
        As the tool prints it.
    unit
        As the tool prints it, any case.
    entity
        IPMI entity (``3.1`` is the first processor, ``10.2`` the second supply), where the tool prints it.

    Examples
    --------
    >>> sensor = classify("PS1 Input Power", "Watts")
    >>> sensor.device, sensor.scope
    ('psu:1', 'node')
    >>> classify("PS1 Output Power", "Watts").scope, classify("Total_Power", "Watts").device
    ('dc', 'node')
    >>> classify("Altitude", "feet") is None
    True
    """
    plain, unit = _plain(name), unit.strip().lower()
    if unit in FAN_PERCENT:
        fan = _FAN.search(plain)
        return Sensor(_numbered("fan", fan[1] or ""), "part", "fan_ratio", "percent") if fan else None
    if unit not in QUANTITY_OF_UNIT:
        return None
    quantity, canonical = QUANTITY_OF_UNIT[unit]
    if quantity == "power_w":
        return _power(name, plain, canonical)
    if quantity == "fan_speed_rpm":
        fan = _FAN.search(plain)
        device = _numbered("fan", fan[1]) if fan and fan[1] else slug(name)
        return Sensor(device, "part", quantity, canonical)
    return Sensor(_place(name, plain, quantity, entity), "part", quantity, canonical)


def _power(name: str, plain: str, unit: str) -> Sensor:
    """Return the device whose power it is, from supplies inwards."""
    supply, processor = _SUPPLY.search(plain), _PROCESSOR.search(plain)
    if supply and not re.search(r"\btotal|\bsum", plain, re.IGNORECASE):
        device = _numbered("psu", supply[1])
        if _OUTPUT.search(plain):
            return Sensor(f"{device}/out", "dc", "power_w", unit)
        return Sensor(device, "node", "power_w", unit, side_unnamed=not _INPUT.search(plain))
    if _LIMIT.search(plain) and not processor:
        return Sensor("node", "node", "power_limit_w", unit)
    return _inner_power(name, plain, unit)


def _inner_power(name: str, plain: str, unit: str) -> Sensor:
    """Return the device whose power it is, behind the supplies."""
    processor, board = _PROCESSOR.search(plain), _BOARD.search(plain)
    if board and not _TOGETHER.search(plain):
        number = board[1] or next(iter(re.findall(r"\d+$", plain)), "")
        return Sensor(_numbered("gpu", number), "board", "power_w", unit)
    if _MEMORY.search(plain):
        return Sensor("dram" if not processor else _numbered("dram", processor[1]), "dram", "power_w", unit)
    if processor and re.search(r"\bVR|VCCIN|rail", plain, re.IGNORECASE) is None:
        return Sensor(_numbered("cpu", processor[1]), "package", "power_w", unit)
    if not processor and not _FAN.search(plain) and not _EXTREME.search(plain) and _WHOLE.search(plain):
        return Sensor("node", "node", "power_w", unit)
    return Sensor(slug(name), "part", "power_w", unit)


def _place(name: str, plain: str, quantity: str, entity: str) -> str:
    """Return where a temperature, voltage or current is taken."""
    kind, _, number = entity.partition(".")
    supply = _SUPPLY.search(plain)
    if supply or kind == "10":
        return _numbered("psu", supply[1] if supply and supply[1] else number)
    place = _heat(plain, number if kind == "3" else "") if quantity == "temperature_c" else ""
    return place or slug(name)


def _heat(plain: str, processor_number: str) -> str:
    """Return what a temperature is taken of, ``""`` where only the name can tell."""
    if _INLET.search(plain):
        return "inlet"
    outlet, board, processor = _OUTLET.search(plain), _BOARD.search(plain), _PROCESSOR.search(plain)
    if outlet:
        return _numbered("outlet", outlet[1])
    if board:
        return _numbered("gpu", board[1]) + "/temperature"
    if processor and re.search(r"\bVR|DIMM|MEM", plain, re.IGNORECASE):
        return ""
    number = (processor[1] if processor else "") or processor_number
    return _numbered("cpu", number) if processor or number else ""


def _plain(name: str) -> str:
    """Return a name with its words apart: ``PSU1_PIN`` and ``CPU1Temp`` as ``PSU1 PIN`` and ``CPU1 Temp``."""
    return re.sub(r"(?<=\d)(?=[A-Z][a-z])", " ", name.replace("_", " ")).strip()


def _numbered(kind: str, number: str | None) -> str:
    return f"{kind}:{number.lower()}" if number else kind


def slug(name: str) -> str:
    """Return a device name for a sensor that only its own name tells."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "sensor"
