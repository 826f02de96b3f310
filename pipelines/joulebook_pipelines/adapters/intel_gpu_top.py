"""``intel_gpu_top -J``: an object a sample, with the length of its span and no time; means of package and graphics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import polars as pl

from joulebook.findings import Finding
from joulebook_pipelines.logs import entries, json_objects, local_time, relative, stamps, table
from joulebook_pipelines.logs.contract import Adapter, Channel, Head, Log, LogRefusedError, Part

_DEVICES = {"Package": ("cpu:0", "package"), "GPU": ("igpu", "part")}
"""Members of ``power``: the graphics of a processor lie inside its package."""

_SECONDS = {"ms": 1e-3, "s": 1.0, "us": 1e-6}
_ZERO = datetime(1970, 1, 1)


def _is_sample(value: dict[str, Any]) -> bool:
    return isinstance(value.get("period"), dict) and isinstance(value.get("power"), dict)


def _sniff(head: Head) -> bool:
    text = head.text
    return all(
        re.search(pattern, text)
        for pattern in (r'"period":\s*\{', r'"rc6":\s*\{', r'"power":\s*\{', r'"engines":\s*\{')
    )


def _parse(log: Log) -> Iterator[Part]:
    text = log.whole_text()
    found, odd = json_objects.find(text, _is_sample, mark='"power"')
    spans = [_span_s(value) for _, _, value in found]
    known = [s for s in spans if s is not None]
    if not known:
        raise LogRefusedError(f"{log.name}: no sample says its period and its power, as intel_gpu_top -J prints them")
    utc, told = _utc(log, spans)
    rows, channels = _rows(found)
    frame = pl.DataFrame(rows, schema={"row": pl.Int64, "line": pl.Int64, "device": pl.String, "header": pl.String, "unit": pl.String,
                                       "raw": pl.String}, orient="row")  # fmt: skip
    times = pl.DataFrame(
        {"row": range(len(found)), "ts_utc": utc, "span_s": spans},
        schema_overrides={"row": pl.Int64, "span_s": pl.Float64},
    )
    frame = frame.join(times, on="row", how="left", maintain_order="left").with_columns(quantity=pl.lit("power_w"))
    spans_of = frame.select("device", "ts_utc", "span_s").drop_nulls("ts_utc")
    # The two devices of a sample are two readings.
    frame = frame.with_columns(row=pl.int_range(pl.len()))
    readings, rejects = entries.gather(frame.select(list(entries.SCHEMA)), dict(_DEVICES.values()), never_zero=False)
    readings = readings.join(spans_of, on=["device", "ts_utc"], how="left", maintain_order="left")
    cut = table.whole_lines(pl.DataFrame(odd, schema={"line": pl.Int64, "raw": pl.String}, orient="row"), "object-cut")
    lines = text.count("\n") + (not text.endswith("\n"))
    yield Part(lines, readings, pl.concat([cut, rejects]), channels=channels, findings=told)


def _span_s(value: dict[str, Any]) -> float | None:
    """Return the length of a sample [s], ``None`` where it says none."""
    length, unit = value["period"].get("duration"), _SECONDS.get(str(value["period"].get("unit", "ms")))
    if unit is None or isinstance(length, bool) or not isinstance(length, int | float):
        return None
    return length * unit if length > 0 else None


def _utc(log: Log, spans: list[float | None]) -> tuple[pl.Series, tuple[Finding, ...]]:
    """Return the ends of the samples, one after the other from the date that study.toml gives; null where the span is not known."""
    seconds = pl.Series("s", spans, dtype=pl.Float64)
    passed = (1e6 * seconds.fill_null(0.0).cum_sum()).round().cast(pl.Int64).cast(pl.Duration("us"))
    start = datetime.fromisoformat(log.options.date) if log.options.date else _ZERO
    naive = (passed + pl.Series([start])).set(seconds.is_null(), None)
    if log.options.date is None:
        return naive.dt.replace_time_zone("UTC"), (relative.unknown_start(log),)
    form = stamps.StampForm("%Y-%m-%d", aware=False)
    return local_time.localiser(log, form, 1, log.options.date).to_utc(naive), ()


def _rows(found: json_objects.Found) -> tuple[list[tuple[int, int, str, str, str, str]], tuple[Channel, ...]]:
    """Return an entry a power, and the channels that come up."""
    rows = []
    for at, (line, _, value) in enumerate(found):  # samples of one file, held whole
        power, unit = value["power"], str(value["power"].get("unit", "W"))
        rows += [
            (at, line, device, f"power.{name}", unit, str(power[name]))
            for name, (device, _) in _DEVICES.items()
            if name in power
        ]
    devices = {r[2] for r in rows}
    return rows, tuple(Channel(d, scope, kind="mean") for d, scope in _DEVICES.values() if d in devices)


ADAPTER = Adapter(
    name="intel-gpu-top",
    title="intel_gpu_top -J (JSON)",
    yields="power of the processor package and of its graphics, as means over each sample",
    sniff=_sniff,
    parse=_parse,
)
