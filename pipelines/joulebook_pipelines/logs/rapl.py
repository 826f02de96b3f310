"""Domains of RAPL by the names that tools give them: which device and boundary each is, so that nested ones are never added."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Domain:
    """One RAPL domain.

    Parameters
    ----------
    device, scope
        As the tables of the store name them. Core and uncore lie inside their package (``part``); psys holds package,
        memory and more on the output side of the supply (``dc``).
    """

    device: str
    scope: str


_PATTERNS = (
    (r"^(?:psys|platform|energy[-_]psys|syswatt)$", "platform", "dc"),
    (r"^(?:package|pkg|energy[-_]pkg|processor|pkgwatt|pkg_j|socket|cpu)$", "cpu", "package"),
    (r"^(?:dram|ram|energy[-_]ram|energy[-_]dram|ramwatt|ram_j|memory)$", "dram", "dram"),
    (r"^(?:cores?|pp0|energy[-_]cores|corwatt|cor_j|ia)$", "core", "part"),
    (r"^(?:uncore|pp1|gfx|gt|energy[-_]gpu|gfxwatt|gfx_j|igpu)$", "uncore", "part"),
)
_NUMBERED = re.compile(r"^(.*?)[-_ .:]?(\d+)$")


def domain(name: str, socket: int | None = None) -> Domain | None:
    """Return the domain of a tool's name, ``None`` where the name is of none.

    Parameters
    ----------
    name
        As the tool writes it, without unit: ``package-0``, ``energy-pkg``, ``PkgWatt``, ``dram`` ….
    socket
        Number of the socket, where it stands elsewhere.

    Examples
    --------
    >>> domain("package-1"), domain("dram", 0), domain("psys")
    (Domain(device='cpu:1', scope='package'), Domain(device='dram:0', scope='dram'), Domain(device='platform', scope='dc'))
    >>> domain("core", 0)
    Domain(device='cpu:0/core', scope='part')
    """
    folded = name.strip().lower().removeprefix("power/").removesuffix("/").removeprefix("intel-rapl:")
    for text, number in _readings(folded):
        for pattern, device, scope in _PATTERNS:
            if re.match(pattern, text):
                return _named(device, scope, socket if number is None else number)
    return None


def _readings(text: str) -> tuple[tuple[str, int | None], ...]:
    """Return the name as it stands and, where it ends in a number, without it."""
    found = _NUMBERED.match(text)
    return ((text, None),) if found is None else ((text, None), (found[1], int(found[2])))


def _named(device: str, scope: str, socket: int | None) -> Domain:
    if device == "platform":
        return Domain("platform", "dc")
    if device in {"core", "uncore"}:
        return Domain(f"cpu{'' if socket is None else f':{socket}'}/{device}", "part")
    return Domain(device if socket is None else f"{device}:{socket}", scope)


def zone(path: str) -> tuple[int, int | None] | None:
    """Return socket and place of a powercap zone such as ``intel-rapl:0:1``.

    Examples
    --------
    >>> zone("intel-rapl:1"), zone("intel-rapl:0:2"), zone("package-0")
    ((1, None), (0, 2), None)
    """
    found = re.search(r"intel-rapl:(\d+)(?::(\d+))?", path)
    return (int(found[1]), int(found[2]) if found[2] else None) if found else None
