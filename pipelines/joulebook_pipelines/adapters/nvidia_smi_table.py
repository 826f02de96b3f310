"""``nvidia-smi`` without options, in a loop: the drawn table, whole watts, each round under its own time or that of a collector.

``hl-smi`` of Habana's cards draws the same one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import boards, damage, local_time, nvidia_query, stamp_lines, stamps, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_TITLE = re.compile(r"^\| (?:NVIDIA-SMI|HL-SMI Version:)\s+(?:hl-)?([\d.]+)\S*\s.*\|")
_STAMP = re.compile(r"^([A-Z][a-z]{2} [A-Z][a-z]{2}\s+\d{1,2} \d\d:\d\d:\d\d \d{4})\s*$")
_CARD = re.compile(
    r"^\|\s+(\d+)\s+(\S.*?)\s+(?:On|Off|N/A)?\s*\|\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s"
)
_VALUES = re.compile(
    r"^\|\s*(\S+)\s+(\S+)\s+(\S+)\s+(\S+)\s*/\s*(\S+)\s*\|\s*(\S+)\s*/\s*(\S+)\s*\|\s*(\S+)\s+\S.*\|\s*$"
)
_FIELDS = (
    Field("fan", "Fan", "fan_ratio", "%"), Field("temp", "Temp", "temperature_c", "C"), Field("perf", "Perf", "performance_state"),
    Field("power", "Pwr:Usage", "power_w", "W", required=True), Field("cap", "Pwr:Cap", "power_limit_w", "W"),
    Field("used", "Memory-Usage", "memory_used_bytes", "MiB"), Field("load", "GPU-Util", "utilization_ratio", "%"),
)  # fmt: skip
_GROUPS = ("fan", "temp", "perf", "power", "cap", "used", None, "load")

_OF_TABLE = r"^\s*[|+]"
ABOVE_TITLE = 2
"""The time of a round stands this many lines above its title."""


def _sniff(head: Head) -> bool:
    # A script may print the table once above the rows of its query.
    lines = head.lines[:40]
    return any(map(_TITLE.match, lines)) and not any(map(nvidia_query.is_header, lines))


@dataclass(frozen=True)
class _Own:
    """The times that the tool prints above each table."""

    form: stamps.StampForm
    clock: local_time.Localiser

    @classmethod
    def find(cls, log: Log) -> _Own | None:
        """Return how they are written, ``None`` where there are none."""
        samples = [(n, m[1]) for n, line in enumerate(log.head.lines, 1) if (m := _STAMP.match(line))]
        if not samples:
            return None
        form = local_time.form(log, [s for _, s in samples[:50]])
        return cls(form, local_time.localiser(log, form, *samples[0]))


@dataclass
class _Reader:
    """Reads blocks; the last round of a block waits for the next, as it may go on there."""

    log: Log
    own: _Own | None
    collector: stamp_lines.StampLines | None = None
    stamp: str = ""
    waiting: pl.DataFrame | None = None
    seen: set[str] = field(default_factory=set)

    def read(self, block: Block | None) -> Part:
        """Return what a block says; ``None`` at the end of the file."""
        rejects, lines, count = [table.no_rejects()], self.waiting, 0
        if block is not None:
            count = block.count
            block, nul = damage.without_nul(block)
            rejects.append(nul)
            fresh = block.numbered()
            if not block.terminated and not block.lines[-1].rstrip().endswith(("|", "+")):
                rejects.append(table.whole_lines(fresh.tail(1), damage.CUT))
                fresh = fresh.head(fresh.height - 1)
            lines = fresh if lines is None else pl.concat([lines, fresh])
        if lines is None or lines.is_empty():
            return Part(lines=count, rejects=pl.concat(rejects))
        titles = lines.filter(pl.col("raw").str.contains(_TITLE.pattern))["line"]
        self.waiting = None
        if block is not None and len(titles):
            begin = self._begin(lines, int(titles[-1]))
            self.waiting, lines = lines.filter(pl.col("line") >= begin), lines.filter(pl.col("line") < begin)
        readings, more, channels = self._rounds(lines)
        return Part(count, readings, pl.concat([*rejects, *more]), channels=channels)

    def _rounds(self, lines: pl.DataFrame) -> tuple[pl.DataFrame, list[pl.DataFrame], tuple[Channel, ...]]:
        """Return readings, rejects and new channels of whole rounds."""
        text = pl.col("raw")
        title = text.str.contains(_TITLE.pattern)
        stamp, alone = text.str.extract(_STAMP.pattern, 1), pl.lit(value=True)
        if self.collector is not None:
            stamp, rest, _ = self.collector.split(text)
            alone = rest.str.strip_chars() == ""
        of_table = text.str.contains(_OF_TABLE)
        stamp = pl.when(~of_table & alone).then(stamp)
        card = [text.str.extract(_CARD.pattern, i).shift(1).alias(n) for i, n in ((1, "index"), (2, "model"))]
        lines = lines.with_columns(
            *card, round=title.cum_sum(), stamp=self._of_round(stamp, title),
            is_stamp=stamp.is_not_null(), is_card=text.str.contains(_CARD.pattern), values=text.str.extract_groups(_VALUES.pattern),
        ).with_columns(pl.col("stamp").forward_fill().fill_null(self.stamp))  # fmt: skip
        self.stamp = str(lines["stamp"][-1]) if lines.height else self.stamp
        has_values = pl.col("values").struct.field("1").is_not_null()
        odd = pl.col("index").is_not_null() & ~has_values
        strange = ~text.str.contains(r"^\s*[|+]") & (text.str.strip_chars() != "") & ~pl.col("is_stamp")
        rejects = [
            table.whole_lines(lines.filter(odd | (has_values & pl.col("index").is_null())), "not-a-card"),
            table.whole_lines(lines.filter(strange & ~odd), "tool-message"),
        ]
        rows = lines.filter(has_values & pl.col("index").is_not_null())
        names = [n for n in _GROUPS if n]
        cells = [pl.col("values").struct.field(str(i)).alias(n) for i, n in enumerate(_GROUPS, 1) if n]
        rows = rows.with_columns(*cells, device=pl.concat_str(pl.lit("gpu:"), "index")).select(
            "line", "device", "model", "stamp", *names
        )
        rows = rows.with_columns(self._utc(rows))
        rows, lost = table.timed(rows, _FIELDS, Field("stamp", "time", "ts_utc"))
        rejects.append(lost)
        values, bad = table.convert(rows, _FIELDS)
        values, judged = table.judge(values, rows, _FIELDS, "board")
        return table.kept(values.with_columns(rows["ts_utc"])), [*rejects, bad, judged], self._channels(rows)

    def _begin(self, lines: pl.DataFrame, title: int) -> int:
        """Return the line with which the round of a title begins: with its time, behind the table before it."""
        if self.own is not None:
            return title - ABOVE_TITLE
        border = title - 1
        before = lines.filter((pl.col("line") < border) & pl.col("raw").str.contains(_OF_TABLE))["line"]
        return int(before[-1]) + 1 if len(before) else int(lines["line"][0])

    def _of_round(self, stamp: pl.Expr, title: pl.Expr) -> pl.Expr:
        """Return the stamp of the round that begins in a line: the tool's at its place, a collector's between two tables."""
        if self.own is not None:
            return pl.when(title).then(stamp.shift(ABOVE_TITLE).fill_null(""))
        last = stamp.forward_fill().over(title.cum_sum())
        return pl.when(title).then(last.shift(1).fill_null(""))

    def _utc(self, rows: pl.DataFrame) -> pl.Series:
        if self.own is not None:
            return self.own.clock.utc(rows, stamps.parse(pl.col("stamp"), self.own.form))
        if self.collector is None:
            raise LogRefusedError(f"{self.log.name}: its tables stand under no time")
        return self.collector.utc(rows, pl.col("stamp"))

    def _channels(self, rows: pl.DataFrame) -> tuple[Channel, ...]:
        fresh = []
        for device, model in (
            rows.select("device", "model").unique("device", keep="first", maintain_order=True).iter_rows()
        ):
            if device not in self.seen:
                self.seen.add(device)
                window_s = self.log.options.window_s or boards.power_window_s(model, "power.draw")
                fresh.append(Channel(device, "board", model, "", "instant" if window_s is None else "mean", window_s))
        return tuple(fresh)


def _parse(log: Log) -> Iterator[Part]:
    own = _Own.find(log)
    collector = None if own else stamp_lines.find(log, re.compile(_OF_TABLE), of_day=True)
    if own is None and collector is None:
        raise LogRefusedError(
            f"{log.name}: its tables stand under no time, and without times there is no energy; log again with "
            "nvidia-smi --query-gpu=timestamp,index,power.draw --format=csv -l 1"
        )
    version = next((m[1] for line in log.head.lines if (m := _TITLE.match(line))), "")
    yield Part(tool_version=version, findings=(Finding(
        "whole-watts", Severity.NOTE, log.name,
        "The table prints whole watts: each reading is known to ±0.5 W, and the scatter of a steady load is that of the rounding.",
    ),))  # fmt: skip
    reader = _Reader(log, own, collector)
    for block in log.blocks():
        yield reader.read(block)
    yield reader.read(None)


ADAPTER = Adapter(
    name="nvidia-smi-table",
    title="nvidia-smi without options, looped",
    yields="board power in whole watts, limit, utilisation, memory, temperature and fan per card",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
