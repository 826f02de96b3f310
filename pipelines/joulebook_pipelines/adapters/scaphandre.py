"""Scaphandre's JSON exporter: power of the host, its sockets and their domains in µW, and of processes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import polars as pl

from joulebook_pipelines.logs import rapl, table, untimed
from joulebook_pipelines.logs.contract import Adapter, Channel, Head, Log, LogRefusedError, Part

_MICROWATT_W = 1e-6


def _sniff(head: Head) -> bool:
    start = head.text[:4000].replace(" ", "").replace("\n", "")
    return start.startswith(("[{", "{")) and re.search(r'"host":[{\d]', start) is not None and '"consumption"' in start and (
        '"sockets"' in head.text or '"consumers"' in head.text
    )  # fmt: skip


def _documents(log: Log) -> Iterator[tuple[int, Any]]:
    """Yield the reports with the line each begins on: one list of them, or one behind the other."""
    text = log.whole_text()
    decoder, at = json.JSONDecoder(), 0
    counted, line = 0, 1
    listed = text.lstrip()[:1] == "["
    while at < len(text):
        while at < len(text) and text[at] in " \t\r\n,[]":
            at += 1
        if at >= len(text):
            return
        line += text.count("\n", counted, at)
        counted = at
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            yield line, text[at : text.find("\n", at) if "\n" in text[at:] else len(text)][: table.LONGEST_RAW]
            after = text.find('{"host"', at + 1)
            if after < 0 or (not listed and after <= at):
                return
            at = after
            continue
        yield line, value


_NEVER_ZERO = frozenset({"components", "package"})


def _parse(log: Log) -> Iterator[Part]:
    lines = sum(b.count for b in log.blocks())
    early = untimed.Steps(log) if re.search(r'"host"\s*:\s*\d', log.head.text[:4000]) else None
    frame, rejects, channels = _told(log, early)
    if frame.is_empty() and not rejects:
        raise LogRefusedError(f"{log.name}: no report of Scaphandre in it")
    frame = frame.unique(["device", "us"], keep="first", maintain_order=True)
    whole = [d for d, c in channels.items() if c.scope in _NEVER_ZERO]
    # Without the right to read the counters it reports nothing but zeros; a machine that runs draws something.
    dead = pl.col("device").is_in(whole) & (pl.col("power_w") == 0)
    rejects += [
        (line, d, "consumption", "zero-power", "0")
        for line, d in frame.filter(dead).select("line", "device").iter_rows()
    ]
    bad = pl.DataFrame(rejects, schema=table.REJECT_SCHEMA, orient="row").unique(
        ["line", "device", "column_name"], maintain_order=True
    )
    yield Part(
        lines=lines, readings=_spanned(frame.filter(~dead)), rejects=bad, channels=tuple(channels.values()),
        findings=early.findings if early is not None else (),
    )  # fmt: skip


_Reject = tuple[int, str | None, str, str, str]


def _told(log: Log, early: untimed.Steps | None) -> tuple[pl.DataFrame, list[_Reject], dict[str, Channel]]:
    """Return the powers of all reports, what could not be read, and the channels."""
    rows: list[dict[str, object]] = []
    rejects: list[_Reject] = []
    channels: dict[str, Channel] = {}
    for line, told in _documents(log):
        report = _timed(told, early)
        if not isinstance(report, dict) or not isinstance(report.get("host"), dict):
            rejects.append((line, None, "", "not-a-report", str(report)[: table.LONGEST_RAW]))
            continue
        for channel, at, watts in _powers(report):
            channels.setdefault(channel.device, channel)
            power, stamp = _number(watts), _number(at)
            if stamp is None or not (early or 946_684_800 <= stamp < 4_102_444_800):
                rejects.append((line, channel.device, "timestamp", "no-such-time", str(at)))
            elif power is None:
                rejects.append((line, channel.device, "consumption", "not-a-number", str(watts)))
            else:
                rows.append(
                    {"line": line, "device": channel.device, "us": round(stamp * 1e6), "power_w": power * _MICROWATT_W}
                )
    schema = {"line": pl.Int64, "device": pl.String, "us": pl.Int64, "power_w": pl.Float64}
    return pl.DataFrame(rows, schema=schema), rejects, channels


def _spanned(frame: pl.DataFrame) -> pl.DataFrame:
    """Give each power its span: it is the mean since the report before, and the first covers the usual step."""
    step = pl.col("us").diff().over("device")
    span = pl.coalesce(pl.when(step > 0).then(step), step.filter(step > 0).median().over("device")) / 1e6
    stamp = pl.col("us").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    return frame.with_columns(span_s=span, ts_utc=stamp).drop("us")


def _timed(report: Any, steps: untimed.Steps | None) -> Any:
    """Return a report of the first releases, which held no times, with the time of its step; any other as it is."""
    if steps is None or not isinstance(report, dict) or not isinstance(report.get("host"), int | float):
        return report
    return {**report, "host": {"consumption": report["host"], "timestamp": steps.next(1).to_physical()[0] / 1e6}}


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and abs(number) < 1e30 else None


def _powers(report: dict[str, Any]) -> Iterator[tuple[Channel, object, object]]:
    """Yield each device of a report with its stamp and its power; processes are parts of the host."""
    host = report["host"]
    at = host.get("timestamp")
    yield Channel("components", "components", kind="mean"), at, host.get("consumption")
    for i, socket in enumerate(_list(report.get("sockets"))):
        number = socket.get("id", i)
        number = number if isinstance(number, int) else i
        own = socket.get("timestamp", at)
        yield Channel(f"cpu:{number}", "package", kind="mean"), own, socket.get("consumption")
        for domain in _list(socket.get("domains")):
            known = rapl.domain(str(domain.get("name", "")), number)
            if known is not None:
                yield (
                    Channel(known.device, known.scope, kind="mean"),
                    domain.get("timestamp", own),
                    domain.get("consumption"),
                )
    for consumer in _list(report.get("consumers")):
        name = str(consumer.get("exe") or "process").rsplit("/", 1)[-1][:60]
        device = f"process/{name}/{consumer.get('pid', '')}"
        yield Channel(device, "part", kind="mean"), consumer.get("timestamp", at), consumer.get("consumption")


def _list(value: object) -> list[dict[str, Any]]:
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []


ADAPTER = Adapter(
    name="scaphandre",
    title="Scaphandre JSON exporter",
    yields="power of the host as far as RAPL sees it, of sockets and their domains; processes as parts",
    sniff=_sniff,
    parse=_parse,
)
