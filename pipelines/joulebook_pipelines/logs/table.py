"""From a table of text cells to readings and rejects, with full accounting.

Every non-empty cell of a known column ends in exactly one of the two frames; an empty cell of a required column is a
reject as well.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from joulebook import rules
from joulebook_pipelines.logs import cells
from joulebook_pipelines.logs.block import Block

REJECT_SCHEMA = {
    "line": pl.Int64, "device": pl.String, "column_name": pl.String, "rule": pl.String, "raw": pl.String,
}  # fmt: skip

LONGEST_RAW = 2_000
"""Characters of a bad line that are kept: enough to see what it is, not a gigabyte."""


@dataclass(frozen=True)
class Field:
    """A column that is understood.

    Parameters
    ----------
    column
        Its name in the raw frame.
    header
        Its name in the file, as rejects show it.
    quantity
        Its name in ``readings``.
    unit
        Unit of bare numbers, ``""`` = only cells with their own unit are read.
    required
        An empty cell is a reject.
    """

    column: str
    header: str
    quantity: str
    unit: str = ""
    required: bool = False


@dataclass(frozen=True)
class Raw:
    """Lines of a table as text.

    Parameters
    ----------
    frame
        ``line`` and one text column per field of the file.
    odd
        ``line, raw``: lines that do not have the table's number of fields.
    """

    frame: pl.DataFrame
    odd: pl.DataFrame


def no_rejects() -> pl.DataFrame:
    """Return an empty frame of rejects."""
    return pl.DataFrame(schema=REJECT_SCHEMA)


def split(block: Block, names: Sequence[str], separator: str, *, quoted: bool = False) -> Raw:
    """Split the lines of a block into the named columns; lines with another number of fields are ``odd``.

    Blank lines are neither: they hold nothing.
    """
    fast = None if quoted else split_regular(block, names, separator)
    if fast is not None:
        return Raw(fast, pl.DataFrame(schema={"line": pl.Int64, "raw": pl.String}))
    lines = block.numbered().filter(pl.col("raw").str.strip_chars(" \t\r") != "")
    if quoted and b'"' in block.data:
        return _split_quoted(lines, names, separator)
    parts = lines.with_columns(cells=pl.col("raw").str.split(separator))
    regular = pl.col("cells").list.len() == len(names)
    good = parts.filter(regular)
    frame = good.select("line", *(pl.col("cells").list.get(i).alias(n) for i, n in enumerate(names)))
    return Raw(frame, parts.filter(~regular).select("line", "raw"))


def split_regular(
    block: Block, names: Sequence[str], separator: str, schema: Mapping[str, type[pl.DataType]] | None = None
) -> pl.DataFrame | None:
    """Split with the CSV reader where every line surely has the same number of fields; else ``None``.

    Parameters
    ----------
    schema
        Types of the columns; text by default. A cell that does not fit its type makes the answer ``None``.
    """
    if b'"' in block.data or b"\x00" in block.data:
        return None
    try:
        frame = pl.read_csv(
            block.data,
            has_header=False,
            separator=separator,
            quote_char=None,
            schema=dict(schema or dict.fromkeys(names, pl.String)),
        )
    except pl.exceptions.PolarsError:
        return None
    if frame.height != block.count:
        return None
    # A line with more fields makes the reader fail; one with fewer leaves its last cells null, as do empty cells.
    if frame[names[-1]].null_count() and block.data.count(separator.encode()) != block.count * (len(names) - 1):
        return None
    return frame.insert_column(0, block.numbers)


def _split_quoted(lines: pl.DataFrame, names: Sequence[str], separator: str) -> Raw:
    """Split lines with quoted fields; a record over several lines carries the number of its first one.

    A quote that is never closed, or closed in a line that does not complete the record, is damage of its own line: the
    lines behind it are read as they stand.
    """
    numbers, texts = lines["line"].to_list(), lines["raw"].to_list()
    rows: list[list[str]] = []
    row_numbers: list[int] = []
    odd: list[tuple[int, str]] = []
    open_quotes = [i for i, text in enumerate(texts) if text.count('"') % 2]
    closing = dict(itertools.pairwise(open_quotes))
    at = 0
    while at < len(texts):  # only files with quotes come here; the csv module does the work
        last = closing.get(at, at)
        record = texts[at] if last == at else "\n".join(texts[at : last + 1])
        cells_ = _quoted_cells(record, separator)
        if len(cells_) == len(names) and (last > at or record.count('"') % 2 == 0):
            rows.append(cells_)
            row_numbers.append(numbers[at])
            at = last + 1
        else:
            odd.append((numbers[at], texts[at]))
            at += 1
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
    frame = frame.insert_column(0, pl.Series("line", row_numbers, dtype=pl.Int64))
    return Raw(frame, pl.DataFrame(odd, schema={"line": pl.Int64, "raw": pl.String}, orient="row"))


def _quoted_cells(record: str, separator: str) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(record), delimiter=separator, skipinitialspace=True), [])
    except csv.Error:  # a cell beyond all measure is damage
        return []


def whole_lines(odd: pl.DataFrame, rule: pl.Expr | str) -> pl.DataFrame:
    """Return rejects of whole lines (``line, raw``) under a rule."""
    named = pl.lit(rule) if isinstance(rule, str) else rule
    return odd.select(
        pl.col("line").cast(pl.Int64), device=pl.lit(None, pl.String), column_name=pl.lit(""), rule=named,
        raw=pl.col("raw").str.head(LONGEST_RAW),
    )  # fmt: skip


def convert(raw: pl.DataFrame, fields: Sequence[Field], *, decimal: str = ".") -> tuple[pl.DataFrame, pl.DataFrame]:
    """Turn text cells into quantities.

    Parameters
    ----------
    raw
        ``line, device`` and the text columns named in ``fields``.
    fields
        Columns to read, at most one per quantity.
    decimal
        Decimal sign.

    Returns
    -------
    tuple of polars.DataFrame
        ``line, device`` and the quantities, same rows as ``raw``; and the rejects.
    """
    values = raw.select(
        pl.col("line").cast(pl.Int64), "device",
        *(cells.number(pl.col(f.column), f.quantity, f.unit, decimal=decimal).alias(f.quantity) for f in fields),
    )  # fmt: skip
    rejects = []
    for field in fields:
        if values[field.quantity].null_count() == 0:
            continue
        values = _own_units(raw, values, field, decimal)
        missing = values[field.quantity].is_null()
        text = raw[field.column].fill_null("")
        if not field.required:
            missing = missing & (text.str.strip_chars() != "")
        if missing.any():
            rejects.append(cell_rejects(raw.filter(missing), field, cells.why_null(pl.col(field.column).fill_null(""))))
    return values, pl.concat(rejects) if rejects else no_rejects()


def _own_units(raw: pl.DataFrame, values: pl.DataFrame, field: Field, decimal: str) -> pl.DataFrame:
    """Fill the cells that carry another unit than their header (auto-ranging displays), only where any do."""
    if field.quantity in cells.TEXT_QUANTITIES:
        return values
    missing = values[field.quantity].is_null()
    found = raw.filter(missing).select(cells.with_own_unit(pl.col(field.column), field.quantity, decimal=decimal))
    if found.to_series().null_count() == found.height:
        return values
    filled = values[field.quantity].to_frame().with_row_index("i")
    places = filled.filter(missing).select("i").with_columns(new=found.to_series())
    merged = filled.join(places, on="i", how="left").select(pl.coalesce(field.quantity, "new")).to_series()
    return values.with_columns(merged.alias(field.quantity))


def cell_rejects(rows: pl.DataFrame, field: Field, rule: pl.Expr) -> pl.DataFrame:
    """Return rejects of one column's cells (rows with ``line, device`` and the column) under a rule."""
    return rows.select(
        pl.col("line").cast(pl.Int64), pl.col("device").cast(pl.String), column_name=pl.lit(field.header), rule=rule,
        raw=pl.col(field.column).fill_null("").cast(pl.String).str.head(LONGEST_RAW),
    )  # fmt: skip


