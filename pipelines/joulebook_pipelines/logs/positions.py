"""Which columns of a table without a header may be the time and the power: an example to start from, never more."""

from __future__ import annotations

import re

import numpy as np

from joulebook_pipelines.logs import dialect
from joulebook_pipelines.logs.text import Head

_PLAIN = re.compile(r"\s*[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*")
_WATTS = re.compile(r"[+-]?\d+(?:[.,]\d+)?\s*[mk]?W(?:atts?)?")
_LINES = 50
"""Lines that are looked at."""


def likely(head: Head, width: int) -> tuple[int, int]:
    """Return the positions, from 1, of what looks like the time and like the power.

    A time grows from line to line; a power is written with a point, where a load or a size in memory is a whole number.

    Parameters
    ----------
    head
        Beginning of the file.
    width
        Number of its columns, at least two.
    """
    rows = _rows(head, width)
    growing = [i for i in range(width) if _grows([r[i] for r in rows])]
    time = growing[0] if growing else 0
    watts = next((i for i in range(width) if rows and all(_WATTS.fullmatch(r[i]) for r in rows)), None)
    if watts is not None:
        return time + 1, watts + 1
    others = [i for i in range(width) if i != time and all(dialect.is_number(r[i]) for r in rows[:1])]
    with_point = (i for i in others if any(re.search(r"\d[.,]\d", r[i]) for r in rows))
    return time + 1, next(with_point, next(iter(others), 1 if time == 0 else 0)) + 1


def _rows(head: Head, width: int) -> list[list[str]]:
    lines = [line for line in head.lines[:_LINES] if line.strip()]
    for separator in dialect.SEPARATORS:
        rows = [r for line in lines if len(r := dialect.split_line(line, separator)) == width]
        if rows:
            return rows
    return []


def _grows(cells: list[str]) -> bool:
    """Tell whether numbers grow from each line to the next."""
    if not all(_PLAIN.fullmatch(c) for c in cells):
        return False
    steps = np.diff([float(c) for c in cells])
    return bool(steps.size and (steps > 0).all())
