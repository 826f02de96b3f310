"""powerstat tables: watts of the battery or of RAPL on times of day, with a summary behind."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import damage, rapl, relative, sections, table, wide
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_HEADER = re.compile(r"^\s*Time\s+User\s+Nice\s+Sys\s+Idle\s+IO\b.*\bWatts\b")
_ROW = r"^\s*\d{1,2}:\d\d:\d\d(\s|$)"


def _header(head: Head) -> list[str] | None:
    return next((line.split() for line in head.lines[:200] if _HEADER.match(line)), None)


def _sniff(head: Head) -> bool:
    return _header(head) is not None


def _parse(log: Log) -> Iterator[Part]:
    headers = _header(log.head)
    if headers is None:
        raise LogRefusedError(f"{log.name}: no header of powerstat (Time User Nice Sys Idle IO … Watts)")
    first = next(((i, line) for i, line in enumerate(log.head.lines, 1) if re.match(_ROW, line)), None)
    if first is None:
        raise LogRefusedError(f"{log.name}: has a header but no row below it: nothing was measured")
    clock = relative.OfDay(log, first[0], first[1].split()[0])
    names = tuple(f"c{i}" for i in range(len(headers)))
    groups = _groups(log, names, headers)
    span_s = _interval_s(log)
    yield Part(channels=tuple(g.channel for g in groups))
    for block in log.blocks():
        yield _read(block, names, groups, clock, span_s)


def _groups(log: Log, names: tuple[str, ...], headers: list[str]) -> tuple[wide.Group, ...]:
    """Return the devices: what Watts covers is the battery's output, or RAPL where the table has its domains."""
    if "Watts" not in headers:
        raise LogRefusedError(f"{log.name}: the header of the table names no Watts")
    domains = [(n, h, d) for n, h in zip(names, headers, strict=True) if (d := rapl.domain(h)) is not None]
    software = bool(domains) or re.search(r"\bRAPL\b", log.head.text) is not None
    scope = log.options.scope or ("package" if software else "")
    device = log.options.device or ("cpu" if software else "node")
    one = Field(names[headers.index("Watts")], "Watts", "power_w", "W", required=True)
    groups = [wide.Group(Channel(device, scope, kind="mean"), (one,), scope or "facility")]
    for column, header, domain in domains:
        groups.append(
            wide.Group(
                Channel(domain.device, domain.scope, kind="mean"),
                (Field(column, header, "power_w", "W"),),
                domain.scope,
            )
        )
    return tuple(groups)


def _interval_s(log: Log) -> float:
    found = re.search(r"samples? at ([\d.]+) seconds? intervals?", log.head.text)
    if found:
        return float(found[1])
    times = [line.split()[0] for line in log.head.lines if re.match(_ROW, line)][:200]
    seconds = pl.Series(
        [int(h) * 3600 + int(m) * 60 + int(s) for h, m, s in (t.split(":") for t in times)], dtype=pl.Int64
    )
    steps = seconds.diff().drop_nulls()
    steps = steps.filter(steps > 0)
    if steps.is_empty():
        raise LogRefusedError(f"{log.name}: one row does not tell how long it was averaged over")
    return float(str(steps.median()))


def _read(
    block: Block, names: tuple[str, ...], groups: tuple[wide.Group, ...], clock: relative.OfDay, span_s: float
) -> Part:
    lines = sections.lines_of(block).filter(pl.col("raw").str.contains(_ROW))
    cells_ = lines.with_columns(cells=pl.col("raw").str.strip_chars().str.extract_all(r"\S+"))
    regular = pl.col("cells").list.len() == len(names)
    raw = cells_.filter(regular).select("line", *(pl.col("cells").list.get(i).alias(n) for i, n in enumerate(names)))
    odd = cells_.filter(~regular).select("line", "raw")
    raw, cut = damage.cut_last(block, raw, names, " ")
    rejects = [damage.odd_lines(block, odd, "wrong-number-of-fields"), cut]
    raw = raw.with_columns(clock.utc(raw["c0"]), span_s=pl.lit(span_s))
    raw, lost = table.timed(raw, [f for g in groups for f in g.fields], Field("c0", "Time", "ts_utc"))
    rejects.append(lost)
    readings, bad = wide.of_groups(raw, groups)
    return Part(lines=block.count, readings=readings, rejects=pl.concat([*rejects, bad]))


ADAPTER = Adapter(
    name="powerstat",
    title="powerstat tables",
    yields="power of the battery's output or of the CPU (RAPL), and of its domains",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
