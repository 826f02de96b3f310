"""The columns of an ``nvidia-smi --query-gpu`` table: which field is which quantity, in which unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from joulebook_pipelines.logs import cells
from joulebook_pipelines.logs.contract import Head, Log, LogRefusedError
from joulebook_pipelines.logs.table import Field

QUANTITIES = {
    "power.draw": ("power_w", "W"), "power.draw.average": ("power_w", "W"), "power.draw.instant": ("power_w", "W"),
    "power.limit": ("power_limit_w", "W"), "enforced.power.limit": ("power_limit_w", "W"),
    "total_energy_consumption": ("energy_counter_j", "mJ"), "energy.total": ("energy_counter_j", "mJ"),
    "utilization.gpu": ("utilization_ratio", "%"), "utilization.memory": ("memory_utilization_ratio", "%"),
    "memory.used": ("memory_used_bytes", "MiB"),
    "temperature.gpu": ("temperature_c", "C"), "temperature.memory": ("memory_temperature_c", "C"),
    "clocks.current.sm": ("sm_clock_hz", "MHz"), "clocks.sm": ("sm_clock_hz", "MHz"),
    "clocks.current.graphics": ("sm_clock_hz", "MHz"), "clocks.gr": ("sm_clock_hz", "MHz"),
    "clocks.current.memory": ("memory_clock_hz", "MHz"), "clocks.mem": ("memory_clock_hz", "MHz"),
    "fan.speed": ("fan_ratio", "%"), "pstate": ("performance_state", ""),
    "clocks_throttle_reasons.active": ("throttle_reasons", ""), "clocks_event_reasons.active": ("throttle_reasons", ""),
}  # fmt: skip
"""Fields of the query and their quantity; earlier ones win where two fields give the same quantity."""

_INDEX = ("index", "gpu", "gpu_index", "gpu.index")
_UUID = ("uuid", "gpu_uuid")
_BUS = ("pci.bus_id", "gpu_bus_id", "pci.bus")
_SERIAL = ("serial", "gpu_serial")
_MODEL = ("name", "gpu_name")
_HOST = ("hostname", "host", "node", "nodename", "node_name", "server", "machine")
_HEADERLESS = re.compile(r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3},(?: |.*(?:NVIDIA|GeForce|Tesla|Quadro))")


_OWN_TIME = re.compile(
    r"^\W*(?:(?:unix_?|epoch_?)?time|datetime|date|elapsed|ts|epoch|unix)(?:_?(?:s|sec|ms|us|ns))?\W*,"
)
"""A script put a time of its own in front of NVIDIA's names: that is a table like any other."""


@dataclass(frozen=True)
class Layout:
    """The columns of one header: names for the split, and which of them mean what."""

    names: tuple[str, ...]
    headers: tuple[str, ...]
    time: str
    fields: tuple[Field, ...]
    others: tuple[Field, ...]
    index: str | None
    uuid: str | None
    bus: str | None
    model: str | None
    driver: str | None
    serial: str | None = None
    host: str | None = None
    further_indexes: tuple[str, ...] = ()

    @property
    def key(self) -> str | None:
        """Name of the column that tells the cards apart."""
        return self.index or self.uuid or self.bus or self.serial

    @property
    def power(self) -> str | None:
        """Name of the power field that is read as ``power_w``."""
        return next((f.header.split(" [")[0].strip() for f in self.fields if f.quantity == "power_w"), None)

    @property
    def counts(self) -> bool:
        """Whether the energy counter of the card is all that tells its energy."""
        return self.power is None and any(f.quantity == "energy_counter_j" for f in self.fields)


def _split_header(line: str) -> list[str]:
    return [cell.strip().strip('"').strip("\x00").strip() for cell in line.strip("\x00").split(",")]


def is_header(line: str) -> bool:
    """Tell whether a line names fields of the query."""
    names = [c.split(" [")[0].lower() for c in _split_header(line)]
    known = sum(n in QUANTITIES for n in names)
    return known >= 1 and ("timestamp" in names or any("." in n and n in QUANTITIES for n in names))


def sniff(head: Head) -> bool:
    """Tell whether a file has such a header of several columns, or looks like such a table without one."""
    header = next((line for line in head.lines[:200] if "," in line and is_header(line)), None)
    if header is not None:
        return not _OWN_TIME.search(header.lower()) or "timestamp" in header.lower()
    return bool(_HEADERLESS.match(head.lines[0]))


