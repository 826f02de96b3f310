"""Series in JSON as pairs of a time and a value: Graphite, Grafana, Plotly, pandas and scripts."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

from joulebook_pipelines.logs import json_tables

Record = dict[str, Any]
Pair = tuple[Any, Any]

FEWEST, LOOKED_AT = 2, 20
"""Pairs that make a series, and those at its beginning that tell the time from the value."""

MOST_NODES = 100_000
"""Objects and lists of a document that are looked at for a series."""

TIME, VALUE = "time", "value"
"""Members of the records that pairs become; a value that nobody names keeps this name."""

_LABELS = ("target", "name", "label", "title", "metric", "alias", "series")
_PAIRS = frozenset({"datapoints", "data", "values", "points", "rows", ""})
"""Names of series, and of lists of pairs that say nothing about what is in them."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]')
_CLOSING = {"{": "}", "[": "]"}


def records(document: object) -> list[Record]:
    """Return the series of a document as records in the order of time; empty where it holds none.

    Examples
    --------
    >>> records({"power_w": [[1700000000, 71.5], [1700000001, 72.0]]})
    [{'time': 1700000000, 'power_w': 71.5}, {'time': 1700000001, 'power_w': 72.0}]
    >>> records([{"target": "gpu_w", "datapoints": [[71.5, 1700000000], [None, 1700000010]]}])
    [{'time': 1700000000, 'gpu_w': 71.5}, {'time': 1700000010, 'gpu_w': None}]
    """
    series: list[tuple[str, str, list[Pair]]] = []
    tables: list[Record] = []
    stack: list[tuple[str, str, object]] = [("", "", document)]
    nodes = 0
    while stack and nodes < MOST_NODES:
        name, path, item = stack.pop()
        nodes += 1
        if table := json_tables.rows(item):
            tables += table
        elif isinstance(item, dict):
            label = _label(item)
            if pairs := _drawn(item) or _by_time(item):
                series.append((label or name or VALUE, path, pairs))
                continue
            for key, value in reversed(item.items()):
                stack.append((_beneath(label or name, str(key)), f"{path}.{key}".strip("."), value))
        elif isinstance(item, list):
            if pairs := _pairs(item):
                series.append((name or VALUE, path, pairs))
            else:
                stack += [(name, f"{path}.{i}".strip("."), v) for i, v in reversed(list(enumerate(item)))]
    return tables or _side_by_side(series)


def closed(text: str) -> Any:
    """Return what the whole part of a text says that was cut somewhere; ``None`` where it is no JSON.

    Examples
    --------
    >>> closed('{"power": [[1, 71.5], [2, 7')
    {'power': [[1, 71.5], [2]]}
    """
    open_: list[str] = []
    end, ends = 0, ""
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in _CLOSING:
            open_.append(sign)
        elif sign in "]}" and open_:
            open_.pop()
        if sign == "," and open_:
            end, ends = token.start(), "".join(_CLOSING[o] for o in reversed(open_))
    try:
        return json.loads(text[:end] + ends)
    except (ValueError, RecursionError):
        return None


def _beneath(name: str, key: str) -> str:
    """Return the name of what lies under a key: numbers count what holds them, and some words say nothing."""
    if key.casefold() in _PAIRS:
        return name
    return f"{name} {key}".strip() if key.isdecimal() else f"{name}.{key}".strip(".")


def _label(holder: dict[str, Any]) -> str:
    """Return what an object calls its series, with the tags that its name does not say."""
    label = next((str(holder[k]) for k in _LABELS if isinstance(holder.get(k), str) and holder[k]), "")
    tags = holder.get("tags")
    about = [str(v) for v in tags.values() if str(v) not in label] if isinstance(tags, dict) else []
    return " ".join([label, *about]).strip()


def _drawn(item: dict[str, Any]) -> list[Pair]:
    """Return the points of a drawn line, whose x are times."""
    x, y = item.get("x"), item.get("y")
    if not isinstance(x, list) or not isinstance(y, list) or len(x) != len(y) or len(x) < FEWEST:
        return []
    return list(zip(x, y, strict=True)) if json_tables.are_times(x[:LOOKED_AT]) else []


def _by_time(item: dict[str, Any]) -> list[Pair]:
    """Return the values of an object whose members are named by their times, as pandas writes a series."""
    if len(item) < FEWEST or any(isinstance(v, (dict, list)) for v in item.values()):
        return []
    return list(item.items()) if json_tables.are_times(list(item)[:LOOKED_AT]) else []


def _pairs(item: list[Any]) -> list[Pair]:
    """Return pairs of time and value; empty where a list holds no pairs, or neither of them is told to be a time."""
    if len(item) < FEWEST or not all(_is_pair(p) for p in item):
        return []
    first, second = ([p[i] for p in item[:LOOKED_AT]] for i in (0, 1))
    timed = json_tables.are_times(first), json_tables.are_times(second)
    if timed == (False, True):
        return [(t, v) for v, t in item]
    return (
        [(t, v) for t, v in item]
        if timed == (True, False) or (not any(timed) and _grows(first) and not _grows(second))
        else []
    )


def _is_pair(value: object) -> bool:
    return (
        isinstance(value, list) and len(value) == FEWEST and not any(isinstance(v, (dict, list, bool)) for v in value)
    )


def _grows(values: Sequence[Any]) -> bool:
    numbers = [v for v in values if isinstance(v, int | float)]
    return len(numbers) == len(values) and all(b > a for a, b in itertools.pairwise(numbers))


def _side_by_side(series: list[tuple[str, str, list[Pair]]]) -> list[Record]:
    """Return a record a time with the values of all series that have one then; a name that two have becomes their paths."""
    names = [name for name, _, _ in series]
    found: dict[Any, Record] = {}
    for name, path, pairs in series:
        told = name if names.count(name) == 1 else path or name
        for time, value in pairs:
            record = found.setdefault(time, {TIME: time})
            if told in record:  # a second value of one moment is for the rules of readings to judge
                found[(time, len(found))] = {TIME: time, told: value}
            else:
                record[told] = value
    times = [r[TIME] for r in found.values()]
    alike = all(isinstance(t, str) for t in times) or not any(isinstance(t, str) or t is None for t in times)
    return sorted(found.values(), key=lambda r: r[TIME]) if alike else list(found.values())
