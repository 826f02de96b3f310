"""AIPowerMeter's metrics, a JSON object a line: power of the CPU and of the platform by RAPL, since the line before."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import damage, local_time, sections, stamps, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_START = re.compile(r'^\{"date": "([^"]+)", "metrics": \{')
_PLACES = {
    "intel_power": Channel("cpu", "package", kind="mean"), "psys_power": Channel("platform", "dc", kind="mean"),
    "uncore_power": Channel("cpu/uncore", "part", kind="mean"),
}  # fmt: skip
_END = '"END OF RECORDING SEGMENT"'
_NUMBER = r'"{}":\s*\[?\s*([^,\]}}\s]+)'


def _sniff(head: Head) -> bool:
    return _START.match(head.lines[0]) is not None and '"intel_power"' in head.lines[0]


def _parse(log: Log) -> Iterator[Part]:
    whole = log.head.lines if log.head.complete else log.head.lines[:-1]
    samples = [m[1] for line in whole if (m := _START.match(line))]
    if not samples:
        raise LogRefusedError(f'{log.name}: no line begins {{"date": "…", "metrics": {{')
    form = local_time.form(log, samples[:200])
    clock = local_time.localiser(log, form, 1, samples[0])
    yield Part(channels=tuple(_PLACES.values()))
    last_us: int | None = None
    for block in log.blocks():
        part, last_us = _read(block, form, clock, last_us)
        yield part


def _read(
    block: Block, form: stamps.StampForm, clock: local_time.Localiser, last_us: int | None
) -> tuple[Part, int | None]:
    lines = sections.lines_of(block).filter(pl.col("raw").str.strip_chars() != _END)
    whole = pl.col("raw").str.contains(_START.pattern) & pl.col("raw").str.contains(r"\}\s*$")
    rejects = [damage.odd_lines(block, lines.filter(~whole), "not-a-record")]
    raw = lines.filter(whole).with_columns(
        date=pl.col("raw").str.extract(_START.pattern, 1),
        **{name: pl.col("raw").str.extract(_NUMBER.format(name), 1) for name in _PLACES},
    )  # fmt: skip
    raw = raw.with_columns(clock.utc(raw, stamps.parse(pl.col("date"), form)))
    fields = [Field(name, name, "power_w", "W") for name in _PLACES]
    raw, lost = table.timed(raw, fields, Field("date", "date", "ts_utc"))
    rejects.append(lost)
    us = raw["ts_utc"].dt.timestamp("us")
    step = us - us.shift(1, fill_value=last_us)
    usual = step.filter(step > 0).median()
    span = pl.DataFrame({"s": step}).select(
        span_s=pl.when(pl.col("s") > 0).then(pl.col("s")).otherwise(pl.lit(usual)) / 1e6
    )
    raw = raw.with_columns(span.to_series())
    readings = []
    for field in fields:
        mine = raw.with_columns(device=pl.lit(_PLACES[field.column].device))
        values, bad = table.convert(mine, (field,))
        values, judged = table.judge(values, mine, (field,), _PLACES[field.column].scope)
        readings.append(table.kept(values.with_columns(mine["ts_utc"], mine["span_s"])))
        rejects += [bad, judged]
    joined = pl.concat(readings).sort("line", maintain_order=True)
    return Part(lines=block.count, readings=joined, rejects=pl.concat(rejects)), int(us[-1]) if len(us) else last_us


ADAPTER = Adapter(
    name="aipowermeter",
    title="AIPowerMeter metrics, as JSON lines",
    yields="power of the CPU package, its uncore and the platform",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
