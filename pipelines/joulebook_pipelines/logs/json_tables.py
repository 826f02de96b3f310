"""Tables in JSON: rows under a list of columns, columns under their fields, rows or columns by their number or time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from joulebook_pipelines.logs import stamps
from joulebook_pipelines.logs.meter_titles import meaning

Record = dict[str, Any]

FEWEST = 2
"""Columns of a table, and its rows."""

_DATED = re.compile(r"^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d|$)")
_SAYS_NOTHING = frozenset({"value", "mean", "last", "first", "median", "_value"})
"""Columns of InfluxDB that only the name of their measurement explains."""


def rows(item: object) -> list[Record]:
    """Return the rows of a table; empty where an object is none.

    Examples
    --------
    >>> rows({"columns": ["time", "power_w"], "index": [0, 1], "data": [[1, 71.5], [2, 72.0]]})
    [{'time': 1, 'power_w': 71.5}, {'time': 2, 'power_w': 72.0}]
    >>> rows({"time": {"0": 1, "1": 2}, "power_w": {"0": 71.5, "1": 72.0}})
    [{'time': 1, 'power_w': 71.5}, {'time': 2, 'power_w': 72.0}]
    """
    if not isinstance(item, dict):
        return []
    return _under_columns(item) or _under_fields(item) or _by_number(item)


def are_times(values: Sequence[Any]) -> bool:
    """Tell whether all values are Unix times in one of its units, or dates."""
    if all(isinstance(v, str) for v in values):
        if all(v.isdigit() for v in values):
            return are_times([int(v) for v in values])
        return all(_DATED.match(v) for v in values)
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return False
    units = (1e6 / u for u in stamps.EPOCH_UNITS_US)
    return any(all(stamps.EPOCH_2000_S * s <= v < stamps.LAST_EPOCH_S * s for v in values) for s in units)


def _under_columns(item: dict[str, Any]) -> list[Record]:
    """Return rows under a list of columns, as InfluxDB and pandas write them."""
    names = item.get("columns")
    below = next((item[k] for k in ("values", "data", "rows") if isinstance(item.get(k), list)), None)
    if not isinstance(names, list) or len(names) < FEWEST or not all(isinstance(n, str) and n for n in names):
        return []
    if not below or not all(isinstance(r, list) and len(r) == len(names) for r in below):
        return []
    what, tags = item.get("name"), item.get("tags")
    told = [f"{n} {what}" if isinstance(what, str) and n.casefold() in _SAYS_NOTHING else n for n in names]
    about = tags if isinstance(tags, dict) else {}
    return [{**dict(zip(told, row, strict=True)), **about} for row in below]


def _under_fields(item: dict[str, Any]) -> list[Record]:
    """Return the rows of a frame of Grafana: fields in its schema, and a list of values for each."""
    schema, data = item.get("schema"), item.get("data")
    fields = schema.get("fields") if isinstance(schema, dict) else None
    columns = data.get("values") if isinstance(data, dict) else None
    if not isinstance(fields, list) or not isinstance(columns, list) or not len(fields) == len(columns) >= FEWEST:
        return []
    if not all(isinstance(f, dict) for f in fields) or not all(isinstance(c, list) for c in columns):
        return []
    if len({len(c) for c in columns}) != 1:
        return []
    names = [_field(f) for f in fields]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _field(field: dict[str, Any]) -> str:
    """Return the name of a field, with its labels."""
    config, labels = field.get("config"), field.get("labels")
    shown = config.get("displayNameFromDS") if isinstance(config, dict) else None
    name = str(shown or field.get("name") or "")
    if not isinstance(labels, dict) or shown:
        return name
    if "__name__" in labels:
        about = ",".join(f'{k}="{v}"' for k, v in labels.items() if k != "__name__")
        return f"{labels['__name__']}{{{about}}}"
    for key, value in labels.items():
        name = re.sub(rf"\b{re.escape(key)}\b", f"{key} {value}", name) if key in name else f"{key} {value} {name}"
    return name


def _by_number(item: dict[str, Any]) -> list[Record]:
    """Return rows, or columns, whose members are named by the number or the time of the row, as pandas writes a frame."""
    inner = [v for v in item.values() if isinstance(v, dict)]
    if len(item) < FEWEST or len(inner) != len(item) or any(v.keys() != inner[0].keys() for v in inner):
        return []
    if any(isinstance(v, (dict, list)) for row in inner for v in row.values()):
        return []
    outer, names = list(item), list(inner[0])
    if not _number_rows(outer):
        outer, names, inner = names, outer, [{n: c[r] for n, c in item.items()} for r in names]
    if len(outer) < FEWEST or not _number_rows(outer) or _number_rows(names):
        return []
    time = next((n for n in names if meaning(n).role in {"time", "clock"}), None)
    if time is not None:
        return inner if len({str(r[time]) for r in inner}) > 1 else []
    return [{"time": t, **r} for t, r in zip(outer, inner, strict=True)] if are_times(outer) else []


def _number_rows(names: Sequence[str]) -> bool:
    return all(str(n).isdigit() for n in names) or are_times(names)
