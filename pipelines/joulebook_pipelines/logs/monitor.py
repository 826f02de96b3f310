"""Monitors that print a blank-separated table round by round: stamps in columns, or set in front or between by a collector."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import (
    cells,
    damage,
    hash_table,
    local_time,
    midnight,
    stamp_lines,
    stamps,
    table,
    untimed,
)
from joulebook_pipelines.logs.contract import Block, Channel, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_COLUMN_STAMP = stamps.StampForm("%Y%m%d %H:%M:%S", aware=False)


@dataclass(frozen=True)
class Dialect:
    """What a monitor prints.

    Parameters
    ----------
    quantities
        Quantity and unit of each column that is understood.
    cure
        What to do where the file has no times.
    gpu
        Column of the card.
    join_entity
        ``GPU 0`` is one cell of two words.
    process
        Column of the process, where a line is about one; the last column is then its command.
    units_in_header
        The line below the names is complete: a unit under each name.
    """

    quantities: Mapping[str, tuple[str, str]]
    cure: str
    gpu: str = "gpu"
    join_entity: bool = False
    process: str | None = None
    units_in_header: bool = True


@dataclass
class _Reader:
    log: Log
    dialect: Dialect
    splitter: hash_table.Splitter
    clock: local_time.Localiser
    collector: stamp_lines.StampLines | None
    between: bool
    columns: frozenset[str]
    first_name: str
    last_stamp: str | None = None
    days: midnight.Days = field(default_factory=midnight.Days)
    steps: untimed.Steps | None = None
    seen: dict[str, Channel] = field(default_factory=dict)

    def read(self, block: Block) -> Part:
        """Return what a block says."""
        block, nul = damage.without_nul(block)
        lines, cut = self._lines(block)
        rejects = [nul, cut]
        frames, channels = [], []
        for header, raw in self.splitter.split(lines):
            if raw.odd.height:
                row = pl.col("whole").str.contains(r"^\s*[\d\[]|^\s*GPU")
                rule = pl.when(row).then(pl.lit("wrong-number-of-fields")).otherwise(pl.lit("tool-message"))
                rejects.append(table.whole_lines(raw.odd.select("line", "whole", raw="whole"), rule))
            readings, more, fresh = self._table(header, raw.frame)
            frames.append(readings)
            rejects.append(more)
            channels += fresh
        merged = pl.concat(frames, how="diagonal").sort("line", maintain_order=True) if frames else None
        return Part(block.count, merged, pl.concat(rejects), channels=tuple(channels))

    def _lines(self, block: Block) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the table's lines with the collector's stamp, and a last line that was cut."""
        lines = block.numbered()
        cut = table.no_rejects()
        if not block.terminated and lines.height > 1:
            last, before = lines.tail(1), lines.head(lines.height - 1)
            usual = (
                before.filter(~pl.col("raw").str.strip_chars_start().str.starts_with("#"))["raw"]
                .str.len_chars()
                .tail(50)
            )
            if len(usual) and len(last["raw"][0].rstrip()) < int(str(usual.min() or 0)):
                lines, cut = before, table.whole_lines(last, damage.CUT)
        lines = lines.with_columns(stamp=pl.lit(None, pl.String), whole="raw")
        if self.collector is not None:
            stamp, rest, _ = self.collector.split(pl.col("raw"))
            # The sign of a header line behind a stamp belongs to the header.
            named = pl.col("raw").str.contains("#", literal=True) & rest.str.to_lowercase().str.starts_with(
                self.first_name
            )
            rest = pl.when(named).then(pl.lit("#") + rest).otherwise(rest)
            if not self.between:
                lines = lines.with_columns(stamp=stamp, raw=rest)
            else:
                own = lines.select(stamp.is_not_null() & (rest.str.strip_chars() == "")).to_series()
                lines = lines.with_columns(stamp=pl.when(own).then(stamp), _own=own)
                lines = lines.with_columns(pl.col("stamp").forward_fill().fill_null(pl.lit(self.last_stamp, pl.String)))
                self.last_stamp = lines["stamp"][-1] if lines.height else self.last_stamp
                lines = lines.filter(~pl.col("_own")).drop("_own")
        lines = lines.filter(pl.col("raw").str.strip_chars() != "")
        if self.dialect.join_entity:
            lines = lines.with_columns(pl.col("raw").str.replace(r"^\s*([A-Za-z][\w-]*)\s+(\d[\d/]*)", "${1}:${2}"))
        return lines, cut

    def _table(self, header: hash_table.Header, raw: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, list[Channel]]:
        fields = self._fields(header)
        places = {n: f"c{i}" for i, n in enumerate(header.names)}
        raw = raw.with_columns(self._utc(raw, places).alias("ts_utc"), device=self._device(places))
        rejects = []
        lost = raw.filter(pl.col("ts_utc").is_null())
        if lost.height:
            stamp = "stamp" if self.collector else places.get("time", "raw")
            text = lost.with_columns(_stamp=pl.col(stamp).fill_null(""), device=pl.lit(None, pl.String))
            rejects.append(table.without_time(text, fields, Field("_stamp", "time", "ts_utc")))
            raw = raw.filter(pl.col("ts_utc").is_not_null())
        nameless = raw.filter(pl.col("device").is_null())
        if nameless.height:
            rule = pl.lit("no-such-device")
            if self.dialect.process in places:
                idle = pl.col(places[self.dialect.process]) == "-"
                rule = pl.when(idle).then(pl.lit("no-process")).otherwise(rule)
            rejects.append(table.whole_lines(nameless.with_columns(raw="whole"), rule))
            raw = raw.filter(pl.col("device").is_not_null())
        if self.between:
            twice = raw.select(pl.int_range(pl.len()).over("stamp", "device") > 0).to_series()
            rejects.append(table.whole_lines(raw.filter(twice).with_columns(raw="whole"), "second-under-one-stamp"))
            raw = raw.filter(~twice)
        scope = "part" if self.dialect.process else "board"
        values, bad = table.convert(raw, fields)
        values, judged = table.judge(values, raw, fields, scope)
        values, dead = _without_dead_counter(values, raw, fields)
        readings = table.kept(values.with_columns(raw["ts_utc"]))
        return readings, pl.concat([*rejects, bad, judged, dead]), self._channels(raw, places, scope)

    def _fields(self, header: hash_table.Header) -> list[Field]:
        made: list[Field] = []
        for i, (name, unit) in enumerate(zip(header.names, header.units, strict=True)):
            if name in self.dialect.quantities:
                quantity, usual = self.dialect.quantities[name]
                told = unit if self.dialect.units_in_header and cells.factor(quantity, unit) is not None else usual
                if quantity == "memory_used_bytes":
                    told = usual  # the monitors write MB for MiB
                if all(f.quantity != quantity for f in made):
                    made.append(Field(f"c{i}", name, quantity, told, required=quantity == "power_w"))
        return made

    def _utc(self, raw: pl.DataFrame, places: Mapping[str, str]) -> pl.Series:
        if self.collector is not None:
            return self.collector.utc(raw, pl.col("stamp"))
        if self.steps is not None and self.dialect.gpu in places:
            return self.steps.of_rounds(raw[places[self.dialect.gpu]])
        if self.steps is not None or "time" not in places or not self.columns <= set(places):
            return pl.Series("ts_utc", [None] * raw.height, dtype=pl.Datetime("us", "UTC"))
        time = pl.col(places["time"])
        if "date" in places:
            text = pl.concat_str(pl.col(places["date"]), time, separator=" ")
            return self.clock.utc(raw, stamps.parse(text, _COLUMN_STAMP))
        text = pl.concat_str(pl.lit((self.log.options.date or "").replace("-", "") + " "), time)
        naive = raw.select(stamps.parse(text, _COLUMN_STAMP).alias("ts_utc")).to_series()
        return self.clock.to_utc(self.days.over(naive))

    def _device(self, places: Mapping[str, str]) -> pl.Expr:
        if self.dialect.gpu not in places or (self.dialect.process or self.dialect.gpu) not in places:
            return pl.lit(None, pl.String)
        text = pl.col(places[self.dialect.gpu])
        if self.dialect.join_entity:
            return pl.when(text.str.contains(r"^GPU:\d+$")).then(text.str.to_lowercase())
        gpu = pl.when(text.str.contains(r"^\d+$")).then(pl.concat_str(pl.lit("gpu:"), text))
        if self.dialect.process:
            pid = pl.col(places[self.dialect.process])
            return pl.when(pid.str.contains(r"^\d+$")).then(pl.concat_str(gpu, pl.lit("/pid:"), pid))
        return gpu

    def _channels(self, raw: pl.DataFrame, places: Mapping[str, str], scope: str) -> list[Channel]:
        fresh = []
        for row in raw.unique("device", keep="first", maintain_order=True).iter_rows(named=True):  # one row per device
            device = row["device"]
            if device not in self.seen:
                model = (
                    (row[max(places.values(), key=lambda c: int(c[1:]))] or "").strip() if self.dialect.process else ""
                )
                window_s = None if scope == "part" or self.steps else self.log.options.window_s
                kind = "instant" if window_s is None else "mean"
                self.seen[device] = Channel(device, scope, model, kind=kind, window_s=window_s)
                fresh.append(self.seen[device])
        return fresh


