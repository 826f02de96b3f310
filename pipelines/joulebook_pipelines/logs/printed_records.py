"""Records that a script prints: dictionaries of Python, or JSON behind a stamp or under one; read as lines of JSON.

python-kasa and the tools around Tapo plugs print their answers so. Line numbers stay.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import polars as pl

from joulebook_pipelines.logs import json_text, prefixes, stamp_lines
from joulebook_pipelines.logs.contract import Block, Head, Log
from joulebook_pipelines.logs.meter_titles import meaning

LINES, LEAST_SHARE = 200, 0.5
"""Lines that are looked at, and the share of them that must be records or stamps: farewells and errors stand between."""

LONGEST = 1 << 16
"""A longer line is a dump of something else."""

TITLE = "timestamp"
_EMETER = re.compile(r"^<EmeterStatus (?:\w+=\S+ ?)+>$")
_EMETER_UNITS = {"power": "power_w", "voltage": "voltage_v", "current": "current_a", "total": "total_kwh"}
"""How python-kasa prints what a plug measures, in which units."""

_OF_NUMPY = re.compile(r"\b(?:np|numpy)\.\w+\(([^()]*)\)")
_DATETIME = re.compile(r"\bdatetime\.datetime\((\d+(?:, \d+){2,6})((?:, tzinfo=[\w.()=]*(?:utc|UTC)[\w.()']*)?)\)")
_NAN = re.compile(r"(?<=[:\[,] )(?:nan|-?inf)\b")
"""What Python prints of values that have no literal."""

_NO_TOOL = re.compile(r"^\s*[{<\[]+'")


def plain(head: Head) -> Head | None:
    r"""Return the head of the file as lines of JSON, ``None`` where it prints no records, or is JSON already.

    Examples
    --------
    >>> lines = "{'time': 1700000000, 'power_w': 71.5, 'on': True}\n{'time': 1700000001, 'power_w': 72.0, 'on': True}\n"
    >>> plain(Head("plug.log", lines, "utf-8", True)).lines[1]
    '{"time": 1700000001, "power_w": 72.0, "on": true}'
    """
    lines = [line for line in head.lines[:LINES] if line.strip()]
    told = [_apart(line) for line in lines]
    if not any(r for _, r in told) or all(json_text.members(line) is not None for line in lines):
        return None
    if sum(bool(r or s) for s, r in told) < LEAST_SHARE * len(lines):
        return None
    # Stamps of the head only stand for the true ones, each later than the one before.
    rows, stamps, known = [], 1_700_000_000, False
    for line in head.lines:
        stamp, record = _apart(line)
        stamps, known = stamps + bool(stamp), known or bool(stamp)
        rows.append(_row(str(stamps) if known else "", record) if stamp or record else line)
    return replace(head, text="\n".join(rows), encoding="utf-8")


@contextmanager
def objects(log: Log) -> Generator[Log]:
    """Give the file as lines of JSON with the collector's times in UTC, in a copy that is deleted afterwards.

    Raises
    ------
    LogRefusedError
        The stamps carry no zone, or no day, and study.toml names none.
    """
    timed = any(s and not (r and _has_time(r)) for s, r in map(_apart, log.head.lines[:LINES]))
    found = stamp_lines.find(log, _NO_TOOL, of_day=True) if timed else None
    last = ""

    def told(block: Block) -> list[bytes]:
        nonlocal last
        texts = pl.DataFrame({"raw": block.lines})
        if found is None:
            times: list[str | None] = [""] * texts.height
        else:
            stamp, _, meant = found.split(pl.col("raw"))
            utc = found.utc(texts, stamp).dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
            # A line that begins with a stamp that cannot be read has no time, and not that of the stamp before.
            now = texts.with_columns(iso=utc).select(
                pl.when(meant).then(pl.coalesce("iso", pl.lit("?"))).otherwise("iso")
            )
            times = now.to_series().forward_fill().fill_null(last).to_list()
            last = str(times[-1]) if times else last
        return [_told(line, time or "").encode() for line, time in zip(block.lines, times, strict=True)]

    with prefixes.copied(log, told, plain(log.head) or log.head) as copy:
        yield copy


def _told(line: str, time: str) -> str:
    stamp, record = _apart(line)
    return _row(time, record) if stamp or record else line


def _row(time: str, record: dict[str, Any] | None) -> str:
    """Return a record as a line of JSON, with the collector's time where it has none of its own; ``""`` where there is none."""
    if record is None:
        return ""
    return json.dumps(record if not time or _has_time(record) else {TITLE: time, **record})


def _has_time(record: dict[str, Any]) -> bool:
    return any(meaning(k).role in {"time", "clock"} for k in record)


def _apart(line: str) -> tuple[str, dict[str, Any] | None]:
    """Return the stamp of a line, ``""`` where it has none, and the record behind it; text behind a stamp is neither."""
    if record := _record(line.strip()):
        return "", record
    for form in (*stamp_lines.FORMS.values(), stamp_lines.OF_DAY):
        if match := re.match(f"{stamp_lines.LEAD}({form}){stamp_lines.TAIL}", f"{line} "):
            rest = match[2].lstrip(": ").strip()
            record = _record(rest)
            return (match[1], record) if record or not rest else ("", None)
    return "", None


def _record(text: str) -> dict[str, Any] | None:
    """Return the members of an object of JSON or Python, ``None`` where a text is none."""
    if len(text) > LONGEST:
        return None
    if _EMETER.match(text):
        cells = dict(p.split("=", 1) for p in text[1:-1].split()[1:])
        return {_EMETER_UNITS.get(k, k): v for k, v in cells.items()}
    if not (text.startswith("{") and text.endswith("}")):
        return None
    found = json_text.members(text)
    if found is None:
        written = _NAN.sub("None", _DATETIME.sub(_stamp, _OF_NUMPY.sub(r"\1", text)))
        try:
            found = ast.literal_eval(written)
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            return None
    return (
        found
        if isinstance(found, dict) and found and all(isinstance(k, str) for k in found) and _is_plain(found)
        else None
    )


def _is_plain(record: dict[str, Any]) -> bool:
    """Tell whether a record can be written as JSON: bytes and sets cannot."""
    try:
        json.dumps(record)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _stamp(match: re.Match[str]) -> str:
    """Return what ``repr`` of a datetime says as a stamp."""
    year, month, day, *clock = (int(n) for n in match[1].split(", "))
    hour, minute, second, micro = [*clock, 0, 0, 0, 0][:4]
    return (
        f"'{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}.{micro:06d}{'Z' if match[2] else ''}'"
    )