def without_time(raw: pl.DataFrame, fields: Sequence[Field], stamp: Field, rule: str = "no-such-time") -> pl.DataFrame:
    """Return the rejects of rows whose stamp cannot be read: the stamp, and every non-empty known cell of the row."""
    rejects = [cell_rejects(raw, stamp, pl.lit(rule))]
    for field in fields:
        filled = raw.filter(pl.col(field.column).fill_null("").str.strip_chars() != "")
        rejects.append(cell_rejects(filled, field, pl.lit("row-without-time")))
    return pl.concat(rejects)


def timed(raw: pl.DataFrame, fields: Sequence[Field], stamp: Field) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the rows that have ``ts_utc``, and the rejects of the others; a row without a device is about none."""
    lost = raw.filter(pl.col("ts_utc").is_null())
    if lost.is_empty():
        return raw, no_rejects()
    if "device" not in lost.columns:
        lost = lost.with_columns(device=pl.lit(None, pl.String))
    return raw.filter(pl.col("ts_utc").is_not_null()), without_time(lost, fields, stamp)


def judge(
    values: pl.DataFrame, raw: pl.DataFrame, fields: Sequence[Field], scope: str, *, never_zero: bool | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Apply the physical rules; what breaks one moves to the rejects with its text as it stands in the file."""
    good, broken = rules.judge(values, scope, never_zero=never_zero)
    if broken.is_empty():
        return good, no_rejects()
    rejects = []
    for field in fields:
        mine = broken.filter(pl.col("quantity") == field.quantity)
        if mine.height:
            texts = raw.select("line", "device", raw=pl.col(field.column).cast(pl.String))
            rejects.append(
                mine.join(texts, on=["line", "device"], how="left").select(
                    "line", "device", column_name=pl.lit(field.header), rule="rule", raw="raw"
                )
            )
    return good, pl.concat(rejects) if rejects else no_rejects()


def judge_each(
    values: pl.DataFrame, raw: pl.DataFrame, field: Field, scopes: Mapping[str, str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Apply the physical rules to the readings of several devices, each by those of its scope.

    Parameters
    ----------
    values, raw
        Readings and their text, with ``line`` and ``device``.
    field
        The column.
    scopes
        Scope of each device.
    """
    good, rejects = [values.clear()], [no_rejects()]
    for (device,), own in values.partition_by("device", as_dict=True, maintain_order=True).items():
        sound, broken = judge(own, raw, (field,), scopes[str(device)] or "part", never_zero=False)
        good.append(kept(sound))
        rejects.append(broken)
    return pl.concat(good).sort("line", maintain_order=True), pl.concat(rejects)


def kept(values: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that still say something: at least one quantity is not null."""
    quantities = [c for c in values.columns if c not in {"line", "device", "ts_utc", "span_s"}]
    if not quantities:
        return values.clear()
    return values.filter(pl.any_horizontal([pl.col(q).is_not_null() for q in quantities]))
