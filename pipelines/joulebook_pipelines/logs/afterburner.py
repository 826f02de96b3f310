"""Logs of MSI Afterburner (``.hml``) as the tables that they are: a number at the beginning of each line says what it holds."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from joulebook_pipelines.logs import prefixes
from joulebook_pipelines.logs.contract import Block, Head, Log, LogRefusedError

_BEGINS = re.compile(r"^00,\s*\d\d-\d\d-\d{4} \d\d:\d\d:\d\d,\s*Hardware monitoring log")
_CARD = re.compile(r"(?i)^(?:gpu ?(\d*) )?(power|usage|temperature)$")
_OF_PROGRAM = frozenset({"00", "01", "03"})
"""Lines about the log, the cards, and the scale of each source."""

_WORDS = {"power": "power", "usage": "utilization", "temperature": "temperature"}


def is_one(head: Head) -> bool:
    """Tell whether a file begins as the program begins its logs."""
    return bool(head.lines and _BEGINS.match(head.lines[0]))


def title(name: str, unit: str) -> str:
    """Return the title by which the reader of tables knows a source, with its unit; ``""`` for one that is no power, load or heat.

    Examples
    --------
    >>> title("Power", "W"), title("GPU2 power", "W"), title("CPU power", "W"), title("Power", "%")
    ('gpu 0 power [W]', 'gpu 1 power [W]', 'cpu package 0 power [W]', '')
    """
    if name.lower() == "cpu power" and unit == "W":
        return "cpu package 0 power [W]"
    card = _CARD.match(name)
    # A power in percent is a share of the card's limit, which the log does not say.
    if (
        card is None
        or (card[2].lower() == "power" and unit != "W")
        or (not card[1] and card[0].lower() in {"usage", "temperature"})
    ):
        return ""
    number = int(card[1]) - 1 if card[1] else 0
    return f"gpu {number} {_WORDS[card[2].lower()]} [{unit.strip('°') or '%'}]"


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split(",")]


def _titles(lines: Sequence[str]) -> list[str]:
    """Return the titles of the columns: the names, with the units that stand below them."""
    named = next((_cells(line)[2:] for line in lines if line.startswith("02,")), [])
    told = (_cells(line) for line in lines if line.startswith("03,"))
    units = {row[3]: row[4] for row in told if len(row) > 4}
    return [title(name, units.get(name, "")) or f"column {at}" for at, name in enumerate(named, 1)]


@contextmanager
def as_table(log: Log) -> Generator[Log]:
    """Give the log as a table with a header, a row a sample; line numbers stay.

    Raises
    ------
    LogRefusedError
        No source of the log is a power in watts.
    """
    titles = _titles(log.head.lines)
    if not any("power" in t for t in titles):
        names = ", ".join(_cells(next((x for x in log.head.lines if x.startswith("02,")), ""))[2:])
        raise LogRefusedError(
            f"{log.name}:3: none of its sources ({names[:200]}) is a power in watts; "
            "choose Power (W) in the monitoring settings and log again"
        )
    names = next(line for line in log.head.lines if line.startswith("02,"))
    header = ",".join(["timestamp", *titles])

    def row(line: str) -> str:
        kind, _, rest = line.partition(",")
        if kind == "80":
            return rest
        if kind == "02":
            # Another choice of sources begins another table.
            return header if _cells(line)[2:] == _cells(names)[2:] else ",".join(["timestamp", *_cells(line)[2:]])
        return "" if kind in _OF_PROGRAM else line

    def rows(block: Block) -> list[bytes]:
        return [row(line).encode() for line in block.lines]

    head = replace(log.head, text="\n".join(map(row, log.head.lines)))
    told = replace(log, options=replace(log.options, day_first=True))
    with prefixes.copied(told, rows, head) as copy:
        yield copy
