"""Readings as InfluxDB's line protocol: what Telegraf writes to files, smart plugs and scripts send."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from joulebook_pipelines.logs import json_names, line_protocol, meter_columns, record_reader
from joulebook_pipelines.logs.contract import Adapter, Log, Part


def _knows(names: Sequence[str]) -> bool:
    return meter_columns.knows(json_names.plain(names))


def _parse(log: Log) -> Iterator[Part]:
    said = set(log.options.columns.values())
    knows = (lambda names: said <= set(names)) if said else _knows
    batches = line_protocol.of_lines(log, knows)
    yield from record_reader.parts(
        log, batches, "no point of it holds a power or an energy with a known unit", "not-a-point"
    )


ADAPTER = Adapter(
    name="influx-lines",
    title="InfluxDB line protocol (Telegraf, plugs, scripts)",
    yields="power, energy counters, voltage, current and temperatures, per device",
    sniff=lambda head: line_protocol.sniff(head, _knows),
    parse=_parse,
    family="meter",
)
