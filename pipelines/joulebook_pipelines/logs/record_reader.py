"""From records of any syntax, as columns of text by their names, to readings: the names say what is what."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

import polars as pl

from joulebook_pipelines.logs import (
    dialect,
    json_names,
    meter_checks,
    meter_columns,
    meter_mapping,
    meter_reader,
    meter_table,
    meter_titles,
    table,
)
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Part
from joulebook_pipelines.logs.dialect import Dialect
from joulebook_pipelines.logs.json_columns import Columns

CHUNK = 20_000
"""Records that are turned into one frame: a bound on memory."""


def parts(log: Log, batches: Iterator[Columns], why_nothing: str, odd_rule: str) -> Iterator[Part]:
    """Yield what the records say.

    Parameters
    ----------
    log
        The file.
    batches
        Its records, some at a time.
    why_nothing
        What to say where there are none.
    odd_rule
        Rule of the rejects of lines that are no record.

    Raises
    ------
    LogRefusedError
        There is no record, or what it holds cannot be known.
    """
    first = next(batches, (pl.DataFrame(), [], 0))
    if first[0].is_empty():
        raise LogRefusedError(f"{log.name}: {why_nothing}")
    begin = first[0].head(meter_table.SAMPLE_LINES)
    names = tuple(n for n in begin.columns if n != "line" and begin[n].null_count() < begin.height)
    titles, units = _with_units_beside(begin, names, *json_names.titles(names))
    written = Dialect("", 1, titles, units, 1)
    if log.options.columns:
        layout = meter_mapping.from_options(written, log.options, log.name)
    else:
        layout = meter_columns.from_titles(written, log.options, log.name)
    found = meter_table.settle(log, written, layout, _frame(begin, names, written), ".")
    reader = meter_reader.Reader(log, found, meter_checks.of(log.name, layout), of_records=True)
    yield Part(channels=reader.named(), findings=found.findings)
    read = [*(f.column for f in layout.fields), *([layout.value] if layout.value else [])]
    told = {names[written.names.index(c)] for c in read}
    for all_columns, odd, lines in itertools.chain([first], batches):
        bad = pl.DataFrame(odd, schema={"line": pl.Int64, "raw": pl.String}, orient="row")
        columns, silent = _speaking(all_columns, told)
        rejects = pl.concat([table.whole_lines(bad, odd_rule), table.whole_lines(silent, "no-known-member")])
        for at in range(0, max(columns.height, 1), CHUNK):
            frame = _frame(columns.slice(at, CHUNK), names, written)
            yield reader.rows(frame, rejects if at == 0 else table.no_rejects(), lines if at == 0 else 0)
    yield Part(findings=reader.afterwards())


def _speaking(columns: pl.DataFrame, told: set[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the records that have one of the members that are read, and ``line, raw`` of the others: they tell of something else."""
    known = [pl.col(n).is_not_null() for n in columns.columns if n in told]
    speaks = columns.select(_speaks=pl.any_horizontal(known) if known else pl.lit(value=False))["_speaks"]
    if speaks.all():
        return columns, pl.DataFrame(schema={"line": pl.Int64, "raw": pl.String})
    cells = [pl.concat_str(pl.lit(f"{n}: "), n) for n in columns.columns if n != "line"]
    raw = pl.concat_str(cells or [pl.lit("")], separator=", ", ignore_nulls=True)
    return columns.filter(speaks), columns.filter(~speaks).select("line", raw=raw)


def _with_units_beside(
    begin: pl.DataFrame, names: Sequence[str], titles: tuple[str, ...], units: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return titles and units, with the unit that stands beside a value as ``{"value": 250, "unit": "W"}``, or behind it in its text."""
    told, known = list(titles), list(units)
    for i, name in enumerate(names):
        if not units[i] and titles[i] and begin.schema[name] == pl.String and not meter_titles.meaning(titles[i]).unit:
            known[i] = dialect.unit_of(begin[name].drop_nulls().to_list())
        thing, _, last = name.rpartition(".")
        beside = next((n for u in ("unit", "units") if (n := f"{thing}.{u}") in names), None)
        if last not in {"value", "reading"} or beside is None or units[i]:
            continue
        said = begin[beside].drop_nulls().unique().to_list()
        if len(said) == 1:
            # The number of a list's element says what the value is about.
            about = re.match(r"(?:gpu|cpu|psu) \d+", thing)
            told[i], known[i] = " ".join([*([about[0]] if about else []), thing.rpartition(".")[2]]), said[0]
    return tuple(told), tuple(known)


def _frame(columns: pl.DataFrame, names: Sequence[str], written: Dialect) -> pl.DataFrame:
    """Return the cells under the names of the columns of the table, null where a record has no such member."""
    empty = pl.lit(None, pl.String)
    cells = [(pl.col(n) if n in columns.columns else empty).alias(c) for c, n in zip(written.names, names, strict=True)]
    return columns.select("line", *cells)
