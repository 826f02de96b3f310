"""Rows without titles in which each cell says by itself what it is: a time stamp, and one number with the unit of power."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from joulebook_pipelines.logs import dialect
from joulebook_pipelines.logs.contract import Head

LINES = 400
"""Rows that are looked at."""

_STAMP = re.compile(
    r"^(?:\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d\S*|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?:[A-Z]{3,4} )?\d{4}|"
    r"\d{1,2}/\d{1,2}/\d{4} \d.*|1\d{9}(?:\.\d+)?|1\d{12})$"
)
_POWER = re.compile(r"^[+-]?\d+(?:[.,]\d+)?\s*(?:m|k)?W(?:atts?)?$", re.IGNORECASE)
_NONE = re.compile(r"^\[?(?:n/?a|not supported|unknown error|gpu is lost|err!?)\]?$", re.IGNORECASE)
_CARD = re.compile(r"^(?:[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d|GPU-[0-9a-f-]{8,})$")


@dataclass(frozen=True)
class Places:
    """Positions of the columns, from 1; ``device`` is ``""`` where the rows are about one card."""

    time: str
    power: str
    device: str = ""

    @property
    def columns(self) -> dict[str, str]:
        """As ``columns`` of study.toml would say it."""
        said = {"time": self.time, "power_w": self.power}
        return {**said, "device": self.device} if self.device else said


def find(head: Head) -> Places | None:
    r"""Return where time and power stand in rows without titles; ``None`` where the cells do not say it by themselves.

    Examples
    --------
    >>> find(Head("gpu.csv", "2026/03/02 10:00:00.000, 0, 210.00 W\n2026/03/02 10:00:01.000, 0, 211.00 W\n", "utf-8", True))
    Places(time='1', power='3', device='')
    """
    lines = [line for line in head.lines[:LINES] if line.strip()]
    if not head.complete:
        lines = lines[:-1]
    rows = [dialect.split_line(line, ",") for line in lines]
    widths = [len(row) for row in rows]
    width = max(set(widths), key=widths.count, default=0)
    rows = [r for r in rows if len(r) == width]
    if width < 2 or len(rows) < 2 or len(rows) < 0.9 * len(lines):
        return None
    columns = list(zip(*rows, strict=True))
    times = [i for i, c in enumerate(columns) if all(_STAMP.match(v) for v in c)]
    powers = [
        i
        for i, c in enumerate(columns)
        if any(map(_POWER.match, c)) and all(_POWER.match(v) or _NONE.match(v) for v in c)
    ]
    if len(times) != 1 or len(powers) != 1:
        return None
    cards = _cards(columns, columns[times[0]])
    return None if cards is None else Places(str(times[0] + 1), str(powers[0] + 1), cards)


def _cards(columns: Sequence[Sequence[str]], stamps: Sequence[str]) -> str | None:
    """Return the position of the column that names the card, ``""`` for one card, ``None`` where it cannot be told."""
    named = [i for i, c in enumerate(columns) if all(_CARD.match(v) for v in c)]
    if named:
        return str(named[0] + 1)
    for i, column in enumerate(columns):
        numbers = [int(v) for v in column if v.isdigit() and len(v) <= 2]
        n = len(set(numbers))
        if n > 1 and len(numbers) == len(column) and all(v == at % n for at, v in enumerate(numbers)):
            return str(i + 1)
    return "" if len(set(stamps)) == len(stamps) else None
