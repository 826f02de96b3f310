"""``nvidia-smi --query-gpu=… --format=csv``: any column order, with or without units, several cards interleaved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import polars as pl

from joulebook import rules
from joulebook_pipelines.logs import (
    boards,
    cells,
    damage,
    dialect,
    local_time,
    nvidia_cards,
    nvidia_doubts,
    nvidia_query,
    nvidia_sections,
    plain,
    plain_scan,
    stamps,
    table,
    ticks,
)
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Log, LogRefusedError, Part
from joulebook_pipelines.logs.nvidia_messages import Messages
from joulebook_pipelines.logs.table import Field


@dataclass
class _Reader:
    """State of one pass over a file: the layout in force, the clock, and which cards were seen."""

    log: Log
    layout: nvidia_query.Layout
    form: stamps.StampForm
    clock: local_time.Localiser
    cards: nvidia_cards.Cards
    models: dict[str, tuple[str, str]] = field(default_factory=dict)
    carried: pl.DataFrame | None = None
    driver: str = ""
    decimal: str = "."
    incomplete_ticks: int = 0
    scanner: plain.Scanner | None = None
    messages: Messages = field(default_factory=Messages)

    def read(self, block: Block, *, final: bool) -> Iterator[Part]:
        """Yield what a block says: plain rows the quick way, everything else with care."""
        for piece in self.scanner.read(block) if self.scanner else (block,):
            part = self._quick(piece) if isinstance(piece, plain.Rows) else None
            lines = piece.block if isinstance(piece, plain.Rows) else piece
            part = part or self._careful(lines, final=final)
            self.messages.add(part)
            yield part

    def _quick(self, rows: plain.Rows) -> Part | None:
        """Return the readings of plain rows; ``None`` where the devices, the clock or a physical rule want a second look."""
        layout = self.layout
        devices = self.cards.of_words(rows)
        states = {f.column: rows.word(f.column) for f in layout.fields if f.quantity in cells.TEXT_QUANTITIES}
        if devices is None or any(t.lower() in cells.MISSING for c in states for t in rows.occurring(c)):
            return None
        frame = rows.frame.with_columns(devices, self.clock.to_utc(rows.frame["ts_utc"]), *states.values())
        values = frame.select(
            "line", "device",
            *(cells.scaled(pl.col(f.column), f.quantity, f.unit).alias(f.quantity) for f in layout.fields), "ts_utc",
        )  # fmt: skip
        if values["ts_utc"].null_count() or rules.judge(values, "board")[1].height:
            return None
        return Part(lines=rows.frame.height, readings=values, channels=self._fresh_channels(rows, devices))

    def _fresh_channels(self, rows: plain.Rows, devices: pl.Series) -> tuple[Channel, ...]:
        if all(d in self.models for d in devices.unique()):
            return ()
        lines = (
            rows.first_lines(self.layout.key) if self.layout.key else {"": rows.block.data.split(b"\n", 1)[0].decode()}
        )
        seen = table.split(
            Block(1, "".join(f"{line}\n" for line in lines.values()).encode()), self.layout.names, ","
        ).frame
        return self._channels(self._with_device(seen, final=True)[0])

    def _careful(self, block: Block, *, final: bool) -> Part:
        raw, rejects = self._raw(block)
        if self.carried is not None:
            raw, self.carried = pl.concat([self.carried, raw]), None
        if raw.is_empty():
            return Part(lines=block.count, rejects=rejects)
        raw = raw.with_columns(self.clock.utc(raw, stamps.parse(pl.col(self.layout.time), self.form)))
        all_fields = (*self.layout.fields, *self.layout.others)
        stamp = Field(self.layout.time, self.layout.headers[self.layout.names.index(self.layout.time)], "ts_utc")
        raw, lost = table.timed(raw, all_fields, stamp)
        rejects = pl.concat([rejects, lost])
        raw, more = self._with_device(raw, final=final)
        rejects = pl.concat([rejects, more])
        readings, more = self._readings(raw)
        return Part(
            lines=block.count, readings=readings, rejects=pl.concat([rejects, more]), channels=self._channels(raw)
        )

    def _raw(self, block: Block) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the text cells of the block, and rejects of damage and foreign lines."""
        block, nul = damage.without_nul(block)
        split = table.split(block, self.layout.names, ",", quoted=b'"' in block.data)
        frame, odd = split.frame, split.odd
        if b"timestamp" in block.data:
            header = pl.col(self.layout.time).str.strip_chars(' "').str.to_lowercase() == "timestamp"
            frame = frame.filter(~header)
            odd = odd.filter(~pl.col("raw").str.strip_chars(' "').str.to_lowercase().str.starts_with("timestamp"))
        frame, cut = damage.cut_last(block, frame, self.layout.names, ",")
        row = pl.col("raw").str.contains(r"^\s*\"?\d{4}[/-]\d\d[/-]\d\d")
        rule = pl.when(row).then(pl.lit("wrong-number-of-fields")).otherwise(pl.lit("tool-message"))
        return frame, pl.concat([nul, damage.odd_lines(block, odd, rule), cut])

    def _with_device(self, raw: pl.DataFrame, *, final: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
        if self.layout.key is None and len(self.log.options.devices) > 1:
            return self._by_tick(raw, final=final)
        raw = self.cards.of_cells(raw)
        lost = raw.filter(pl.col("device").is_null())
        return raw.filter(pl.col("device").is_not_null()), self._lost_rows(lost, "no-such-device")

    def _by_tick(self, raw: pl.DataFrame, *, final: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
        assigned, open_lines = ticks.assign(raw["ts_utc"], self.log.options.devices, final=final)
        raw = raw.with_columns(assigned)
        if open_lines:
            self.carried = raw.tail(open_lines).drop("ts_utc", "device")
            raw = raw.head(raw.height - open_lines)
        short = raw.filter(pl.col("device").is_null())
        self.incomplete_ticks += short["ts_utc"].dt.truncate("100ms").n_unique() if short.height else 0
        return raw.filter(pl.col("device").is_not_null()), self._lost_rows(short, "incomplete-tick")

    def _lost_rows(self, rows: pl.DataFrame, rule: str) -> pl.DataFrame:
        if rows.is_empty():
            return table.no_rejects()
        line = rows.select("line", raw=pl.concat_str(self.layout.names, separator=","))
        return table.whole_lines(line, rule)

    def _readings(self, raw: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        values, rejects = table.convert(raw, self.layout.fields, decimal=self.decimal)
        values, judged = table.judge(values, raw, self.layout.fields, "board")
        values = values.with_columns(raw["ts_utc"])
        frames, all_rejects = [table.kept(values)], [rejects, judged]
        for other in self.layout.others:
            suffix = other.header.split(" [")[0].removeprefix("power.draw").strip(".") or "draw"
            renamed = raw.with_columns(device=pl.concat_str("device", pl.lit(f"/{suffix}")))
            extra, bad = table.convert(renamed, [other], decimal=self.decimal)
            extra, judged = table.judge(extra, renamed, [other], "board")
            frames.append(table.kept(extra.with_columns(raw["ts_utc"])))
            all_rejects += [bad, judged]
        return pl.concat(frames, how="diagonal"), pl.concat(all_rejects)

    def _channels(self, raw: pl.DataFrame) -> tuple[Channel, ...]:
        seen = raw.unique("device", keep="first", maintain_order=True)
        fresh = []
        for row in seen.iter_rows(named=True):  # one row per card, not per line
            device = row["device"]
            if device in self.models:
                continue
            model = (row[self.layout.model] or "").strip() if self.layout.model else ""
            uuid = (row[self.layout.uuid] or "").strip() if self.layout.uuid else ""
            self.models[device] = (model, uuid)
            self.driver = self.driver or ((row[self.layout.driver] or "").strip() if self.layout.driver else "")
            window_s = self.log.options.window_s or boards.power_window_s(model, self.layout.power or "")
            kind = "counter" if self.layout.counts else "instant" if window_s is None else "mean"
            fresh.append(Channel(device, "board", model, uuid, kind, window_s))
            for other in self.layout.others:
                suffix = other.header.split(" [")[0].removeprefix("power.draw").strip(".") or "draw"
                fresh.append(Channel(f"{device}/{suffix}", "part", model, uuid))
        return tuple(fresh)


def _parse(log: Log) -> Iterator[Part]:
    header_at = next((i for i, line in enumerate(log.head.lines[:200]) if nvidia_query.is_header(line)), None)
    layout = (
        nvidia_query.from_positions(log)
        if header_at is None
        else nvidia_query.from_header(log.head.lines[header_at], log.name)
    )
    first = 0 if header_at is None else header_at + 1
    sample = _sample(log.head.lines[first:], layout)
    samples = [r[layout.names.index(layout.time)] for r in sample]
    if not samples:
        raise LogRefusedError(f"{log.name}: has a header but no line with a time stamp: nothing was measured")
    form = local_time.form(log, [s.strip().strip('"') for s in samples])
    clock = local_time.localiser(log, form, first + 1, samples[0])
    reader = _made(log, layout, sample, form, clock)
    doubts = (
        *nvidia_doubts.about(log, reader.layout, header_at),
        *nvidia_doubts.about_cards(log, layout, reader.layout),
    )
    yield Part(lines=first, findings=doubts)
    previous: Block | None = None
    for block in nvidia_sections.behind(log.blocks(), first):
        for now, piece in nvidia_sections.pieces(block, layout, log.name):
            if previous is not None:
                yield from reader.read(previous, final=now is not layout)
            if now is not layout:
                yield Part(findings=(nvidia_sections.changed(log.name, piece.first_line, layout, now),))
                reader, layout = _continued(reader, now, piece), now
            previous = piece
    if previous is not None:
        yield from reader.read(previous, final=True)
    doubts = nvidia_doubts.afterwards(log, clock, incomplete_ticks=reader.incomplete_ticks)
    yield Part(
        findings=(*doubts, *reader.cards.findings(log.name), *reader.messages.findings(log.name)),
        tool_version=reader.driver,
    )


def _sample(lines: Sequence[str], layout: nvidia_query.Layout) -> list[list[str]]:
    """Return the cells of the first whole rows."""
    at = layout.names.index(layout.time)
    rows = [dialect.split_line(line, ",") for line in lines[:200]]
    return [
        r for r in rows if len(r) == len(layout.names) and re.match(r"\s*\"?(?:\d|[A-Z][a-z]{2} [A-Z][a-z]{2} )", r[at])
    ]


def _made(
    log: Log, layout: nvidia_query.Layout, sample: list[list[str]], form: stamps.StampForm, clock: local_time.Localiser
) -> _Reader:
    """Return the reader of a table under one header, after a look at its first rows."""
    layout, cards = nvidia_cards.settled(log, layout, sample)
    nvidia_cards.refuse_hidden(log, layout, form, sample)
    reader = _Reader(log, layout, form, clock, cards, decimal=nvidia_query.decimal_of(layout, sample))
    reader.scanner = _scanner(log, layout, form)
    return reader


def _continued(before: _Reader, layout: nvidia_query.Layout, piece: Block) -> _Reader:
    """Return the reader of the same file under another header; what was seen so far stays known."""
    sample, at, form = _sample(piece.lines, layout), layout.names.index(layout.time), before.form
    if sample:
        with suppress(stamps.StampError):
            form = stamps.detect([r[at].strip(' "') for r in sample], day_first=before.log.options.day_first)
    reader = _made(before.log, layout, sample, form, before.clock)
    reader.models, reader.messages, reader.driver = before.models, before.messages, before.driver
    reader.cards.numbers, reader.cards.bearers, reader.cards.moved = (
        before.cards.numbers,
        before.cards.bearers,
        before.cards.moved,
    )
    reader.incomplete_ticks = before.incomplete_ticks
    return reader


def _scanner(log: Log, layout: nvidia_query.Layout, form: stamps.StampForm) -> plain.Scanner | None:
    """Return what reads the plain rows of a file; ``None`` where each row needs its neighbours or has two powers."""
    if layout.others or layout.host or not form.fixed or (layout.key is None and len(log.options.devices) > 1):
        return None
    known = {f.column: f for f in layout.fields}
    cells_ = []
    for name in layout.names:
        if name == layout.time:
            cells_.append(plain.Cell("ts_utc", plain_scan.STAMP))
        elif name in known and known[name].quantity not in cells.TEXT_QUANTITIES:
            cells_.append(plain.Cell(name, plain_scan.NUMBER, known[name].unit))
        else:
            cells_.append(
                plain.Cell(name, plain_scan.WORD if name in {layout.key, layout.uuid, *known} else plain_scan.SKIPPED)
            )
    return plain.Scanner(cells_, ",", form)


ADAPTER = Adapter(
    name="nvidia-smi-csv",
    title="nvidia-smi --query-gpu … --format=csv",
    yields="board power, limit, utilisation, memory, temperature and clocks per card",
    sniff=nvidia_query.sniff,
    parse=_parse,
    needs_zone=True,
    appendable=True,
)
