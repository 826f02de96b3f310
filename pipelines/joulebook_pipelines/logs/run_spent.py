"""Which columns of a run table hold its energy or its mean power: in which unit, of which device."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_NOT_SPENT = frozenset({
    "per", "saving", "savings", "saved", "pct", "percent", "percentage", "norm", "normalized", "edp", "idle", "static", "std", "stddev",
    "min", "max", "peak", "co2", "cost", "price", "carbon", "emissions", "emission", "ratio", "rate", "efficiency", "error",
    "baseline", "target", "limit", "cap", "level", "reactive", "apparent", "available", "factor", "state", "mode", "weighted",
})  # fmt: skip
"""Words that make a title something other than the energy or mean power of the run."""

ENERGY_UNITS = frozenset({"j", "kj", "mj", "uj", "µj", "wh", "kwh", "mwh", "joule", "joules", "ws"})
POWER_UNITS = frozenset({"w", "kw", "mw", "watt", "watts"})
TIME_UNITS = frozenset({"s", "sec", "seconds", "ms", "us", "µs", "ns", "min", "h"})
_SPELLED = {"secs": "s", "second": "s", "minutes": "min", "hours": "h", "hour": "h", "kwth": "kWh"}
"""Units in other spellings; eco2AI wrote ``kWTh`` for a while."""

_FOR_EACH = re.compile(
    r"(?i)[\[(][^\])]*(?:/|\bper\b)[^\])]*[\])]|/\s*(?:\d*k?_?)?(?:tok|token|prompt|sample|image|img|frame|request|req|query|question|answer|"
    r"response|step|epoch|iter|iteration|inference|infer|inf|item|batch|example|record|row|word|char|flops?|op|bit|byte|param|parameter|user|call|"
    r"task|instance|transaction|s|sec|second|h|hour|day)(?:s|es)?(?![A-Za-z])"
)
"""An energy for each of something: ``energy/token``, ``Energy (J/token)``."""

_PARTS = frozenset({"cores", "core", "pp0", "pp1", "uncore"})
_NODE = frozenset({"meter", "wall", "plug", "node", "system", "server", "mains", "machine"})


@dataclass(frozen=True)
class Spent:
    """A column with the energy or the mean power of each run.

    Parameters
    ----------
    quantity
        ``energy_j`` or ``power_w``.
    unit
        As the title gives it, ``""`` where it does not.
    device, scope
        What it is about; scope ``""`` where the title does not say.
    """

    at: int
    title: str
    quantity: str
    unit: str
    device: str
    scope: str


def plain(title: str) -> str:
    """Return a title in small letters, its words joined by ``_``."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", title.strip())
    leading = "__" if text.startswith("__") else ""
    return leading + re.sub(r"[^0-9a-zµ°%]+", "_", text.lower()).strip("_")


def unit_apart(title: str, units: frozenset[str]) -> tuple[str, str]:
    """Take a unit in brackets, or the last word that is one, off a title."""
    if match := re.match(r"^(.*?)\s*[\[(]\s*([^\])]*?)\s*[\])]\s*$", title.strip()):
        unit = _SPELLED.get(match[2].lower(), match[2])
        return (match[1], unit) if unit.lower() in units else (title, "")
    words = re.split(r"(?<=[^\W_])[\s_.-]+(?=[^\W_])", title.strip())
    for at in (len(words) - 1, len(words) - 2):
        unit = _SPELLED.get(words[at].lower(), words[at]) if at > 0 else ""
        tail = {w.lower() for w in words[at + 1 :]}
        if unit.lower() in units and tail <= {"mean", "avg", "average", "total"}:
            return "_".join(words[:at] + words[at + 1 :]), unit
    return title, ""


def of_title(at: int, title: str, *, monitor: bool) -> Spent | None:
    """Return what a column says of energy or power, ``None`` where it is something else."""
    bare, unit = unit_apart(title, ENERGY_UNITS)
    quantity = "energy_j" if unit else ""
    if not unit:
        bare, unit = unit_apart(title, POWER_UNITS)
        quantity = "power_w" if unit else ""
    words = [w for w in plain(bare).split("_") if w]
    said = set(words)
    if said & _NOT_SPENT or not title.strip() or _FOR_EACH.search(title):
        return None
    if quantity == "" or (quantity == "power_w" and unit.lower() in {"mw"} and "energy" in said):
        quantity = "energy_j" if said & {"energy"} else "power_w" if said & {"power"} else ""
    consumed = "consumption" in said and unit.lower() in {"kwh", "wh"}
    if not quantity or (quantity == "energy_j" and "power" in said and "energy" not in said and not consumed):
        return None
    device, scope = device_of(words)
    unit = unit or ("kWh" if "codecarbon" in said and quantity == "energy_j" else "")  # its table has no other unit
    return Spent(at, title, quantity, "J" if monitor and not unit else unit, device, scope)


def is_for_each(title: str) -> bool:
    """Tell whether a title gives an energy for each of something, which is no run's.

    Examples
    --------
    >>> [is_for_each(t) for t in ("energy/token", "Energy (J/image)", "energy_per_step_j", "energy/gpu", "energy_j")]
    [True, True, True, False, False]
    """
    words = set(plain(title).split("_"))
    spoken = words & {"energy", *ENERGY_UNITS} or re.search(r"(?i)energy", title)
    return bool(spoken and ("per" in words or _FOR_EACH.search(title)))


def device_of(words: Sequence[str]) -> tuple[str, str]:
    """Return device and scope that the words of a title name; ``""`` where they name none."""
    text = " ".join(words)
    if match := re.search(r"\bgpu ?(\d+)?\b", text):
        return (f"gpu:{match[1]}" if match[1] else "gpu"), "board"
    if set(words) & _PARTS:
        return f"cpu/{next(w for w in words if w in _PARTS)}", "part"
    if match := re.search(r"\b(?:package|pkg|socket|cpu) ?(?:package |pkg )?(\d+)?\b", text):
        return (f"cpu:{match[1]}" if match[1] else "cpu"), "package"
    if set(words) & {"dram", "ram"}:
        return "dram", "dram"
    return ("node", "node") if set(words) & _NODE else ("", "")
