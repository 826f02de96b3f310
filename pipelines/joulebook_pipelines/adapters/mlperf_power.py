"""MLPerf training power logs: ``:::MLLOG`` lines with ``power_reading`` in W, one file a node or switch."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import damage, mllog, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_KEYS = ('"power_reading"', '"power_measurement_start"', '"interconnect_power_est"')
_NODE = re.compile(r"(?:^|[-_.])((?:node|sw)_?\d+)$")
_SIDES = {"ac": "node", "dc": "dc"}
_DEEPEST = 3
"""Folders of a submission between its ``ac`` or ``dc`` and the files."""

_POWER = Field("value", "value", "power_w", "W", required=True)


def _sniff(head: Head) -> bool:
    first = [line for line in head.lines[:50] if line.startswith(mllog.TAG)]
    return bool(first) and any(key in first[0] or key in first[-1] for key in _KEYS)


def _parse(log: Log) -> Iterator[Part]:
    if '"power_reading"' not in log.head.text:
        estimate = re.search(r'"interconnect_power_est"\s*,\s*"value"\s*:\s*([\d.]+)', log.head.text)
        what = (
            f"an estimate of {estimate[1]} W for the interconnect, fixed beforehand,"
            if estimate
            else "start and end of a measurement"
        )
        raise LogRefusedError(f"{log.name}: holds {what} and no readings; leave it out of the study")
    channel = _channel(log)
    yield Part(channels=(channel,), findings=_about(log, channel))
    for block in log.blocks():
        yield _read(block, channel)


def _channel(log: Log) -> Channel:
    """Name the device after the file, as the rules of the benchmark name files (``node_7.txt``), else after the log's host."""
    stem = _NODE.search(log.path.name.split(".")[0])
    host = re.search(r'"power_reading".*?"host"\s*:\s*"([\w.-]+)"', log.head.text)
    named = stem[1] if stem else host[1] if host else "node"
    device = log.options.device or (f"node_{named}" if named.isdigit() else named)
    measured = re.search(r'"measurement_type"\s*:\s*"(AC|DC)"', log.head.text)
    scope = log.options.scope or _SIDES.get(measured[1].lower() if measured else _side(log), "")
    if device.startswith("sw") and log.options.scope is None:
        scope = "part"
    return Channel(device, scope)


def _side(log: Log) -> str:
    """Return the side of the power supplies by the nearest folder that names one, as submissions are laid out."""
    return next((p.name.lower() for p in list(log.path.parents)[:_DEEPEST] if p.name.lower() in _SIDES), "")


def _about(log: Log, channel: Channel) -> tuple[Finding, ...]:
    if not channel.device.startswith("sw") or log.options.scope is not None:
        return ()
    return (Finding(
        "switch-not-added", Severity.NOTE, log.name,
        'The log is of a switch, which belongs to no node; it is read and not added. To add it, give scope = "node" to its [[source]].',
    ),)  # fmt: skip


def _read(block: Block, channel: Channel) -> Part:
    found, odd = mllog.events(block)
    raw = found.filter(pl.col("key") == "power_reading").with_columns(
        mllog.stamp(pl.col("time_ms")).alias("ts_utc"), device=pl.lit(channel.device), value=pl.col("value").fill_null("null"),
    )  # fmt: skip
    rejects = [damage.odd_lines(block, odd, "damaged-event")]
    lost = raw.filter(pl.col("ts_utc").is_null())
    if lost.height:
        stamp = Field("time_ms", "time_ms", "ts_utc")
        rejects.append(table.without_time(lost, (_POWER,), stamp))
        raw = raw.filter(pl.col("ts_utc").is_not_null())
    values, bad = table.convert(raw, (_POWER,))
    values, judged = table.judge(values, raw, (_POWER,), channel.scope or "facility")
    values = table.kept(values.with_columns(raw["ts_utc"]))
    return Part(lines=block.count, readings=values, rejects=pl.concat([*rejects, bad, judged]))


ADAPTER = Adapter(
    name="mlperf-power",
    title="MLPerf training power logs (:::MLLOG power_reading), a file a node",
    yields="power of each node or switch; many nodes are summed",
    sniff=_sniff,
    parse=_parse,
)
