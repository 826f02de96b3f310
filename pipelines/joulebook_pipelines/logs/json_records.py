"""Records of JSON as rows of text cells: lines of objects, lists of objects, columns of lists; whatever is nested in them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from joulebook_pipelines.logs import json_pairs, json_text
from joulebook_pipelines.logs.contract import Head, Log, LogRefusedError
from joulebook_pipelines.logs.meter_titles import meaning

MOST_CELLS = 400
"""Cells of one record that are looked at: a record with more is no reading but a dump."""

LINES_AT_ONCE, LARGEST_DOCUMENT = 20_000, 1 << 26
"""Lines that become one frame, and the bytes of a document that is held whole: a bound on memory."""

MOST_TRIES = 60
"""Objects at the beginning of a file that are looked at for one that knows a time and a power."""

NUMBERS = ("index", "gpu_index", "gpu_id", "gpu", "id", "device_index", "minor_number", "slot")
"""Members that number an element of a list, in order of preference."""

_VALUE = re.compile(r"^[\s\d.,:+TZeE/-]*\d[\s\d.,:+TZeE/-]*\s*[a-zA-Zµ°%]{0,5}$|(?i:^\[?(?:nan|n/?a|null|none)\]?$)")
"""What a reading holds: numbers, stamps, or a word for none. Words make a description of a run, not a reading."""

_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Record:
    """One object of a file.

    Parameters
    ----------
    line
        Physical line on which it begins.
    cells
        Its values as text, by the path of names that leads to them.
    """

    line: int
    cells: dict[str, str]


Knows = Callable[[Sequence[str]], bool]
"""Whether the names of a record are those of a reading."""


def first(head: Head, knows: Knows) -> dict[str, str] | None:
    """Return the cells of the first object at the beginning of a file that is a reading, ``None`` where none is."""
    text = head.text
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    at, tries = text.find("{"), 0
    while at >= 0 and tries < MOST_TRIES:
        tries += 1
        try:
            found, _ = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            for record in (*_columns_turned(found)[:1], found):
                cells = flat(record)
                if knows([n for n, v in cells.items() if not v or _VALUE.match(v)]):
                    return cells
        at = text.find("{", at + 1)
    document = json_text.value(text) if head.complete else json_pairs.closed(text)
    records = _list_in(document, knows)
    return flat(records[0]) if records else None


def is_lines(head: Head) -> bool:
    """Tell whether the file has an object a line."""
    lines = [line for line in head.lines if line.strip()]
    line = lines[0].strip() if lines else ""
    if not line.startswith("{"):
        return False
    found = json_text.members(line)
    # An object whose time is a list is a table by columns; a lone one around a list of timed objects is their document.
    if found is None or (len(lines) == 1 and json_pairs.records(found)):
        return False
    return not any(
        isinstance(v, list) and (meaning(k).role == "time" or (len(lines) == 1 and _are_timed(v)))
        for k, v in found.items()
    )


def _are_timed(values: list[Any]) -> bool:
    """Tell whether a list holds several objects that have a time each."""
    objects = [v for v in values[:3] if isinstance(v, dict)]
    return len(objects) > 1 and all(any(meaning(k).role == "time" for k in o) for o in objects)


def flat(record: dict[str, Any]) -> dict[str, str]:
    """Return the values of an object as text by their path; elements of a list are numbered, as their own index says.

    Examples
    --------
    >>> flat({"time": 1, "gpus": [{"index": 3, "power_w": 210.5}], "note": None})
    {'time': '1', 'gpu 3.index': '3', 'gpu 3.power_w': '210.5', 'note': ''}
    """
    cells: dict[str, str] = {}
    stack: list[tuple[str, Any]] = [("", record)]
    while stack and len(cells) < MOST_CELLS:
        name, value = stack.pop()
        if isinstance(value, dict) and name and value and all(map(_is_element, value, value.values())):
            stack += [(_element(name, int(k)), v) for k, v in reversed(value.items())]
        elif isinstance(value, dict):
            stack += [(f"{name}.{k}" if name else str(k), v) for k, v in reversed(value.items())]
        elif isinstance(value, list):
            stack += [(_element(name, _number(v, i)), v) for i, v in reversed(list(enumerate(value[:64])))]
        elif name:
            cells[name] = "" if value is None else str(value)
    return cells


def _is_element(key: str, value: object) -> bool:
    """Tell whether a member is an element of a list that is written as an object by numbers."""
    return key.isdecimal() and isinstance(value, dict)


def _number(element: object, at: int) -> int:
    """Return the number of an element of a list: its own index, else its place."""
    if isinstance(element, dict):
        found = next((element[n] for n in NUMBERS if n in element), None)
        if isinstance(found, int | str) and str(found).isdigit():
            return int(found)
    return at


@lru_cache(maxsize=4096)
def _element(name: str, number: int) -> str:
    """Return the name of a list's element: ``gpus`` makes ``gpu 0``, ``gpu_power_w`` makes ``gpu 0.power_w``."""
    before, _, last = name.rpartition(".")
    head = f"{before}." if before else ""
    for kind in ("gpu", "cpu", "psu"):
        if match := re.fullmatch(rf"(?:per_)?{kind}s?[_ ]?(.*)", last, re.IGNORECASE):
            return f"{head}{kind} {number}" + (f".{match[1]}" if match[1] else "")
    singular = last[:-1] if last.endswith("s") and len(last) > 3 else last
    return f"{head}{singular} {number}"


