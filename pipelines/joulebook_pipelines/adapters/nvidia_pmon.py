"""``nvidia-smi pmon``: utilisation and memory of each process on each card; it knows no power."""

from __future__ import annotations

from collections.abc import Iterator

from joulebook_pipelines.logs import hash_table, monitor
from joulebook_pipelines.logs.contract import Adapter, Head, Log, Part

DIALECT = monitor.Dialect(
    quantities={
        "sm": ("utilization_ratio", "%"), "mem": ("memory_utilization_ratio", "%"), "fb": ("memory_used_bytes", "MiB"),
    },
    cure="log again with nvidia-smi pmon -o DT",
    process="pid",
)  # fmt: skip


def _sniff(head: Head) -> bool:
    found = hash_table.first([line[line.find("#") :] if "#" in line else line for line in head.lines[:30]])
    return found is not None and {"gpu", "pid"} <= set(found.names) and found.names[-1] in {"command", "name"}


def _parse(log: Log) -> Iterator[Part]:
    return monitor.parse(log, DIALECT)


ADAPTER = Adapter(
    name="nvidia-pmon",
    title="nvidia-smi pmon",
    yields="utilisation and memory per process and card (no power)",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
