"""Exports of databases and dashboards with a row per value and the name of its series beside it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import (
    damage,
    dialect,
    entries,
    local_time,
    mlflow_keys,
    polled,
    series_names,
    stamps,
    table,
)
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.series_names import Columns, Told


def _header(head: Head) -> tuple[str, list[str]] | None:
    """Return separator and titles of the first line that names a time, a value and a series."""
    lines = [line for line in head.lines[:20] if line.strip() and not line.startswith("#")]
    for line in lines[:3]:
        for separator in dialect.SEPARATORS:
            titles = dialect.split_line(line, separator)
            if series_names.columns(titles) is not None:
                return separator, titles
    return None


def _sniff(head: Head) -> bool:
    return _header(head) is not None and not mlflow_keys.of_steps(head)


def _parse(log: Log) -> Iterator[Part]:
    found = _header(log.head)
    if found is None:
        raise LogRefusedError(f"{log.name}: no line names a time, a value and the series that it is of")
    separator, _ = found
    frames, odd, count = [], [table.no_rejects()], 0
    titles: list[str] | None = None
    for block in log.blocks():
        count += block.count
        for section in _sections(block, separator):
            first = dialect.split_line(section.lines[0], separator)
            if series_names.columns(first) is not None:
                titles = first
            frame, bad = _rows(section, titles, separator)
            frames.append(frame)
            odd.append(bad)
    rows = pl.concat(frames) if frames else pl.DataFrame()
    if rows.is_empty():
        raise LogRefusedError(f"{log.name}: has a header but no row below it: nothing was measured")
    told = _told(log, rows)
    rows = rows.drop("unit").join(told.frame, on=["name", "about"], how="inner", maintain_order="left")
    rows = rows.with_columns(_utc(log, rows).alias("ts_utc"), header=pl.col("name"))
    known = told.of_counters(rows).with_columns(row=_of_one_moment())
    readings, rejects = entries.gather(known.select(list(entries.SCHEMA)), told.scopes)
    rejects = pl.concat([*odd, rejects])
    yield Part(count, readings, rejects, channels=_channels(log, told, readings), findings=_findings(log, told))


def _sections(block: Block, separator: str) -> Iterator[Block]:
    """Yield the stretches of a block that have one header."""
    lines = block.lines
    begins = [i for i, line in enumerate(lines) if series_names.may_be_header(line) and
              series_names.columns(dialect.split_line(line, separator)) is not None]  # fmt: skip
    places = sorted({0, *begins, len(lines)})
    for at, end in itertools.pairwise(places):
        data = ("\n".join(lines[at:end]) + "\n").encode()
        yield Block(block.first_line + at, data, block.terminated or end < len(lines))


def _rows(section: Block, titles: list[str] | None, separator: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return ``line, stamp, name, about, unit, raw`` of a section, and what does not fit."""
    schema = {"line": pl.Int64, **dict.fromkeys(("stamp", "name", "about", "unit", "raw"), pl.String)}
    what = None if titles is None else series_names.columns(titles)
    if titles is None or what is None:
        return pl.DataFrame(schema=schema), table.no_rejects()
    names = [f"c{i}" for i in range(len(titles))]
    split = table.split(section, names, separator, quoted=b'"' in section.data)
    cell = {n: pl.col(n).fill_null("").str.strip_chars(' "\r') for n in names}
    odd = split.odd.filter(~pl.col("raw").str.starts_with("#"))
    frame = split.frame.filter(~pl.col("c0").fill_null("").str.starts_with("#"))
    frame = frame.filter(cell[names[what.value]] != titles[what.value])
    about = [cell[names[i]] for i in what.about]
    told = frame.select(
        pl.col("line").cast(pl.Int64), stamp=cell[names[what.time]],
        name=_name(what, cell, names), about=pl.concat_str(about, separator=" ").str.strip_chars() if about else pl.lit(""),
        unit=cell[names[what.unit]] if what.unit is not None else pl.lit(""), raw=cell[names[what.value]],
    )  # fmt: skip
    return told, damage.odd_lines(section, odd, "wrong-number-of-fields")


def _name(what: Columns, cell: dict[str, pl.Expr], names: list[str]) -> pl.Expr:
    parts = [cell[names[i]] for i in what.names]
    return pl.concat_str(parts, separator=" ").str.strip_chars()


def _told(log: Log, rows: pl.DataFrame) -> Told:
    told = series_names.tell(rows, log.options)
    if told.without_unit:
        raise LogRefusedError(
            f"{log.name}: the series {', '.join(map(repr, told.without_unit[:5]))} "
            f"{'speaks' if len(told.without_unit) == 1 else 'speak'} of power or energy without a unit; add units = "
            f"{{ {told.missing_units} }} with the right one to this [[source]]"
        )
    if told.frame.is_empty():
        some = rows["name"].unique(maintain_order=True).head(6).to_list()
        raise LogRefusedError(
            f"{log.name}: no series says that it is a power or an energy (there are {', '.join(map(repr, some))}); put power into "
            "the name of its series, with its unit (power_w), or export its column alone as a table of time and power_w"
        )
    return told


def _utc(log: Log, rows: pl.DataFrame) -> pl.Series:
    samples = [s for s in rows["stamp"].head(2_000).to_list() if any(ch.isdigit() for ch in s)]
    if not samples:
        raise LogRefusedError(f"{log.name}: no row has a time stamp: nothing was measured")
    form = local_time.form(log, samples)
    clock = local_time.localiser(log, form, int(rows["line"][0]), samples[0])
    return clock.utc(rows, stamps.parse(pl.col("stamp"), form))


def _of_one_moment() -> pl.Expr:
    """Return the row that each value belongs to: series of one device with one stamp are one reading, not readings that contradict."""
    moment = ("device", "ts_utc")
    again = pl.struct(*moment, "quantity").is_first_distinct().not_()
    return pl.when(again | pl.col("ts_utc").is_null()).then("line").otherwise(pl.col("line").min().over(moment))


def _channels(log: Log, told: Told, readings: pl.DataFrame) -> tuple[Channel, ...]:
    told_w = readings.filter(pl.col("power_w").is_not_null()) if "power_w" in readings.columns else readings.clear()
    counted = set(told.counters) - set(told_w["device"])
    at_one_pace = polled.devices(readings)
    return tuple(
        Channel(
            d,
            told.scopes.get(d, ""),
            kind="counter"
            if d in counted
            else log.options.kind or ("on-change" if told.on_change and d not in at_one_pace else "instant"),
            window_s=log.options.window_s,
        )
        for d in readings["device"].unique(maintain_order=True)
    )


def _findings(log: Log, told: Told) -> tuple[Finding, ...]:
    found = []
    if told.unread:
        found.append(Finding(
            "series-not-read", Severity.NOTE, log.name,
            f"Not read, as they are no power, energy or temperature with a unit: {', '.join(map(repr, told.unread[:8]))}.",
            {"series": list(told.unread)},
        ))  # fmt: skip
    if told.intervals:
        found.append(Finding(
            "series-not-read", Severity.WARNING, log.name,
            f"Not read, as their energies rise and fall: {', '.join(map(repr, told.intervals[:8]))}. They are of intervals whose length "
            "the export does not tell; export the column alone as a table of time and energy_j.",
            {"series": list(told.intervals)},
        ))  # fmt: skip
    return tuple(found)


ADAPTER = Adapter(
    name="series-csv",
    title="CSV with a row per value of a named series: InfluxDB, Prometheus, Grafana, Home Assistant, iDRAC metrics",
    yields="power, energy counters, voltage, current and temperatures, per series",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
    family="meter",
)
