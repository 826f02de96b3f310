"""``rocm-smi`` and ``amd-smi``: tables (``--csv``), JSON and text, with a time column or a collector's stamps between the rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from joulebook_pipelines.logs import amd_json, amd_names, amd_table, amd_text, entries
from joulebook_pipelines.logs.amd_rounds import Said
from joulebook_pipelines.logs.contract import Adapter, Channel, Head, Log, Part


def _sniff(head: Head) -> bool:
    return amd_table.header_at(head.lines) is not None or amd_json.looks_so(head) or amd_text.looks_so(head)


def _parse(log: Log) -> Iterator[Part]:
    said = _said(log)
    devices = said.entries["device"].unique(maintain_order=True)
    readings, rejects = entries.gather(said.entries, dict.fromkeys(devices, "board"))
    rejects = pl.concat([said.rejects, rejects])
    channels = tuple(_channel(log, d, readings, said.naming.get(d, {})) for d in devices)
    findings = (*said.findings, *amd_names.dies(log.name, rejects, readings))
    yield Part(said.lines, readings, rejects, channels=channels, findings=findings)


def _said(log: Log) -> Said:
    if amd_table.header_at(log.head.lines) is not None:
        return amd_table.read(log)
    return amd_text.read(log) if amd_text.looks_so(log.head) and not amd_json.looks_so(log.head) else amd_json.read(log)


def _channel(log: Log, device: str, readings: pl.DataFrame, naming: Mapping[str, str]) -> Channel:
    mine = readings.filter(pl.col("device") == device)
    powered = "power_w" in mine.columns and mine["power_w"].null_count() < mine.height
    counted = "energy_counter_j" in mine.columns and mine["energy_counter_j"].null_count() < mine.height
    model = next((naming[k] for k in amd_names.MODEL if naming.get(k)), "")
    uuid = next((naming[k] for k in amd_names.IDENTITY if naming.get(k)), "")
    window_s = log.options.window_s
    kind = "counter" if counted and not powered else "instant" if window_s is None else "mean"
    return Channel(device, "board", model, uuid, kind, window_s)


ADAPTER = Adapter(
    name="rocm-smi",
    title="rocm-smi and amd-smi (CSV, JSON and text)",
    yields="board power or energy counter, limit, utilisation, memory, temperatures and clocks per card",
    sniff=_sniff,
    parse=_parse,
)
