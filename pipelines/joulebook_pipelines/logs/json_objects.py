"""Objects inside a JSON text, wherever they lie, with the line on which each begins; what is cut is told, not lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from joulebook_pipelines.logs import table

MOST_BROKEN = 1_000
"""After so many objects that end nowhere the rest is damage."""

_DECODER = json.JSONDecoder()

Found = list[tuple[int, str, dict[str, Any]]]
"""Line, text and members of objects."""


def find(
    text: str, wanted: Callable[[dict[str, Any]], bool], *, mark: str, most: int | None = None
) -> tuple[Found, list[tuple[int, str]]]:
    """Return the objects that are wanted, and line and beginning of those that end nowhere.

    Parameters
    ----------
    wanted
        Whether an object is one; those inside of others are looked at as well.
    mark
        What the beginning of an object holds that is worth telling where it ends nowhere.
    most
        How many objects are enough.
    """
    found: Found = []
    odd: list[tuple[int, str]] = []
    at, line, counted, broken = text.find("{"), 1, 0, 0
    while at >= 0 and broken < MOST_BROKEN and (most is None or len(found) < most):
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            value, end, broken = None, at + 1, broken + 1
        if isinstance(value, dict) and wanted(value):
            found.append((line, " ".join(text[at:end].split()), value))
        else:
            if value is None and mark in (rest := text[at : at + table.LONGEST_RAW].split("\n}", 1)[0]):
                odd.append((line, rest.split("\n", 1)[0]))
            end = at + 1  # wanted ones may lie inside an object that is none
        at = text.find("{", end)
    return found, odd
