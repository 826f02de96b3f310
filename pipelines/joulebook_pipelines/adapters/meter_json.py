"""Readings as JSON: lines or lists of objects with a time and a power, as smart plugs, scripts and monitors write them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import polars as pl

from joulebook_pipelines.logs import (
    json_columns,
    json_names,
    json_records,
    meter_checks,
    meter_columns,
    meter_mapping,
    meter_reader,
    meter_table,
    table,
)
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.dialect import Dialect
from joulebook_pipelines.logs.json_columns import Columns

CHUNK = 20_000
"""Records that are turned into one frame: a bound on memory."""


def _knows(names: Sequence[str]) -> bool:
    return meter_columns.knows(json_names.plain(names))


def _sniff(head: Head) -> bool:
    return json_names.is_states(head) or json_records.first(head, _knows) is not None


def _parse(log: Log) -> Iterator[Part]:
    if log.options.columns:
        said = set(log.options.columns.values())
        batches = _batches(log, lambda names: said <= set(names))
    elif json_names.is_states(log.head):
        log = replace(log, options=replace(log.options, kind=log.options.kind or "on-change"))
        records, lines = json_names.states(log)
        batches = iter([(json_columns.of_records(records), [], lines)])
    else:
        batches = _batches(log, _knows)
    first = next(batches, (pl.DataFrame(), [], 0))
    if first[0].is_empty():
        raise LogRefusedError(f"{log.name}: {json_names.why_unknown(log.head)}")
    begin = first[0].head(meter_table.SAMPLE_LINES)
    names = tuple(n for n in begin.columns if n != "line" and begin[n].null_count() < begin.height)
    titles, units = json_names.titles(names)
    written = Dialect("", 1, titles, units, 1)
    if log.options.columns:
        layout = meter_mapping.from_options(written, log.options, log.name)
    else:
        layout = meter_columns.from_titles(written, log.options, log.name)
    sample = _frame(begin, names, written)
    found = meter_table.settle(log, written, layout, sample, ".")
    reader = meter_reader.Reader(log, found, meter_checks.of(log.name, layout))
    yield Part(channels=reader.named(), findings=found.findings)
    for columns, odd, lines in itertools.chain([first], batches):
        bad = pl.DataFrame(odd, schema={"line": pl.Int64, "raw": pl.String}, orient="row")
        rejects = table.whole_lines(bad, "not-an-object")
        for at in range(0, max(columns.height, 1), CHUNK):
            frame = _frame(columns.slice(at, CHUNK), names, written)
            yield reader.rows(frame, rejects if at == 0 else table.no_rejects(), lines if at == 0 else 0)
    yield Part(findings=reader.afterwards())


def _batches(log: Log, knows: json_records.Knows) -> Iterator[Columns]:
    """Yield readings of the file, lines that are none, and how many lines they come from."""
    if json_records.is_lines(log.head):
        yield from json_columns.of_lines(log)
        return
    records, lines = json_records.of_document(log, knows)
    yield json_columns.of_records(records), [], lines


def _frame(columns: pl.DataFrame, names: Sequence[str], written: Dialect) -> pl.DataFrame:
    """Return the cells under the names of the columns of the table."""
    empty = pl.lit("", pl.String)
    cells = [
        (pl.col(n).fill_null("") if n in columns.columns else empty).alias(c)
        for c, n in zip(written.names, names, strict=True)
    ]
    return columns.select("line", *cells)


ADAPTER = Adapter(
    name="meter-json",
    title="JSON of plugs, monitors and scripts, in lines or a list (Tasmota, Shelly, Home Assistant, gpustat)",
    yields="power, energy counters or energy per interval, voltage, current and temperatures, per device",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
    family="meter",
    fallback=True,
)
