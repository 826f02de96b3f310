"""Readings as JSON: lines or lists of objects with a time and a power, as smart plugs, scripts and monitors write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from joulebook_pipelines.logs import json_columns, json_names, json_records, meter_columns, polled, record_reader
from joulebook_pipelines.logs.contract import Adapter, Head, Log, Part
from joulebook_pipelines.logs.json_columns import Columns


def _knows(names: Sequence[str]) -> bool:
    return meter_columns.knows(json_names.plain(names))


def _sniff(head: Head) -> bool:
    return json_names.is_states(head) or json_records.first(head, _knows) is not None


def _parse(log: Log) -> Iterator[Part]:
    if log.options.columns:
        said = set(log.options.columns.values())
        batches = _batches(log, lambda names: said <= set(names))
    elif json_names.is_states(log.head):
        yield from _states(log)
        return
    else:
        batches = _batches(log, _knows)
    yield from record_reader.parts(log, batches, json_names.why_unknown(log.head), "not-an-object")


def _states(log: Log) -> Iterator[Part]:
    """Read the states of a home, which are written on change where they did not come at one pace."""
    records, lines = json_names.states(log)
    on_change = replace(log, options=replace(log.options, kind=log.options.kind or "on-change"))
    batches: Iterator[Columns] = iter([(json_columns.of_records(records), [], lines)])
    for part in record_reader.parts(on_change, batches, json_names.why_unknown(log.head), "not-an-object"):
        if part.readings is None or log.options.kind:
            yield part
            continue
        instants = polled.devices(part.readings)
        channels = (
            replace(c, kind="instant") if c.device in instants and c.kind == "on-change" else c for c in part.channels
        )
        yield replace(part, channels=tuple(channels))


def _batches(log: Log, knows: json_records.Knows) -> Iterator[Columns]:
    """Yield readings of the file, lines that are none, and how many lines they come from."""
    if json_records.is_lines(log.head):
        yield from json_columns.of_lines(log)
        return
    records, lines = json_records.of_document(log, knows)
    yield json_columns.of_records(records), [], lines


ADAPTER = Adapter(
    name="meter-json",
    title="JSON of plugs, monitors and scripts, in lines or a list (Tasmota, Shelly, Home Assistant, gpustat)",
    yields="power, energy counters or energy per interval, voltage, current and temperatures, per device",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
    family="meter",
    fallback=True,
)