def _without_dead_counter(
    values: pl.DataFrame, raw: pl.DataFrame, fields: list[Field]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Take out counters that read 0: a board that has one has used energy since its driver came up."""
    counter = next((f for f in fields if f.quantity == "energy_counter_j"), None)
    if counter is None:
        return values, table.no_rejects()
    dead = (values["energy_counter_j"] == 0).fill_null(value=False)
    values = values.with_columns(pl.when(~dead).then("energy_counter_j").alias("energy_counter_j"))
    return values, table.cell_rejects(raw.filter(dead), counter, pl.lit("zero-counter"))


def parse(log: Log, dialect: Dialect, findings: tuple[Finding, ...] = ()) -> Iterator[Part]:
    """Yield what a monitor's log says.

    Raises
    ------
    LogRefusedError
        It has no times, or its times need a zone or a date that nobody says.
    """
    stripped = [
        re.sub(r"^[^#]*#", "#", line) if "#" in line else re.sub(r"^.*?\s(?=ID\s)", "", line) for line in log.head.lines
    ]
    start = hash_table.first(stripped)
    if start is None:
        raise LogRefusedError(f"{log.name}: the table has no header line that names its columns; {dialect.cure}")
    columns, collector, clock = _timing(log, dialect, start.names)
    if not any(
        h in dialect.quantities and dialect.quantities[h][0] in {"power_w", "energy_counter_j"} for h in start.names
    ):
        findings = (*findings, Finding(
            "no-power-column", Severity.WARNING, log.name,
            "The log has no column of power: it says nothing about energy. Utilisation and memory are read.",
            {"columns": list(start.names)},
        ))  # fmt: skip
    yield Part(findings=findings)
    steps = untimed.Steps(log) if collector is None and "time" not in columns else None
    reader = _Reader(
        log, dialect, hash_table.Splitter(start, rest_in_last=dialect.process is not None), clock, collector,
        collector is not None and _stands_alone(log, collector), columns, start.names[0], steps=steps,
    )  # fmt: skip
    for block in log.blocks():
        yield reader.read(block)
    if steps is not None:
        yield Part(findings=steps.findings)


def _timing(
    log: Log, dialect: Dialect, names: Sequence[str]
) -> tuple[frozenset[str], stamp_lines.StampLines | None, local_time.Localiser]:
    """Return the columns that hold times, what reads stamps between the rounds, and the clock.

    Raises
    ------
    LogRefusedError
        There are no times, or they need a zone or a date that nobody says.
    """
    columns = frozenset({"date", "time"} & set(names))
    collector, clock = None, local_time.Localiser(None)
    if "time" in columns:
        if "date" not in columns and log.options.date is None:
            raise LogRefusedError(
                f"{log.name}: its lines carry a time of day without a date; add date = 2026-03-02 (the day of its first line) "
                "to this [[source]], or log again with -o DT"
            )
        first, sample = next(
            ((n, line) for n, line in enumerate(log.head.lines, 1) if line.strip() and "#" not in line), (1, "")
        )
        clock = local_time.localiser(log, _COLUMN_STAMP, first, " ".join(sample.split()[: len(columns)]))
    else:
        collector = stamp_lines.find(log, re.compile(r"^\s*#(?!\d)|^\s*$"))
        if collector is None and (log.options.distance_s is None or dialect.process):
            known = "" if dialect.process else "; or add period_s = (seconds from round to round) to this [[source]]"
            raise LogRefusedError(
                f"{log.name}: its lines carry no time, and without times there is no energy; {dialect.cure}{known}"
            )
    return columns, collector, clock


def _stands_alone(log: Log, collector: stamp_lines.StampLines) -> bool:
    """Tell whether the collector's stamps have lines of their own."""
    frame = pl.DataFrame({"raw": log.head.lines})
    stamp, rest, _ = collector.split(pl.col("raw"))
    own = frame.select(own=stamp.is_not_null() & (rest.str.strip_chars() == ""), front=stamp.is_not_null())
    return int(own["own"].sum()) * 2 > int(own["front"].sum())


__all__ = ["Dialect", "parse"]
