"""The reference of study.toml, made from the models that check it."""

from __future__ import annotations

import datetime as dt
import textwrap
from collections.abc import Iterator
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from joulebook_pipelines import config_text
from joulebook_pipelines.config_document import Document
from joulebook_pipelines.config_names import COLUMN_NAMES, usual_units
from joulebook_pipelines.config_types import OneOf

EXAMPLE = """\
[study]
name = "node7-resnet"
timezone = "Asia/Shanghai"      # of stamps without an offset
reference_clock = "meter"       # the others are aligned to it

[site]
pue = 1.3
carbon_kg_per_kwh = 0.581       # or the name of a CSV file by hour
carbon_source = "grid operator, 2025"
price_per_kwh = 0.12
currency = "USD"

[model]
parameters = 7e9
peak_flops_per_device = 989e12

[devices]
tdp_w = 700

[[source]]
path = "logs/gpu*.csv"
host = "node7"

[[source]]
path = "logs/meter.csv"
host = "node7"
clock = "meter"
scope = "node"
timezone = "UTC"
columns = { time = "Zeit", power_w = "P_ges" }
units = { power_w = "kW" }

[[run]]
id = "bs128-r1"
start = 2026-11-01T08:00:00Z
end = 2026-11-01T09:00:00Z
labels = { variant = "baseline", repeat = 1 }
batch_size = 128
tokens = 1.2e9

[[sweep]]
name = "batch"
knob = "batch_size"
runs = "bs*"

[[campaign]]
name = "november"
scope = "node"
order = ["baseline", "data-pipeline", "placement"]
"""
"""A study.toml that uses the common keys."""

_INTRODUCTION = """\
# study.toml

Every section and every key is optional unless it is marked *required*. Keys that are not listed here and values that
are not allowed are refused, each with its file, line, dotted path, what is allowed and the nearest valid name. Entries
of a list are counted from 1: `source[2].timezone` is the zone of the second `[[source]]`.

This page is made from the code that checks the file (`joulebook_pipelines.config_reference.render`).
"""

_FILES = """\
## Which files are read

- Without any `[[source]]`, and for a folder without study.toml, every file below the folder is a source, except hidden
  names, `out/` and other folders that hold a `study.duckdb`, and names that end in `.duckdb`, `.toml`, `.md`, `.html`.
- With `[[source]]`, only what is listed is read. A `path` that names a file as it stands is that file, even if the name
  holds `*`, `?` or `[`; else these are wildcards, and `**` stands for any number of folders. Wildcards match neither
  hidden names nor results, and `**` does not follow links to folders. A pattern that matches nothing is an error.
- Files of one entry are in natural order (`gpu2` before `gpu10`). A file that two entries match is an error.
- CodeCarbon moves its file to `emissions.csv.bak` or `emissions.csv_1.bak` when its columns change. Such siblings of a
  file whose name ends in `emissions.csv` are read with it, as the same entry, unless another entry lists them.

## Columns and units

`columns` says what the columns of a table hold; `units` says in what unit, where the file does not. Keys of both are:
@COLUMNS@.

| quantity | units |
|---|---|
@UNITS@

Case tells only milli from mega; usual other spellings are read too.

## Times

A time without an offset (`2026-11-01T08:00:00`) is in `study.timezone` and refused without one, and so is a local time
that the change to or from summer time makes doubtful. Times of runs and idle stretches are on the clock of their host.
"""


_HEADER = ("| key | value | default | meaning |", "|---|---|---|---|")


def render() -> str:
    """Return the reference as Markdown: one table for each section, with an example.

    Examples
    --------
    >>> render().splitlines()[0]
    '# study.toml'
    """
    parts = [_INTRODUCTION, f"## Example\n\n```toml\n{EXAMPLE}```\n"]
    for name, field in Document.model_fields.items():
        section, several = _section(field)
        header = f"[[{name}]]" if several else f"[{name}]"
        lines = [f"## `{header}`", "", (section.__doc__ or "").strip(), "", *_HEADER, *_rows(section)]
        parts.append("\n".join(lines) + "\n")
    columns = textwrap.fill(", ".join(f"`{c}`" for c in COLUMN_NAMES), 120)
    units = "\n".join(f"| `{c}` | {', '.join(u)} |" for c in COLUMN_NAMES if (u := usual_units(c)))
    return "\n".join([*parts, _FILES.replace("@COLUMNS@", columns).replace("@UNITS@", units)])


def _section(field: FieldInfo) -> tuple[type[BaseModel], bool]:
    """Return the model of a section and whether it is a list of tables."""
    annotation: Any = field.annotation
    inner = get_args(annotation)
    return (inner[0], True) if inner else (annotation, False)


def _rows(section: type[BaseModel]) -> Iterator[str]:
    for name, field in section.model_fields.items():
        value = _kind(field.annotation, tuple(field.metadata))
        if field.is_required():
            default = "*required*"
        elif field.default is None or field.default in ({}, ()):
            default = ""
        else:
            default = f"`{config_text.value(field.default)}`"
        cells = (f"`{name}`", value, default, field.description or "")
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


_PLAIN = {
    str: "text", float: "number", int: "whole number", bool: "true or false", dt.datetime: "time", dt.date: "date",
}  # fmt: skip


def _kind(annotation: Any, metadata: tuple[object, ...] = ()) -> str:
    """Return what may stand as a value, in words."""
    if hasattr(annotation, "__metadata__"):
        return _kind(annotation.__origin__, (*metadata, *annotation.__metadata__))
    inner = get_args(annotation)
    names = next((m.names for m in metadata if isinstance(m, OneOf)), None)
    if names is not None or get_origin(annotation) is Literal:
        return " · ".join(f"`{n}`" for n in (names or inner))
    if get_origin(annotation) in {Union, UnionType}:
        return ", ".join(dict.fromkeys(_kind(i, metadata) for i in inner if i is not type(None)))
    if inner:
        return f"list of {_kind(inner[0])}" if get_origin(annotation) is tuple else f"table: {_kind(inner[1])} by name"
    return _PLAIN[annotation] + _bounds(metadata)


def _bounds(metadata: tuple[object, ...]) -> str:
    signs = (("gt", ">"), ("ge", "≥"), ("lt", "<"), ("le", "≤"))
    limits = [
        f"{sign} {limit:g}"
        for piece in metadata
        for entry in (getattr(piece, "metadata", None) or [piece])
        for name, sign in signs
        if isinstance(limit := getattr(entry, name, None), int | float)
    ]
    return f" {', '.join(limits)}" if limits else ""
