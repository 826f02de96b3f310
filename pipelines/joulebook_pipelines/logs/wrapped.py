"""Lines of a tool that a collector wrapped into JSON: Docker's log files, ``journalctl -o json``, Fluent Bit, cloud logs.

Such a file is read as the lines that the tool printed, each behind the collector's time; line numbers stay.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from joulebook_pipelines.logs import json_text, prefixes
from joulebook_pipelines.logs.contract import Block, Head, Log

LINES, LEAST_SHARE = 200, 0.9
"""Lines that are looked at, and the share of them that must hold a line of a tool."""

_SAID = ("log", "MESSAGE", "message", "msg", "line", "textPayload")
_TIMES = ("time", "timestamp", "@timestamp", "ts", "_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP")
"""The tool's line and the collector's time, by the names that collectors give them; the journal's time is in microseconds."""


def _unwrapped(line: str) -> str | None:
    """Return what a tool printed, behind the collector's time; ``None`` where a line wraps nothing."""
    if not line.lstrip().startswith("{"):
        return None
    found = json_text.members(line) or {}
    said = next((found[k] for k in _SAID if isinstance(found.get(k), str)), None)
    if said is None:
        return None
    text = " ".join(said.splitlines())
    time = next((str(found[k]) for k in _TIMES if isinstance(found.get(k), str)), "")
    if time.isdigit() and len(time) == _MICROSECONDS:
        time = datetime.fromtimestamp(int(time) / 1e6, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return f"{time} {text}" if time and text else text


_MICROSECONDS = 16
"""Digits of Unix time in microseconds."""


def plain(head: Head) -> Head | None:
    r"""Return the head of the file as the tool's lines, ``None`` where its lines wrap none.

    Examples
    --------
    >>> line = '{"log": "0, 71.5 W\\n", "stream": "stdout", "time": "2026-03-02T10:00:00Z"}'
    >>> plain(Head("c-json.log", line, "utf-8", True)).text
    '2026-03-02T10:00:00Z 0, 71.5 W'
    """
    if not head.text.lstrip().startswith("{"):
        return None
    lines = [line for line in head.lines[:LINES] if line.strip()]
    if sum(_unwrapped(line) is not None for line in lines) < LEAST_SHARE * len(lines):
        return None
    return replace(head, text="\n".join(_unwrapped(line) or line for line in head.lines))


@contextmanager
def lines(log: Log) -> Generator[Log]:
    """Give the file as the tool's lines, in a copy that is deleted afterwards; a line that wraps nothing stays."""

    def told(block: Block) -> list[bytes]:
        return [(line if (said := _unwrapped(line)) is None else said).encode() for line in block.lines]

    with prefixes.copied(log, told, plain(log.head) or log.head) as copy:
        yield copy
