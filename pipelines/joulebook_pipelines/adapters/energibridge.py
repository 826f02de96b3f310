"""EnergiBridge CSV: RAPL counters in J, cards and whole machines, on stamps of the wall clock in milliseconds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from joulebook_pipelines.logs import absent, local_time, rapl, rows, stamps, wide
from joulebook_pipelines.logs.contract import Adapter, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_ENERGY = re.compile(r"^(PACKAGE|PP0|PP1|DRAM|CPU|CORE\d+)_ENERGY \(J\)$")
_GPU = re.compile(r"^GPU(\d+)_(?:ENERGY \((mJ|J)\)|POWER \((mWatts|Watts)\))$")
_SYSTEM = re.compile(r"^SYSTEM_POWER \((mWatts|Watts)\)$")
_FORM = stamps.StampForm("epoch", aware=True, unit_us=1e3)
_UNITS = {"mJ": "mJ", "J": "J", "mWatts": "mW", "Watts": "W"}


def _header(head: Head) -> list[str]:
    return head.lines[0].strip().split(",")


def _sniff(head: Head) -> bool:
    names = _header(head)
    return names[:2] == ["Delta", "Time"] and any(n.startswith("CPU_USAGE") or _ENERGY.match(n) for n in names)


def _column(name: str) -> tuple[str, str, str, str] | None:
    """Return device, scope, quantity and unit of a column that is read."""
    if found := _ENERGY.match(name):
        core = found[1].startswith("CORE")
        known = None if core else rapl.domain(found[1], 0)
        if known is None:
            return f"cpu:0/core{found[1][4:]}", "part", "energy_counter_j", "J"
        return known.device, known.scope, "energy_counter_j", "J"
    if found := _GPU.match(name):
        counts = found[2] is not None
        return f"gpu:{found[1]}", "board", "energy_counter_j" if counts else "power_w", _UNITS[found[2] or found[3]]
    if found := _SYSTEM.match(name):
        return "platform", "dc", "power_w", _UNITS[found[1]]
    return None


def _parse(log: Log) -> Iterator[Part]:
    headers = _header(log.head)
    if headers[:2] != ["Delta", "Time"]:
        raise LogRefusedError(f"{log.name}:1: the header must begin Delta,Time; it begins {','.join(headers[:2])!r}")
    names = tuple(f"c{i}" for i in range(len(headers)))
    sample = rows.first(log, len(names), ",", 2)
    if not sample:
        raise LogRefusedError(f"{log.name}: has a header but no row below it: nothing was measured")
    groups, silent = _groups(log, names, headers, sample)
    sheet = wide.Sheet(
        names,
        ",",
        Field("c1", "Time", "ts_utc"),
        groups,
        lambda text: stamps.parse(text, _FORM),
        local_time.Localiser(None),
        time_unit_us=_FORM.unit_us,
        form=_FORM,
    )
    yield from wide.Reader(log, sheet).parts()
    yield Part(findings=absent.told(log, silent))


def _groups(
    log: Log, names: tuple[str, ...], headers: list[str], sample: list[list[str]]
) -> tuple[tuple[wide.Group, ...], list[str]]:
    """Return the devices of the file, and the columns that are 0 all along."""
    found: dict[str, tuple[str, list[Field]]] = {}
    silent = []
    for column, header in zip(names, headers, strict=True):
        known = _column(header)
        if known is None:
            continue
        device, scope, quantity, unit = known
        if absent.stays_zero(sample, names.index(column)):
            silent.append(header)
            continue
        fields = found.setdefault(device, (scope, []))[1]
        if all(f.quantity != quantity for f in fields):
            fields.append(Field(column, header, quantity, unit, required=True))
    if not found:
        raise LogRefusedError(
            f"{log.name}: no column holds a power or an energy that is not 0 all along ({', '.join(silent) or 'none is there'}): the tool "
            "had no access to the counters; run it with the rights to read them"
        )
    groups = tuple(
        wide.Group(
            Channel(d, s, kind="counter" if {f.quantity for f in fs} == {"energy_counter_j"} else "instant"),
            tuple(fs),
            s,
        )
        for d, (s, fs) in found.items()
    )
    return groups, silent


ADAPTER = Adapter(
    name="energibridge",
    title="EnergiBridge CSV",
    yields="energy counters of CPU packages, their parts and memory; power or energy of cards and of the whole machine",
    sniff=_sniff,
    parse=_parse,
    appendable=True,
)