def of_document(log: Log, knows: Knows) -> tuple[list[Record], int]:
    """Return the records of a document and its number of lines.

    Raises
    ------
    LogRefusedError
        It is not a whole document, or holds no list of readings.
    """
    text = log.whole_text(LARGEST_DOCUMENT)
    lines = text.count("\n") + (not text.endswith("\n"))
    values, at = [], 0
    try:
        while (match := re.compile(r"[\s,\x1e]*").match(text, at)) is not None and match.end() < len(text):
            value, at = _DECODER.raw_decode(text, match.end())
            values.append((match.end(), value))
    except (ValueError, RecursionError) as error:
        if not values:
            raise LogRefusedError(f"{log.name}: is not a whole JSON document ({error}); export it again") from None
    if len(values) == 1:
        inner = _list_in(values[0][1], knows)
        places = _places(inner, text) or [0] * len(inner)
        records = [Record(1 + text.count("\n", 0, at), flat(v)) for at, v in zip(places, inner, strict=True)]
        if not records and isinstance(values[0][1], dict):
            records = [Record(1, flat(values[0][1]))]
        return records, lines
    return [Record(1 + text.count("\n", 0, p), flat(v)) for p, v in values if isinstance(v, dict)], lines


def _list_in(value: object, knows: Knows) -> list[dict[str, Any]]:
    """Return the longest list of readings in a document."""
    best = json_pairs.records(value)
    if best and knows(list(flat(best[0]))):
        return best
    best = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            turned = _columns_turned(item)
            if len(turned) > len(best) and knows(list(flat(turned[0]))):
                best = turned
            stack += list(item.values())
        elif isinstance(item, list):
            objects = [v for v in item if isinstance(v, dict)]
            if len(objects) > len(best) and any(knows(list(flat(o))) for o in objects[:5]):
                best = objects
            else:
                stack += [v for v in item[:1000] if isinstance(v, (dict, list))]
    return best


def _places(objects: list[dict[str, Any]], text: str) -> list[int]:
    """Return where each object begins in the text; nothing where they were made from columns."""
    places: list[int] = []
    if "\n" not in text.rstrip() or not objects:
        return places
    at = 0
    while len(places) < len(objects) and (at := text.find("{", at)) >= 0:
        try:
            found, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return []
        if found == objects[len(places)]:
            places.append(at)
            at = end
        else:
            at += 1
            if not places and at > 1 << 16:
                return []
    return places if len(places) == len(objects) else []


def _columns_turned(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a table given as lists of equal length as a list of objects; empty where it is none."""
    lists = {k: v for k, v in value.items() if isinstance(v, list) and v and not isinstance(v[0], (dict, list))}
    sizes = {len(v) for v in lists.values()}
    if len(lists) < 2 or len(sizes) != 1:
        return []
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
