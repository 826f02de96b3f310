"""``nvidia-smi dmon``: a blank-separated table with ``#`` header lines that come again, whole watts, ``-`` for no value."""

from __future__ import annotations

from collections.abc import Iterator

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import hash_table, monitor
from joulebook_pipelines.logs.contract import Adapter, Head, Log, Part

DIALECT = monitor.Dialect(
    quantities={
        "pwr": ("power_w", "W"), "gtemp": ("temperature_c", "C"), "temp": ("temperature_c", "C"),
        "mtemp": ("memory_temperature_c", "C"), "sm": ("utilization_ratio", "%"), "mem": ("memory_utilization_ratio", "%"),
        "mclk": ("memory_clock_hz", "MHz"), "pclk": ("sm_clock_hz", "MHz"), "fb": ("memory_used_bytes", "MiB"),
    },
    cure="log again with nvidia-smi dmon -o DT",
)  # fmt: skip

_EITHER = frozenset({"pwr", "sm", "gtemp", "temp", "mclk"})
"""Columns of which every dmon table has one."""


def _sniff(head: Head) -> bool:
    found = hash_table.first([line[line.find("#") :] if "#" in line else line for line in head.lines[:30]])
    return found is not None and "gpu" in found.names and "pid" not in found.names and bool(_EITHER & set(found.names))


def _parse(log: Log) -> Iterator[Part]:
    whole = Finding(
        "whole-watts", Severity.NOTE, log.name,
        "dmon prints whole watts: each reading is known to ±0.5 W, and the scatter of a steady load is that of the rounding.",
    )  # fmt: skip
    return monitor.parse(log, DIALECT, (whole,) if "pwr" in log.head.text else ())


ADAPTER = Adapter(
    name="nvidia-dmon",
    title="nvidia-smi dmon",
    yields="board power in whole watts, utilisation, temperatures and clocks per card",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
