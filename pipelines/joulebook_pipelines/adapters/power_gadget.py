"""Intel Power Gadget CSV: times of day without a date, power and counters of package, cores, memory, and a trailer."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import cells, damage, rapl, relative, rows, table, wide
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_POWER = re.compile(r"^(Processor|IA|DRAM|GT) Power(?:_(\d+))?\s*\(Watt\)$")
_COUNTER = re.compile(r"^Cumulative (Processor|IA|DRAM|GT) Energy(?:_(\d+))?\s*\(Joules\)$")
_OTHER = {
    r"^Package Temperature_(\d+)\s*\(C\)$": ("temperature_c", "C"),
    r"^CPU Frequency_(\d+)\s*\(MHz\)$": ("sm_clock_hz", "MHz"),
}
_TRAILER = re.compile(r'^\s*"?(Total Elapsed Time|Measured RDTSC|Cumulative|Average)\b.*=')


def _headers(line: str) -> list[str]:
    return [c.strip().strip('"').strip() for c in line.split(",")]


def _sniff(head: Head) -> bool:
    names = _headers(head.lines[0])
    return "System Time" in names and "RDTSC" in names


def _parse(log: Log) -> Iterator[Part]:
    headers = _headers(log.head.lines[0])
    if "System Time" not in headers:
        raise LogRefusedError(f"{log.name}:1: the header has no System Time; it begins {log.head.lines[0][:60]!r}")
    names = tuple(f"c{i}" for i in range(len(headers)))
    sample = [c for line in log.head.lines[1:20] if len(c := _headers(line)) == len(names)]
    if not sample:
        raise LogRefusedError(f"{log.name}: has a header but no row below it: nothing was measured")
    groups = _groups(names, headers)
    if not groups:
        raise LogRefusedError(
            f"{log.name}:1: no column is a power or an energy; log with the power of the processor switched on"
        )
    time = Field(names[headers.index("System Time")], "System Time", "ts_utc")
    clock = relative.OfDay(log, 2, sample[0][headers.index("System Time")])
    since = next((names[i] for i, h in enumerate(headers) if h.startswith("Elapsed Time")), None)
    spans = _Spans(since)
    yield Part(lines=1, channels=tuple(g.channel for g in groups))
    for block in rows.below(log.blocks(), 1):
        yield _read(block, names, groups, time, clock, spans)


class _Spans:
    """How long each row was averaged over: since the row before, the first since the start of the log."""

    def __init__(self, column: str | None) -> None:
        self._column, self._last_s = column, 0.0

    def of(self, raw: pl.DataFrame) -> pl.Series:
        if self._column is None:
            return pl.Series("span_s", [None] * raw.height, dtype=pl.Float64)
        elapsed = raw.select(cells.plain_number(pl.col(self._column))).to_series()
        filled = elapsed.forward_fill()
        step = elapsed - filled.shift(1, fill_value=self._last_s).fill_null(self._last_s)
        self._last_s = float(filled[-1]) if len(filled) and filled[-1] is not None else self._last_s
        return step.set(step <= 0, None).alias("span_s")


def _groups(names: tuple[str, ...], headers: list[str]) -> tuple[wide.Group, ...]:
    """Return the devices; where a counter stands beside the power, both are read."""
    found: dict[str, tuple[str, list[Field]]] = {}
    for column, header in zip(names, headers, strict=True):
        for pattern, quantity, unit in ((_POWER, "power_w", "W"), (_COUNTER, "energy_counter_j", "J")):
            match = pattern.match(header)
            domain = rapl.domain(match[1], int(match[2] or 0)) if match else None
            if domain is not None:
                found.setdefault(domain.device, (domain.scope, []))[1].append(
                    Field(column, header, quantity, unit, required=True)
                )
        for pattern_text, (quantity, unit) in _OTHER.items():
            if match := re.match(pattern_text, header):
                found.setdefault(f"cpu:{match[1]}", ("package", []))[1].append(Field(column, header, quantity, unit))
    energies = {"power_w", "energy_counter_j"}
    if not any(f.quantity in energies for _, fs in found.values() for f in fs):
        return ()
    return tuple(
        wide.Group(Channel(d, s, kind="mean" if any(f.quantity == "power_w" for f in fs) else "counter"), tuple(fs), s, never_zero=False)
        for d, (s, fs) in found.items()
    )  # fmt: skip


def _read(
    block: Block,
    names: tuple[str, ...],
    groups: tuple[wide.Group, ...],
    time: Field,
    clock: relative.OfDay,
    spans: _Spans,
) -> Part:
    split = table.split(block, names, ",", quoted=b'"' in block.data)
    odd = split.odd.filter(~pl.col("raw").str.contains(_TRAILER.pattern))
    row = pl.col("raw").str.contains(",", literal=True)
    rule = pl.when(row).then(pl.lit("wrong-number-of-fields")).otherwise(pl.lit("foreign-line"))
    rejects = [damage.odd_lines(block, odd, rule)]
    raw = split.frame.filter(pl.col(time.column).str.strip_chars(' "') != time.header)
    raw, cut = damage.cut_last(block, raw, names, ",")
    rejects.append(cut)
    raw = raw.with_columns(clock.utc(raw[time.column]), spans.of(raw))
    fields = [f for g in groups for f in g.fields]
    raw, lost = table.timed(raw, fields, time)
    rejects.append(lost)
    readings, bad = wide.of_groups(raw, groups)
    return Part(lines=block.count, readings=readings, rejects=pl.concat([*rejects, bad]))


ADAPTER = Adapter(
    name="power-gadget",
    title="Intel Power Gadget CSV",
    yields="power and energy counters of package, cores, memory and graphics; temperature and clock",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
