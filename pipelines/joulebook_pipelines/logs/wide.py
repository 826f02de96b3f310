"""Tables whose columns each belong to a known quantity of a known device: read in blocks, quickly where nothing is odd."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from joulebook import rules
from joulebook_pipelines.logs import cells, damage, local_time, plain, plain_scan, rows, stamps, table
from joulebook_pipelines.logs.contract import Block, Channel, Log, Part
from joulebook_pipelines.logs.table import Field

LARGER = 2
"""Times the usual size of a block, for several devices: more whole row groups each, which two threads write side by side."""

Naive = Callable[[pl.Expr], pl.Expr]
"""Turns the text of stamps into naive datetimes."""


@dataclass(frozen=True)
class Group:
    """The columns that speak of one device.

    Parameters
    ----------
    fields
        At most one per quantity.
    judged
        Scope whose physical rules apply.
    never_zero
        Whether 0 W is impossible; by default as the scope says.
    """

    channel: Channel
    fields: tuple[Field, ...]
    judged: str
    never_zero: bool | None = None


@dataclass(frozen=True)
class Sheet:
    """How the rows of a file are to be read.

    Parameters
    ----------
    names
        Names of the raw columns, one per cell of a row.
    time
        Column of the stamp.
    naive, clock
        Turn stamps into UTC.
    first_row
        Physical line of the first row; what stands before it is skipped.
    labels
        Columns that hold the same word in every row; a row with another word is no row.
    unmeasured
        By quantity, the numbers that stand for "not measured", and the rule that they break.
    beyond
        By quantity, the number [unit of the file] from which on a cell is an error of the tool, and the rule.
    time_unit_us
        For stamps that are plain numbers: microseconds per unit, so that they need not go through text.
    form
        How the stamps are written; where the digits stand at fixed places they need not go through text either.
    span_s
        Length of the span of each reading [s]; ``None`` for instants and counters.
    trailer
        Lines that are neither rows nor damage.
    scale
        What every power is multiplied by.
    """

    names: tuple[str, ...]
    separator: str
    time: Field
    groups: tuple[Group, ...]
    naive: Naive
    clock: local_time.Localiser
    first_row: int = 2
    labels: Mapping[str, str] = field(default_factory=dict)
    unmeasured: Mapping[str, tuple[tuple[float, ...], str]] = field(default_factory=dict)
    beyond: Mapping[str, tuple[float, str]] = field(default_factory=dict)
    time_unit_us: float | None = None
    form: stamps.StampForm | None = None
    span_s: float | None = None
    trailer: str | None = None
    scale: int = 1

    @property
    def fields(self) -> tuple[Field, ...]:
        """All columns that are read, besides the stamp."""
        return tuple(f for g in self.groups for f in g.fields)


class Reader:
    """One pass over a file.

    Parameters
    ----------
    choose
        Splits the timed rows of a block into those that are read and the rejects of the others.
    watch
        Is shown the rows of each block that are read.
    also_numbers, also_words
        Further columns that ``choose`` and ``watch`` need.
    """

    def __init__(
        self,
        log: Log,
        sheet: Sheet,
        *,
        choose: Callable[[pl.DataFrame], tuple[pl.DataFrame, pl.DataFrame]] | None = None,
        watch: Callable[[pl.DataFrame], None] | None = None,
        also_numbers: tuple[str, ...] = (),
        also_words: tuple[str, ...] = (),
    ) -> None:
        self._log, self._sheet, self._choose, self._watch = log, sheet, choose, watch
        self._scanner = _scanner(sheet, set(also_numbers), set(also_words))

    def parts(self) -> Iterator[Part]:
        """Yield the channels, then what each block says."""
        yield Part(lines=self._sheet.first_row - 1, channels=tuple(g.channel for g in self._sheet.groups))
        blocks = self._log.blocks(LARGER if len(self._sheet.groups) > 1 else 1)
        for block in rows.below(blocks, self._sheet.first_row - 1):
            for piece in self._scanner.read(block) if self._scanner else (block,):
                if isinstance(piece, Block):
                    yield self._careful(piece)
                else:
                    yield self._quick(piece) or self._careful(piece.block)

    def _quick(self, plain_rows: plain.Rows) -> Part | None:
        """Return the readings of plain rows; ``None`` as soon as anything needs a second look."""
        frame = self._timed(plain_rows.frame.with_columns(plain_rows.word(c) for c in plain_rows.words))
        if any(bool((frame[f.column].abs() >= self._limit(f)).any()) for f in self._sheet.fields):
            return None
        if frame["ts_utc"].null_count():
            return None
        frame, rejects = self._chosen(frame)
        readings = []
        for group in self._sheet.groups:
            values, absent = self._typed(frame, group)
            if values is None or rules.judge(values, group.judged, never_zero=group.never_zero)[1].height:
                return None
            readings.append(values)
            rejects = pl.concat([rejects, absent])
        if self._watch is not None:
            self._watch(frame)
        lines, rejected = plain_rows.frame.height, rejects if rejects.height else None
        if len(readings) > 1 and len({tuple(r.schema.items()) for r in readings}) == 1:
            # Device by device: so they take less time and half the room in the store.
            return Part(
                lines=lines, readings=pl.concat(readings, rechunk=True), devices=len(readings), rejects=rejected
            )
        return Part(lines=lines, readings=rows.together(readings), rejects=rejected)

    def _limit(self, f: Field) -> float:
        return self._sheet.beyond.get(f.quantity, (cells.OVER_RANGE, ""))[0]

    def _typed(self, frame: pl.DataFrame, group: Group) -> tuple[pl.DataFrame | None, pl.DataFrame]:
        """Return one device's readings, and the cells of columns that say "not measured" from end to end."""
        kept, rejects = [], table.no_rejects()
        for f in group.fields:
            filler = self._sheet.unmeasured.get(f.quantity)
            absent = frame[f.column].is_in(filler[0]) if filler else None
            if filler is None or absent is None or not absent.any():
                kept.append(cells.scaled(pl.col(f.column), f.quantity, f.unit).alias(f.quantity))
            elif not f.required and frame[f.column].min() == frame[f.column].max():
                word = f"{frame[f.column][0]:f}"
                shown = frame.select("line", pl.lit(group.channel.device).alias("device"), pl.lit(word).alias(f.column))
                rejects = pl.concat([rejects, table.cell_rejects(shown, f, pl.lit(filler[1]))])
            else:
                return None, rejects
        values = frame.select("line", pl.lit(group.channel.device).alias("device"), *kept, "ts_utc", "span_s")
        return self._signed(values), rejects

    def _careful(self, block: Block) -> Part:
        raw, rejects = self._raw(block)
        if raw.is_empty():
            return Part(lines=block.count, rejects=rejects)
        raw = self._timed(raw)
        raw, lost = table.timed(raw, self._sheet.fields, self._sheet.time)
        rejects = pl.concat([rejects, lost])
        raw, more = self._chosen(raw)
        if self._watch is not None and raw.height:
            self._watch(raw)
        readings, all_rejects = [], [rejects, more]
        for group in self._sheet.groups:
            values, more = self._converted(raw, group)
            readings.append(values)
            all_rejects.append(more)
        return Part(
            lines=block.count, readings=rows.together(readings) if readings else None, rejects=pl.concat(all_rejects)
        )

    def _converted(self, raw: pl.DataFrame, group: Group) -> tuple[pl.DataFrame, pl.DataFrame]:
        mine = raw.with_columns(device=pl.lit(group.channel.device))
        values, rejects = table.convert(mine, group.fields)
        all_rejects = [rejects]
        for f in group.fields:
            filler = self._sheet.unmeasured.get(f.quantity)
            if filler is None:
                continue
            values, more = _without(values, mine, f, values[f.quantity].is_in(filler[0]), filler[1])
            all_rejects.append(more)
        for f in group.fields:
            limit, rule = self._sheet.beyond.get(f.quantity, (0.0, ""))
            if rule:
                numbers = mine.select(cells.plain_number(pl.col(f.column).cast(pl.String))).to_series()
                values, more = _without(values, mine, f, numbers >= limit, rule)
                all_rejects.append(more)
        values = self._signed(values).with_columns(mine["ts_utc"], mine["span_s"])
        values, judged = table.judge(values, mine, group.fields, group.judged, never_zero=group.never_zero)
        return table.kept(values), pl.concat([*all_rejects, judged])

    def _signed(self, values: pl.DataFrame) -> pl.DataFrame:
        if self._sheet.scale == 1 or "power_w" not in values.columns:
            return values
        return values.with_columns(pl.col("power_w") * self._sheet.scale)

    def _chosen(self, raw: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        return (raw, table.no_rejects()) if self._choose is None else self._choose(raw)

    def _timed(self, raw: pl.DataFrame) -> pl.DataFrame:
        if raw[self._sheet.time.column].dtype == pl.Datetime:
            at = self._sheet.clock.to_utc(raw[self._sheet.time.column])
            return raw.with_columns(at.alias("ts_utc"), span_s=pl.lit(self._sheet.span_s, pl.Float64))
        if raw[self._sheet.time.column].dtype == pl.Float64:
            number = pl.col(self._sheet.time.column) * self._sheet.time_unit_us
            us = raw.select(
                stamps.within_epoch(number.round(), self._sheet.form).cast(pl.Int64, strict=False)
            ).to_series()
            at = us.cast(pl.Datetime("us", "UTC")).alias("ts_utc")
            return raw.with_columns(at, span_s=pl.lit(self._sheet.span_s, pl.Float64))
        naive = self._sheet.naive(pl.col(self._sheet.time.column).fill_null(""))
        return raw.with_columns(self._sheet.clock.utc(raw, naive), span_s=pl.lit(self._sheet.span_s, pl.Float64))

    def _raw(self, block: Block) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the text cells of the block, and rejects of damage and foreign lines."""
        sheet = self._sheet
        block, nul = damage.without_nul(block)
        split = table.split(block, sheet.names, sheet.separator, quoted=b'"' in block.data)
        frame, odd = split.frame, split.odd
        if frame.height:
            frame = frame.filter(pl.col(sheet.time.column).str.strip_chars(' "') != sheet.time.header)
        for column, word in sheet.labels.items():
            other = pl.col(column).str.strip_chars().fill_null("") != word
            text = pl.concat_str([pl.col(n).fill_null("") for n in sheet.names], separator=sheet.separator)
            odd = pl.concat([odd, frame.filter(other).select("line", raw=text)])
            frame = frame.filter(~other)
        frame, cut = damage.cut_last(block, frame, sheet.names, sheet.separator)
        if sheet.trailer:
            odd = odd.filter(~pl.col("raw").str.contains(sheet.trailer))
        row = pl.col("raw").str.contains(sheet.separator, literal=True)
        rule = pl.when(row).then(pl.lit("wrong-number-of-fields")).otherwise(pl.lit("foreign-line"))
        return frame, pl.concat([nul, cut, damage.odd_lines(block, odd.sort("line"), rule)])


def of_groups(raw: pl.DataFrame, groups: Sequence[Group]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the readings of the devices of a table, and the rejects of cells.

    Parameters
    ----------
    raw
        ``line, ts_utc, span_s`` and the text columns of the groups.
    """
    readings, rejects = [], [table.no_rejects()]
    for group in groups:
        mine = raw.with_columns(device=pl.lit(group.channel.device))
        values, bad = table.convert(mine, group.fields)
        values, judged = table.judge(values, mine, group.fields, group.judged, never_zero=group.never_zero)
        readings.append(table.kept(values.with_columns(mine["ts_utc"], mine["span_s"])))
        rejects += [bad, judged]
    return rows.together(readings), pl.concat(rejects)


def _scanner(sheet: Sheet, also_numbers: set[str], also_words: set[str]) -> plain.Scanner | None:
    """Return what reads plain rows, where the stamps allow it."""
    if sheet.time_unit_us is None and (sheet.form is None or not sheet.form.fixed):
        return None
    units = {f.column: f.unit for f in sheet.fields}
    found = []
    for name in sheet.names:
        if name == sheet.time.column:
            found.append(plain.Cell(name, plain_scan.NUMBER if sheet.time_unit_us is not None else plain_scan.STAMP))
        elif name in units or name in also_numbers:
            found.append(plain.Cell(name, plain_scan.NUMBER, units.get(name, "")))
        elif name in sheet.labels:
            found.append(plain.Cell(name, plain_scan.LABEL, sheet.labels[name]))
        else:
            found.append(plain.Cell(name, plain_scan.WORD if name in also_words else plain_scan.SKIPPED))
    return plain.Scanner(found, sheet.separator, sheet.form)


def _without(
    values: pl.DataFrame, raw: pl.DataFrame, f: Field, bad: pl.Series, rule: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Take cells out of the values; they become rejects of a rule."""
    bad = bad.fill_null(value=False)
    if not bad.any():
        return values, table.no_rejects()
    kept = values.with_columns(pl.when(~bad).then(f.quantity).alias(f.quantity))
    return kept, table.cell_rejects(raw.filter(bad), f, pl.lit(rule))
