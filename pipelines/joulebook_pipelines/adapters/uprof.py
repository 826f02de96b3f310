"""AMD uProf's timechart report: counters with their units in a preamble, then records with times of day."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import polars as pl

from joulebook_pipelines.logs import damage, relative, rows, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_COUNTER = re.compile(r"^\d+\.?,([\w-]+),(\w+),([^,]*),")
_START = re.compile(r"^Profile Start Time:,(\w{3}-\d{1,2}-\d{4})_", re.MULTILINE)
_INTERVAL = re.compile(r"^Sampling Interval:,(\d+) milli-seconds", re.MULTILINE)
_TIME = r"^(\d{1,2}):(\d{1,2}):(\d{1,2})[:.](\d{1,3})$"


def _sniff(head: Head) -> bool:
    return head.text.lstrip().startswith("AMDPROFILER") or "\nPROFILED COUNTERS\n" in head.text


def _header(log: Log) -> tuple[int, list[str]]:
    """Return the physical line of the titles of the records, and the titles."""
    for number, line in enumerate(log.head.lines, 1):
        titles = [t.strip() for t in line.rstrip(", ").split(",")]
        if titles[:2] == ["RecordId", "Timestamp"]:
            return number, titles
    raise LogRefusedError(
        f"{log.name}: holds no records (no line RecordId,Timestamp,…); run uProf's timechart with --event power"
    )


def _device(name: str) -> tuple[str, str]:
    """Return device and scope of a counter."""
    if match := re.fullmatch(r"socket(\d+)-package-power", name):
        return f"cpu:{match[1]}", "package"
    return f"cpu/{name.removesuffix('-power')}", "part"


def _parse(log: Log) -> Iterator[Part]:
    first, titles = _header(log)
    units = {m[1]: m[3] for line in log.head.lines[:first] if (m := _COUNTER.match(line.strip())) and m[2] == "Power"}
    fields = [
        (*_device(t), Field(f"c{i}", t, "power_w", units[t], required=True))
        for i, t in enumerate(titles) if units.get(t) in {"W", "mW"}
    ]  # fmt: skip
    if not fields:
        raise LogRefusedError(
            f"{log.name}: none of its counters is a power in watts; run uProf's timechart with --event power"
        )
    if log.options.date is None and (begun := _START.search(log.head.text)):
        try:
            day = datetime.strptime(begun[1], "%b-%d-%Y").date().isoformat()
        except ValueError:
            raise LogRefusedError(f"{log.name}: the date of its start ({begun[1]!r}) does not exist") from None
        log = replace(log, options=replace(log.options, date=day))
    sample = next((line.split(",")[1] for line in log.head.lines[first:] if line.count(",") > 1), "")
    if not sample:
        raise LogRefusedError(f"{log.name}: has a header but no record below it: nothing was measured")
    clock = relative.OfDay(log, first + 1, sample)
    every = _INTERVAL.search(log.head.text)
    window_s = log.options.window_s or (int(every[1]) / 1e3 if every else None)
    yield Part(lines=first, channels=tuple(Channel(d, s, kind="mean", window_s=window_s) for d, s, _ in fields))
    for block in rows.below(log.blocks(), first):
        yield _read(block, len(titles), fields, clock)


def _read(block: Block, width: int, fields: list[tuple[str, str, Field]], clock: relative.OfDay) -> Part:
    lines = block.filled()
    cells = lines.with_columns(cells=pl.col("raw").str.strip_chars_end(", \r").str.split(","))
    regular = pl.col("cells").list.len() == width
    rejects = [damage.odd_lines(block, cells.filter(~regular).select("line", "raw"), "wrong-number-of-fields")]
    names = ("c1", *(f.column for _, _, f in fields))
    raw = cells.filter(regular).select(
        "line", *(pl.col("cells").list.get(int(n[1:])).str.strip_chars().alias(n) for n in names)
    )
    parts = [pl.col("c1").str.extract(_TIME, i).str.zfill(3 if i == 4 else 2) for i in (1, 2, 3, 4)]
    padded = pl.concat_str([*parts[:3]], separator=":") + "." + parts[3]
    raw = raw.with_columns(clock.utc(raw.select(padded.fill_null("").alias("t")).to_series()).alias("ts_utc"))
    lost = raw.filter(pl.col("ts_utc").is_null()).with_columns(device=pl.lit(None, pl.String))
    rejects.append(table.without_time(lost, [f for _, _, f in fields], Field("c1", "Timestamp", "ts_utc")))
    raw = raw.filter(pl.col("ts_utc").is_not_null())
    readings = []
    for device, scope, field in fields:  # one turn a counter, not a row
        mine = raw.with_columns(device=pl.lit(device))
        values, bad = table.convert(mine, [field])
        values, judged = table.judge(values, mine, [field], scope)
        readings.append(table.kept(values.with_columns(mine["ts_utc"])))
        rejects += [bad, judged]
    return Part(block.count, pl.concat(readings).sort("line", maintain_order=True), pl.concat(rejects))


ADAPTER = Adapter(
    name="uprof",
    title="AMD uProf timechart (CSV)",
    yields="power of CPU packages, and of cores as their parts",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
