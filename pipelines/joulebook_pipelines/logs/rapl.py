"""Domains of RAPL by the names that tools give them: which device and boundary each is, so that nested ones are never added."""

from __future__ import annotations

import re
from collections.abc import Sequence
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


TIMES = frozenset({
    "time", "times", "time_s", "timestamp", "timestamp_s", "ts", "datetime", "date", "epoch", "epoch_s", "unix", "unix_time", "elapsed",
    "elapsed_s", "seconds", "sec", "t", "t_s", "time_ns", "timestamp_ns", "time_ms", "timestamp_ms", "time_us", "timestamp_us",
})  # fmt: skip
"""Titles of the time in polls of counters."""

_ENERGY = re.compile(r"^(.*?)[\s_./:-]*(?:energy)?[\s_(\[./-]*(uj|µj|mj|j|joules?)[)\]]?$", re.IGNORECASE)
_RANGE = re.compile(r"^(.*?)[\s_./:-]*(?:max[_ ]?energy[_ ]?)?range[\s_(\[]*(uj|µj|mj|j)[)\]]?$", re.IGNORECASE)


def energy_column(title: str) -> tuple[Domain, str, bool] | None:
    """Return the domain of a column of energies, its unit, and whether it holds the counter's range; else ``None``.

    Examples
    --------
    >>> energy_column("package-0_uj")
    (Domain(device='cpu:0', scope='package'), 'uj', False)
    >>> energy_column("Runtime (s)") is None
    True
    """
    for pattern, ranges in ((_RANGE, True), (_ENERGY, False)):
        found = pattern.match(title.strip())
        known = of_path(found[1]) if found else None
        if found and known is not None:
            return known, found[2].lower(), ranges
    return None


def of_path(text: str) -> Domain | None:
    """Return the domain of a name or of a path; a zone that only has a number is a package where it is the first."""
    known = domain(text.strip(" _./:-").rsplit("/", 1)[-1])
    place = zone(text)
    if known is not None or place is None:
        return known
    socket, sub = place
    if sub is not None:
        return Domain(f"cpu:{socket}/zone{sub}", "part")
    return Domain("cpu:0", "package") if socket == 0 else Domain(f"zone:{socket}", "")


def is_poll(titles: Sequence[str]) -> bool:
    """Tell whether a header is of a poll of counters: a time, then nothing but energies of domains.

    Examples
    --------
    >>> is_poll(["time_s", "package-0_uj", "dram_uj"]), is_poll(["run", "package-0_uj"])
    (True, False)
    """
    if len(titles) < 2 or titles[0].strip().lower() not in TIMES:
        return False
    return all(energy_column(t) is not None for t in titles[1:])
