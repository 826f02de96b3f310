"""Messages as ``mosquitto_sub -v`` and its like print them: a stamp or none, the topic, the payload.

Such a file is read as lines of JSON that name the device of the topic; line numbers stay.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from joulebook_pipelines.logs import prefixes, stamps
from joulebook_pipelines.logs.contract import Block, Head, Log
from joulebook_pipelines.logs.meter_titles import meaning

LINES, LEAST_SHARE = 200, 0.5
"""Lines that are looked at, and the share of them that must be messages with numbers: states and farewells stand between."""

_STAMP = rf"{stamps.ISO}|1\d{{9}}(?:\.\d+)?|1\d{{12}}"
_CONSOLE = r"(?:\d\d:\d\d:\d\d(?:\.\d+)?(?:-\d+(?:/\d+)?)? (?:MQT|RSL): )?"
"""What Tasmota's console has in front: a time of day; the message has the whole one."""

_LINE = re.compile(
    rf"^(?:\[?({_STAMP})\]?[:,]?\s+)?{_CONSOLE}([A-Za-z][\w.:+-]*(?:/[\w.:+-]+)+)[:,]?\s+(?:=\s)?(\{{.*\}}|[+-]?\d+(?:\.\d+)?)\s*$"
)
_COMMON = frozenset({
    "tele", "stat", "cmnd", "sensor", "state", "status", "zigbee2mqtt", "shellies", "relay", "emeter", "switch:0", "events", "rpc",
    "homeassistant", "0",
})  # fmt: skip
"""Words of topics that are not the name of the device."""


def find(head: Head) -> bool:
    r"""Tell whether the lines of a file are messages of topics.

    Examples
    --------
    >>> find(Head("plug.log", 'tele/plug7/SENSOR {"ENERGY": {"Power": 101}}\n', "utf-8", True))
    True
    """
    lines = [line for line in head.lines[:LINES] if line.strip()]
    return bool(lines) and sum(map(bool, map(_LINE.match, lines))) >= max(LEAST_SHARE * len(lines), 1)


def _message(line: str) -> str:
    """Return a line as an object; one that is no message stays."""
    match = _LINE.match(line)
    if match is None:
        return line
    stamp, topic, payload = match.groups()
    words = topic.split("/")
    name = "/".join(w for w in words[: None if payload.startswith("{") else -1] if w.casefold() not in _COMMON)
    said = {"device": name or topic}
    if not payload.startswith("{"):
        return json.dumps({**({"timestamp": stamp} if stamp else {}), **said, words[-1]: payload})
    own = [k for k in re.findall(r'"(\w+)"\s*:', payload) if meaning(k).role == "time"]
    told = {"timestamp": stamp, **said} if stamp and not own else said
    rest = payload[1:].strip()
    return json.dumps(told)[:-1] + ("" if rest == "}" else ", ") + rest


def plain(head: Head) -> Head:
    """Return the head of the file as lines of JSON."""
    return replace(head, text="\n".join(map(_message, head.lines)))


@contextmanager
def objects(log: Log) -> Generator[Log]:
    """Give the file as lines of JSON, in a copy that is deleted afterwards."""

    def told(block: Block) -> list[bytes]:
        return [_message(line).encode() for line in block.lines]

    with prefixes.copied(log, told, plain(log.head)) as copy:
        yield copy
