"""Phase logs as events: a time and ``fit_start`` or ``fit_end`` a line, with or without a header."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import dialect, json_text, phase_pairs, stamps, wall_clock
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part

ORIGIN = "phase log"

_EVENT = re.compile(r"^([A-Za-z][\w ./-]*?)[_ .:-](start|begin|init|end|stop|done|finish)$")
_BEGINS = frozenset({"start", "begin", "init"})
_STAMP = re.compile(r"^\"?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d|\d{10}(\.\d+)?\"?$|\d{13}\"?$)")
_SEPARATORS = (",", ";", "\t", "{", " ")


_TEXT = re.compile(rf"^\[?({stamps.ISO}|\d{{10}}(?:\.\d+)?)\]?[\s:|-]+(.+?)\s*$")
_BEFORE = re.compile(
    r"^(start|begin|init|end|stop|done|finish)(?:t?ed|t?ing)?[\s_:-]+([A-Za-z][\w ./-]*)$", re.IGNORECASE
)
_BEHIND = re.compile(
    r"^([A-Za-z][\w ./-]*?)[\s_:-]+(start|begin|init|end|stop|done|finish)(?:t?ed|t?ing)?$", re.IGNORECASE
)
_AS_TEXT, _AS_JSON = " ", "{"


def _cells(line: str, separator: str) -> list[str]:
    """Return time and event of a line."""
    if separator == _AS_JSON:
        found = json_text.value(line)
        if found is None:
            return [line]
        said = {str(k).lower(): v for k, v in found.items()} if isinstance(found, dict) else {}
        stamp = next((str(said[k]) for k in ("time", "timestamp", "ts", "time_s", "datetime") if k in said), "")
        name = next((str(said[k]) for k in ("phase", "name", "stage", "section") if k in said), "")
        what = next((str(said[k]).lower() for k in ("event", "type", "action", "kind", "ev", "ph") if k in said), "")
        return [stamp, f"{name}_{what.removesuffix('ed')}"]
    if separator != _AS_TEXT:
        return dialect.split_line(line, separator)
    match = _TEXT.match(line)
    if match is None:
        return [line]
    if before := _BEFORE.match(match[2]):
        return [match[1].replace(",", "."), f"{before[2]}_{before[1].lower()}"]
    behind = _BEHIND.match(match[2])
    return [match[1].replace(",", "."), f"{behind[1]}_{behind[2].lower()}" if behind else match[2]]


def _separator(head: Head) -> str | None:
    """Return what separates time and event, ``None`` where the lines are something else."""
    lines = [line for line in head.lines[:60] if line.strip()]
    for separator in _SEPARATORS:
        rows = [_cells(line, separator) for line in lines]
        rows = rows[1:] if rows and not _STAMP.match(rows[0][0]) else rows
        if not rows or any(len(r) < 2 or not _STAMP.match(r[0]) for r in rows[:3]):
            continue
        events = [m for r in rows if len(r) > 1 and (m := _EVENT.match(r[1]))]
        names = {kind: {m[1] for m in events if (m[2] in _BEGINS) is kind} for kind in (True, False)}
        if names[True] & names[False] and 2 * len(events) >= len(rows):
            return separator
    return None


def _parse(log: Log) -> Iterator[Part]:
    separator = _separator(log.head)
    if separator is None:
        raise LogRefusedError(f"{log.name}: needs lines of a time and an event such as fit_start and fit_end")
    samples = [_cells(line, separator)[0] for line in log.head.lines[:100]]
    form = wall_clock.form(log, [s for s in samples if _STAMP.match(s)])
    clock = wall_clock.of(log, form)
    pairs = phase_pairs.Pairs()
    for block in log.blocks():
        raw = block.filled()
        if block.first_line == 1 and raw.height and not _STAMP.match(_cells(raw["raw"][0], separator)[0]):
            raw = raw.slice(1)
        cells = [_cells(line, separator) for line in raw["raw"].to_list()]
        told = raw.with_columns(
            event=pl.Series([c[1] if len(c) > 1 else None for c in cells], dtype=pl.String),
            stamp=pl.Series([c[0] for c in cells], dtype=pl.String),
        )
        naive = told.select(stamps.parse(pl.col("stamp"), form).alias("at")).to_series()
        for line, text, event, at in (
            told.with_columns(clock.to_utc(naive)).select("line", "raw", "event", "at").iter_rows()
        ):
            pairs.add(line, text, _told(event), at)  # events are few
        yield Part(lines=block.count)
    yield pairs.part(log, ORIGIN)


def _told(event: str | None) -> tuple[str, bool] | None:
    """Return the phase of an event and whether it begins there."""
    match = _EVENT.match(event or "")
    return None if match is None else (match[1], match[2] in _BEGINS)


ADAPTER = Adapter(
    name="phase-events",
    title="phase logs as events, a line each (time, fit_start / fit_end), also as JSON or text",
    yields="phases",
    sniff=lambda head: _separator(head) is not None,
    parse=_parse,
)
