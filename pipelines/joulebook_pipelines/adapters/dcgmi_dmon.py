"""``dcgmi dmon``: chosen fields per card and round; the tool prints no times, so a collector must have set them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from joulebook_pipelines.logs import monitor
from joulebook_pipelines.logs.contract import Adapter, Head, Log, Part

DIALECT = monitor.Dialect(
    quantities={
        "power": ("power_w", "W"), "totec": ("energy_counter_j", "mJ"), "gputl": ("utilization_ratio", "%"),
        "gract": ("utilization_ratio", "ratio"), "mcutl": ("memory_utilization_ratio", "%"),
        "tmptr": ("temperature_c", "C"), "mmtmp": ("memory_temperature_c", "C"), "smclk": ("sm_clock_hz", "MHz"),
        "mmclk": ("memory_clock_hz", "MHz"), "fbusd": ("memory_used_bytes", "MiB"), "pmlmt": ("power_limit_w", "W"),
    },
    cure="dcgmi dmon prints none: log again as dcgmi dmon ... | ts '%Y-%m-%dT%H:%M:%.S%z' (stdbuf -oL in front keeps the times true)",
    gpu="entity",
    join_entity=True,
    units_in_header=False,
)  # fmt: skip

_HEADER = re.compile(r"(?:^|\s)#\s*Entity\s+[A-Z0-9]{2,6}\b")
_BELOW = re.compile(r"(?:^|\s)(?:ID|Id)(?:\s|$)")


def _sniff(head: Head) -> bool:
    lines = head.lines[:30]
    return any(_HEADER.search(a) and _BELOW.search(b) for a, b in itertools.pairwise(lines))


def _parse(log: Log) -> Iterator[Part]:
    return monitor.parse(log, DIALECT)


ADAPTER = Adapter(
    name="dcgmi-dmon",
    title="dcgmi dmon",
    yields="board power, energy counter, utilisation, temperatures and clocks per card",
    sniff=_sniff,
    parse=_parse,
)