def from_header(line: str, name: str) -> Layout:
    """Return the columns that a header line names.

    Raises
    ------
    LogRefusedError
        There is no time among them.
    """
    headers = _split_header(line)
    keys = [h.split(" [")[0].strip().lower() for h in headers]
    columns = tuple(f"c{i}" for i in range(len(headers)))
    if "timestamp" not in keys:
        raise LogRefusedError(
            f"{name}: has no timestamp column ({', '.join(headers)}); without times there is no energy. "
            "Log again with --query-gpu=timestamp,…"
        )
    fields, others = _fields(columns, headers, keys)
    odd = next(
        (
            f
            for f in (*fields, *others)
            if f.quantity not in cells.TEXT_QUANTITIES and cells.factor(f.quantity, f.unit) is None
        ),
        None,
    )
    if odd is not None:
        known = ", ".join(cells.units_of(odd.quantity))
        raise LogRefusedError(
            f"{name}: the unit in the header {odd.header!r} is not known (one of {known}); the header is damaged"
        )

    def first(choices: tuple[str, ...]) -> str | None:
        return next((c for want in choices for c, k in zip(columns, keys, strict=True) if k == want), None)

    index = first(_INDEX)
    further = tuple(c for c, k in zip(columns, keys, strict=True) if k in _INDEX and c != index)
    return Layout(
        columns, tuple(headers), columns[keys.index("timestamp")], tuple(fields), tuple(others),
        index, first(_UUID), first(_BUS), first(_MODEL), first(("driver_version",)), first(_SERIAL), first(_HOST), further,
    )  # fmt: skip


def _fields(columns: tuple[str, ...], headers: list[str], keys: list[str]) -> tuple[list[Field], list[Field]]:
    """Return the main field of each quantity, and further power fields of the same board.

    The order of :data:`QUANTITIES`, not that of the file, decides which of two fields is the main one.
    """
    fields: list[Field] = []
    others: list[Field] = []
    for key, (quantity, unit) in QUANTITIES.items():
        for column, header, found in zip(columns, headers, keys, strict=True):
            if found != key:
                continue
            made = Field(column, header, quantity, _unit_of(header) or unit, required=quantity == "power_w")
            if all(f.quantity != quantity for f in fields):
                fields.append(made)
            elif quantity == "power_w":
                others.append(made)
    return fields, others


def _unit_of(header: str) -> str:
    match = re.search(r"\[(.+)\]$", header)
    return match[1] if match else ""


def _example(row: list[str]) -> str:
    """Return what study.toml may say of a row: the cell in watts, or with two decimals, is the power, a small number the card."""
    like = (r"\d\s*W\s*$", r"^\s*\d+\.\d\d\s*$")
    power = next((i for p in like for i, c in enumerate(row, 1) if re.search(p, c)), len(row))
    card = next((i for i, c in enumerate(row, 1) if 1 < i != power and re.fullmatch(r"\s*\d{1,2}\s*", c)), 0)
    return 'time = "1", ' + (f'device = "{card}", ' if card else "") + f'power_w = "{power}"'


def from_positions(log: Log) -> Layout:
    """Return the layout of a file without header from ``columns = { time = "1", power_w = "5" }``."""
    first = log.head.lines[0]
    count = len(first.split(","))
    wanted = log.options.columns
    if not wanted:
        raise LogRefusedError(
            f"{log.name}:1: has no header line, so its {count} columns have no names: {first!r}. Say in study.toml which is which "
            f"by position, e.g. columns = {{ {_example(first.split(','))} }}"
        )
    names = tuple(f"c{i}" for i in range(count))

    def place(key: str) -> str | None:
        text = wanted.get(key)
        if text is None:
            return None
        if not text.isdigit() or not 1 <= int(text) <= count:
            raise LogRefusedError(
                f"{log.name}: columns.{key} = {text!r}: a file without header needs a position from 1 to {count}"
            )
        return names[int(text) - 1]

    time = place("time")
    if time is None:
        raise LogRefusedError(f"{log.name}: columns must name the position of time")
    units = {q: u for q, u in QUANTITIES.values()}
    fields = tuple(
        Field(column, f"column {wanted[q]}", q, log.options.units.get(q, units.get(q, "")), required=q == "power_w")
        for q in wanted
        if q in units and (column := place(q)) is not None
    )
    return Layout(names, names, time, fields, (), place("device"), None, None, None, None)


def decimal_of(layout: Layout, sample: Sequence[Sequence[str]]) -> str:
    """Return the decimal sign of quoted cells: the tool writes two digits behind it, so a comma before them is no mark of thousands."""
    places = [layout.names.index(f.column) for f in (*layout.fields, *layout.others)]
    texts = [row[i] for row in sample for i in places]
    commas = any(re.match(r"^[+-]?\d+,\d{1,2}(?!\d)", t) for t in texts)
    points = any(re.match(r"^[+-]?\d+\.\d", t) for t in texts)
    return "," if commas and not points else "."
