"""The rows of a meter's table as readings and rejects, block by block, once it is known how to read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from joulebook import rules
from joulebook.findings import Finding
from joulebook_pipelines.logs import (
    cells,
    damage,
    device_places,
    meter_checks,
    meter_form,
    meter_long,
    meter_oddities,
    meter_table,
    meter_vocabulary,
    midnight,
    relative,
    rows,
    table,
)
from joulebook_pipelines.logs.contract import Block, Channel, Log, Part
from joulebook_pipelines.logs.meter_columns import Group
from joulebook_pipelines.logs.meter_form import Understood
from joulebook_pipelines.logs.table import Field

_CARD = r"(?i)^gpu[ _#:-]?(\d+)$"


def parts(log: Log) -> Iterator[Part]:
    """Yield what a table of readings says, from its header to what only shows when all rows are read."""
    found = meter_table.understand(log)
    reader = Reader(log, found, meter_checks.of(log.name, found.layout))
    yield Part(lines=found.dialect.first_line - 1, channels=reader.named(), findings=found.findings)
    for block in rows.below(log.blocks(), found.dialect.first_line - 1):
        yield reader.read(block)
    yield Part(findings=reader.afterwards())


@dataclass
class Reader:
    """State of one pass over a file."""

    log: Log
    found: Understood
    checks: meter_checks.Checks
    of_records: bool = False
    seen: set[str] = field(default_factory=set)
    days: midnight.Days = field(default_factory=midnight.Days)
    headers: meter_oddities.Headers = field(init=False)

    def __post_init__(self) -> None:
        """Learn the header by which others inside the table are known."""
        written = self.found.dialect
        self.headers = meter_oddities.Headers(written.names, written.titles, self.found.layout.time[0])

    @property
    def stamp(self) -> Field:
        """The column of the stamp, as rejects show it."""
        titles = self.found.dialect.titles
        columns = [*self.found.layout.time, self.found.layout.end]
        places = [self.found.dialect.names.index(c) for c in columns if c is not None]
        return Field("stamp", " ".join(titles[i] or f"column {i + 1}" for i in places), "ts_utc")

    def read(self, block: Block) -> Part:
        """Return what a block says: the quick way where nothing in it is odd, else with care."""
        return self.checks.see(self._quick(block) or self._careful(block))

    def rows(self, raw: pl.DataFrame, rejects: pl.DataFrame, lines: int) -> Part:
        """Return what rows of text cells (``line`` and the columns of the table) say, however they came to be; null is no cell at all."""
        part = self._judged_rows(raw, rejects, lines)
        if part.readings is not None and not raw["line"].is_unique().all():  # of a document in one line
            part = replace(part, readings=part.readings.sort("line", "ts_utc", maintain_order=True))
        return self.checks.see(part)

    def named(self) -> tuple[Channel, ...]:
        """Return the devices that the titles name, to be told before the first row."""
        groups = [g for g in self.found.layout.groups if g.device]
        channels = tuple(_channel(self.log, self.found, g.device, g.scope, g.fields) for g in groups)
        self.seen.update(c.device for c in channels)
        return channels

    def afterwards(self) -> tuple[Finding, ...]:
        """Return what only shows when all rows are read."""
        name = self.log.name
        late = relative.repeated_hour(self.log, self.found.clock)
        return (*self.headers.findings(name), *self.checks.findings(), *late)

    def _quick(self, block: Block) -> Part | None:
        """Read a block of bare numbers with a typed reader; ``None`` as soon as anything needs a second look."""
        found, layout = self.found, self.found.layout
        numbers = [f.column for f in layout.fields]
        texts = any(f.quantity in cells.TEXT_QUANTITIES for f in layout.fields)
        if (
            found.decimal != "."
            or layout.device
            or layout.value
            or texts
            or not block.terminated
            or found.dialect.quoted
            or self.headers.foreign
        ):
            return None
        schema = {n: pl.Float64 if n in numbers else pl.String for n in found.dialect.names}
        frame = table.split_regular(block, found.dialect.names, found.separator, schema)
        if frame is None or not all(frame[c].is_finite().all(ignore_nulls=False) for c in numbers):
            return None
        frame = self._timed(frame)
        if frame["ts_utc"].null_count() or any(bool((frame[c].abs() >= cells.OVER_RANGE).any()) for c in numbers):
            return None
        readings = []
        for group in layout.groups:
            values = frame.select(
                "line", pl.lit(group.device).alias("device"),
                *(cells.scaled(pl.col(f.column), f.quantity, f.unit).alias(f.quantity) for f in group.fields),
                "ts_utc", "span_s",
            )  # fmt: skip
            values = self._signed(values)
            if rules.judge(values, group.judged or _judged(group.scope))[1].height:
                return None
            readings.append(values)
        return Part(lines=block.count, readings=_together(readings))

    def _careful(self, block: Block) -> Part:
        raw, rejects = self._raw(block)
        return self._judged_rows(raw, rejects, block.count)

    def _judged_rows(self, raw: pl.DataFrame, rejects: pl.DataFrame, lines: int) -> Part:
        """Return what rows of text cells say."""
        found, layout = self.found, self.found.layout
        if raw.is_empty():
            return Part(lines=lines, rejects=rejects)
        timed = self._timed(raw)
        fields = [Field(layout.value, self._title(layout.value), "value")] if layout.value else list(layout.fields)
        timed, lost = table.timed(timed, fields, self.stamp)
        rejects = pl.concat([rejects, lost])
        if layout.value and layout.unit:
            readings, more, channels = meter_long.readings(timed, found, self.log.options, self._title(layout.value))
        else:
            readings, more, channels = self._wide(timed)
        fresh = tuple(c for c in channels if c.device not in self.seen)
        self.seen.update(c.device for c in fresh)
        return Part(lines=lines, readings=readings, rejects=pl.concat([rejects, more]), channels=fresh)

    def _title(self, column: str | None) -> str:
        names = self.found.dialect.names
        return self.found.dialect.titles[names.index(column)] if column in names else ""

    def _wide(self, timed: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, tuple[Channel, ...]]:
        frames, all_rejects, channels = [], [], []
        for group in self.found.layout.groups:
            raw, scope = self._named(self._having(timed, group), group)
            of_names = self._of_names(raw, group)
            raw = raw.with_columns(pl.col("device").replace({t: d for t, (d, _) in of_names.items()}))
            scopes = dict(of_names.values())
            values, rejects = table.convert(raw, group.fields, decimal=self.found.decimal)
            values = self._signed(values).with_columns(raw["ts_utc"], raw["span_s"])
            values, judged = table.judge(values, raw, group.fields, group.judged or _judged(scope))
            frames.append(table.kept(values))
            all_rejects += [rejects, judged]
            devices = raw["device"].unique(maintain_order=True).to_list() if not group.device else [group.device]
            channels += [_channel(self.log, self.found, d, scopes.get(d, scope), group.fields) for d in devices]
        return _together(frames), pl.concat(all_rejects), tuple(channels)

    def _having(self, timed: pl.DataFrame, group: Group) -> pl.DataFrame:
        """Return the rows that have a cell for the group: records tell of one device and not of another."""
        if not self.of_records:
            return timed
        return timed.filter(pl.any_horizontal(pl.col(f.column).is_not_null() for f in group.fields))

    def _named(self, timed: pl.DataFrame, group: Group) -> tuple[pl.DataFrame, str]:
        """Give the rows the device of the group, or each its own."""
        column = self.found.layout.device
        if group.device or column is None:
            return timed.with_columns(device=pl.lit(group.device)), group.scope
        cards = (
            self.found.layout.cards
            or group.scope == "board"
            or self._title(column).casefold().startswith(("gpu", *meter_vocabulary.CARDS))
        )
        text = pl.col(column).fill_null("").str.strip_chars(' "')
        numbered = pl.concat_str(pl.lit("gpu:" if cards else "meter:"), text)
        default = device_places.MAIN_DEVICE.get(group.scope, "meter")
        named = (
            pl.when(text.str.contains(r"^\d+$")).then(numbered)
            .when(text.str.contains(_CARD)).then(text.str.replace(_CARD, "gpu:${1}"))
            .when(text == "").then(pl.lit(default)).otherwise(text.str.head(80))
        )  # fmt: skip
        if self.found.layout.host is not None:
            named = pl.concat_str(
                named, pl.lit("@"), pl.col(self.found.layout.host).str.strip_chars(' "'), ignore_nulls=True
            )
        return timed.with_columns(device=named), group.scope or ("board" if cards else "")

    def _of_names(self, raw: pl.DataFrame, group: Group) -> dict[str, tuple[str, str]]:
        """Return device and scope of the rows that name a part of the machine, so that a part is not added to its whole."""
        if group.device or self.found.layout.host is not None or self.log.options.scope is not None:
            return {}
        named = {
            t: meter_long.device_of(t, self.log.options) for t in raw["device"].unique(maintain_order=True).drop_nulls()
        }
        known = {t: n for t, n in named.items() if t and n[1] in device_places.BY_HEADER and n[0] != t}
        # Two sensors that would share a name keep their own.
        taken = [d for d, _ in named.values()]
        return {t: (t if taken.count(d) > 1 else d, s) for t, (d, s) in known.items()}

    def _signed(self, values: pl.DataFrame) -> pl.DataFrame:
        if self.log.options.sign == 1 or "power_w" not in values.columns:
            return values
        return values.with_columns(power_w=pl.col("power_w") * self.log.options.sign)

    def _raw(self, block: Block) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the cells of the block, and rejects of damage and foreign lines."""
        found = self.found
        block, nul = damage.without_nul(block)
        rejects = [nul]
        ready = meter_form.prepared(block, found.dialect)
        split = table.split(ready, found.dialect.names, found.separator, quoted=b'"' in block.data)
        cells_ = _without_blank_rows(split.frame, found.layout.time[0])
        frame, odd = meter_form.plain_cells(cells_), split.odd
        if self.headers.foreign or (self.headers.title and self.headers.title.encode() in block.data):
            frame, others = self.headers.split(frame)
            rejects.append(others)
        odd = odd.filter(~pl.col("raw").str.contains(r"^\s*#"))
        frame, cut = damage.cut_last(block, frame, found.dialect.names, found.separator)
        row = pl.col("raw").str.contains(r"^\s*\"?\d")
        rule = pl.when(row).then(pl.lit("wrong-number-of-fields")).otherwise(pl.lit("foreign-line"))
        return frame, pl.concat([*rejects, cut, damage.odd_lines(block, odd, rule)])

    def _timed(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Add ``stamp`` (text), ``ts_utc`` (end of the span where there is one) and ``span_s``."""
        found, options = self.found, self.log.options
        text = meter_form.stamp_text(raw, found.layout)
        naive = meter_form.naive_stamps(text, found, options.date)
        if found.clock_only:
            naive = self.days.over(naive)
        raw = raw.with_columns(text, found.clock.to_utc(naive).alias("ts_utc"), span_s=pl.lit(None, pl.Float64))
        if found.layout.end is not None:
            ends = raw.select(pl.col(found.layout.end).fill_null("").str.strip_chars(' "').alias("stamp")).to_series()
            end = found.clock.to_utc(meter_form.naive_stamps(ends, found, options.date))
            raw = raw.with_columns(ts_utc=end, span_s=(end - raw["ts_utc"]).dt.total_microseconds() / 1e6)
            both = pl.concat_str("stamp", pl.lit(" "), ends)
            return raw.with_columns(pl.when(pl.col("span_s") > 0).then("ts_utc").alias("ts_utc"), stamp=both)
        if found.calendar:
            end = found.clock.to_utc(naive.dt.offset_by(found.calendar))
            return raw.with_columns(ts_utc=end, span_s=(end - raw["ts_utc"]).dt.total_microseconds() / 1e6)
        if found.span_s is not None:
            raw = raw.with_columns(span_s=pl.lit(found.span_s))
            if found.label == "start":
                raw = raw.with_columns(ts_utc=pl.col("ts_utc") + pl.duration(microseconds=round(found.span_s * 1e6)))
        return raw


def _without_blank_rows(frame: pl.DataFrame, time: str) -> pl.DataFrame:
    """Leave out rows that hold nothing: separators alone, as spreadsheets write them, or a line of dashes below the titles."""
    blank = r'^[-:=\s"]*$'
    if not frame[time].fill_null("").str.contains(blank).any():
        return frame
    return frame.filter(
        pl.any_horizontal([~pl.col(c).fill_null("").str.contains(blank) for c in frame.columns if c != "line"])
    )


def _judged(scope: str) -> str:
    """Return the scope whose rules apply: where none is known, only what no site can draw is impossible."""
    return scope or "facility"


def _together(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    if len(frames) == 1:
        return frames[0]
    return pl.concat(frames, how="diagonal").sort("line", maintain_order=True)


def _channel(log: Log, found: Understood, device: str, scope: str, fields: Sequence[Field]) -> Channel:
    quantities = {f.quantity for f in fields}
    if "energy_j" in quantities:
        kind = "energy"
    elif "energy_counter_j" in quantities and "power_w" not in quantities:
        kind = "counter"
    else:
        spans = found.months or found.span_s is not None or found.layout.end is not None
        kind = log.options.kind or ("mean" if spans or log.options.window_s else "instant")
    return Channel(device, scope, kind=kind, window_s=log.options.window_s)
