"""Logs of Libre and Open Hardware Monitor (a line of sensor paths, a line of names, and rows) and of MSI Afterburner."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from joulebook_pipelines.logs import afterburner, dialect, meter_reader, prefixes
from joulebook_pipelines.logs.contract import Adapter, Block, Head, Log, LogRefusedError, Part

_PATH = re.compile(r"^/(?P<hardware>[^/]+)(?:/(?P<place>.+))?/(?P<kind>[a-z]+)/\d+$")
_DOMAINS = (
    (r"package", "cpu package {}"), (r"(?:ia )?cores?$", "cpu cores"), (r"core #?(\d+)", "cpu core"), (r"memory|dram", "dram {}"),
    (r"platform", "psys"), (r"graphics", "igpu"),
)  # fmt: skip
"""What the names of a processor's powers say, and the title by which the reader of tables knows it."""

_WHOLE_CARD = re.compile(r"(?i)^gpu (?:power|package|board power)$|total board")


def _paths(line: str) -> list[str]:
    return [cell.strip('" ') for cell in dialect.split_line(line, ",")[1:]]


def titles(paths: str, names: str) -> list[str]:
    """Return titles that say quantity, unit and device of each column; a sensor that is no power only its number.

    Parameters
    ----------
    paths, names
        The first two lines of the file.

    Examples
    --------
    >>> titles(",/intelcpu/0/power/0,/nvidiagpu/0/power/0", 'Time,"CPU Package","GPU Power"')
    ['Time', 'cpu package 0 power [W]', 'gpu 0 power [W]']
    """
    told = [_PATH.match(path) for path in _paths(paths)]
    cards = list(dict.fromkeys((m["hardware"], m["place"]) for m in told if m and _is_card(m["hardware"])))
    first, *sensors = [cell.strip('" ') for cell in dialect.split_line(names, ",")]
    return [first] + [
        f"{_about(match, name, cards)} power [W]" if match and match["kind"] == "power" else f"column {at}"
        for at, (match, name) in enumerate(zip(told, sensors, strict=False), 2)
    ]


def _is_card(hardware: str) -> bool:
    return "gpu" in hardware and "integrated" not in hardware


def _about(match: re.Match[str], name: str, cards: list[tuple[str, str]]) -> str:
    """Return the words for what a power is about."""
    hardware, place = match["hardware"], match["place"] or "0"
    if _is_card(hardware):
        number = cards.index((hardware, match["place"]))
        return f"gpu {number}" if _WHOLE_CARD.search(name) else "gpu core"
    if "gpu" in hardware:
        return "igpu"
    if hardware == "psu":
        return "psu output"
    if "cpu" in hardware:
        for pattern, title in _DOMAINS:
            if found := re.search(pattern, name.casefold()):
                return title.format(place) + (f" {found[1]}" if found.groups() else "")
    return name


def _sniff(head: Head) -> bool:
    if afterburner.is_one(head):
        return True
    if len(head.lines) < 2 or not head.lines[0].lstrip("\ufeff").startswith((",/", ',"/')):
        return False
    return head.lines[1].strip('" ').startswith("Time") and any(_PATH.match(p) for p in _paths(head.lines[0]))


def _parse(log: Log) -> Iterator[Part]:
    if not _sniff(log.head):
        raise LogRefusedError(
            f"{log.name}:1: the first two lines are not the paths and the names of sensors; give the log as the program wrote it, or "
            "take adapter out of its [[source]]"
        )
    if afterburner.is_one(log.head):
        with afterburner.as_table(log) as copy:
            yield from meter_reader.parts(copy)
        return
    wanted = ",".join(f'"{t}"' for t in titles(*log.head.lines[:2]))

    def titled(block: Block) -> list[bytes]:
        lines = block.data.split(b"\n")[: None if not block.terminated else -1]
        return [b"", wanted.encode(), *lines[2:]] if block.first_line == 1 else lines

    head = replace(log.head, text="\n".join(["", wanted, *log.head.lines[2:]]))
    # The program writes month/day/year whatever the country.
    first = log.options.day_first if log.options.day_first is not None else False
    told = replace(log, options=replace(log.options, day_first=first))
    with prefixes.copied(told, titled, head) as copy:
        yield from meter_reader.parts(copy)


ADAPTER = Adapter(
    name="hardware-monitor",
    title="logs of Libre Hardware Monitor, Open Hardware Monitor (CSV) and MSI Afterburner (.hml)",
    yields="power of processor packages, their parts, memory and platform, and of cards",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
