"""Which adapter reads a file: exactly one must claim it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import replace

from joulebook.findings import Finding, Severity
from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.logs import (
    bare_rows,
    clues,
    packed,
    prefixes,
    printed_records,
    split_stamps,
    text,
    topics,
    wrapped,
)
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part

TABLES = frozenset({"nvidia-smi-csv", "meter-csv", "meter-json", "power-column"})
"""Adapters that claim a table or its titles anywhere in a line."""

NAMES_HOSTS = frozenset({"nvidia-smi-csv", "meter-csv"})
"""Adapters that read a column of machines."""

BINARY_SAMPLE, BINARY_SHARE = 4_000, 0.05
"""Characters that are looked at, and the share of odd ones from which a file is no text; a crash leaves fewer in a log."""


def named(name: str) -> Adapter:
    """Return the adapter of that name.

    Raises
    ------
    LogRefusedError
        There is none; the nearest name is told.
    """
    for adapter in ADAPTERS:
        if adapter.name == name:
            return _naming_long_lines(adapter)
    near = difflib.get_close_matches(name, [a.name for a in ADAPTERS], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise LogRefusedError(f"there is no adapter {name!r}{hint} (joulebook formats lists them)")


def claims(head: Head) -> list[Adapter]:
    """Return the adapters that claim a file; one that reads what nobody else knows only where no other does."""
    found = [a for a in ADAPTERS if not a.fallback and _claims(a, head)]
    return found or [a for a in ADAPTERS if a.fallback and _claims(a, head)]


def adapter_for(head: Head, *, columns_given: bool = False) -> Adapter:
    """Return the one adapter that claims a file.

    Parameters
    ----------
    head
        The beginning of the file.
    columns_given
        study.toml says what the columns of the file hold, so a table that no adapter knows can be read all the same.

    Raises
    ------
    LogRefusedError
        None or several claim it.
    """
    if split_stamps.found(head):
        whole = adapter_for(split_stamps.plain(head), columns_given=columns_given)
        return _through(whole, split_stamps.joined)
    found = claims(head)
    if found and all(a.fallback for a in found) and _of_cards(head):
        found = []  # a reader of sentences would take the cards for one
    behind = _behind_prefix(head, found)
    if behind is not None:
        return behind
    if not found and bare_rows.find(head) is not None:
        found = [named("meter-csv")]
    if not found and columns_given:
        # A table is the usual case; JSON tells itself by its first sign.
        wanted = "meter-json" if head.text.lstrip()[:1] in {"{", "["} else "meter-csv"
        found = [named(wanted)]
    if len(found) == 1:
        return _naming_long_lines(_without_titles(head, found[0]))
    if not found and _binary(head):
        raise LogRefusedError(
            f"{head.name}: is not text, and no adapter knows this binary format; export it as a table with a time and a power column "
            "(CSV), or leave it out of the study"
        )
    if not found:
        raise LogRefusedError(f"{head.name}: {clues.why_unknown(head)}")
    raise LogRefusedError(
        f'{head.name}: {len(found)} adapters claim this file ({", ".join(a.name for a in found)}); add adapter = "…" to its [[source]]'
    )


def _of_cards(head: Head) -> bool:
    """Tell whether rows without titles, with a time of their own or a collector's before them, are of several cards in turn."""
    dated = prefixes.dated_head(head)
    return any(
        places is not None and places.device != "" for places in map(bare_rows.find, filter(None, (head, dated)))
    )


def _naming_long_lines(adapter: Adapter) -> Adapter:
    """Return the adapter whose refusals name a line that is too long, where the file has one: it hides what is behind it."""

    def parse(log: Log) -> Iterator[Part]:
        try:
            yield from adapter.parse(log)
        except LogRefusedError:
            # What is damaged was said already.
            with suppress(*packed.UNREADABLE):
                text.refuse_long_line(log.path, log.name)
            raise

    return replace(adapter, parse=parse)


def _behind_prefix(head: Head, found: list[Adapter]) -> Adapter | None:
    """Return the adapter of what stands behind a prefix that all lines have, ``None`` where the file is read as it is.

    A table is not read with a prefix on its titles; the readers of dumps know stamps before a line by themselves.
    """
    if any(a.name not in TABLES for a in found):
        return None
    if (inner := wrapped.plain(head)) is not None:
        with suppress(LogRefusedError):
            return _through(adapter_for(inner), wrapped.lines)
    if not found and (records := _of_records(head)) is not None:
        return records
    if (prefix := prefixes.find(head)) is not None:
        inner = prefixes.without(head, prefix)
        if _has_time(inner) and (table := _one_table(inner, found)) is not None:
            if len(prefixes.tellers(head, prefix)) > 1:
                return _of_hosts(table, head, prefix)
            return _through(table, lambda log: prefixes.stripped(log, prefix))
    dated = None if _has_time(head) else prefixes.dated_head(head)
    adapter = None if dated is None else _one_table(dated, found)
    return None if adapter is None else _through(adapter, prefixes.dated)


def _of_records(head: Head) -> Adapter | None:
    """Return the adapter of records behind topics or stamps, or as Python prints them; ``None`` where lines hold none."""
    if topics.find(head) and (table := _one_table(topics.plain(head), [])) is not None:
        return _through(table, topics.objects)
    printed = printed_records.plain(head)
    records = None if printed is None else _one_table(printed, [])
    return _through(records, printed_records.objects) if records is not None and records.name == "meter-json" else None


def _of_hosts(table: Adapter, head: Head, prefix: re.Pattern[str]) -> Adapter:
    """Return the adapter of a table in which each line says of which machine it is; a reader that knows no machines refuses."""
    hosts = prefixes.tellers(head, prefix)
    if table.name in NAMES_HOSTS and any(a.name == table.name for a in claims(prefixes.by_host_head(head, prefix))):
        return _through(table, lambda log: prefixes.by_host(log, prefix))

    def parse(log: Log) -> Iterator[Part]:
        raise LogRefusedError(
            f"{log.name}: lines of several machines ({', '.join(hosts[:4])}) in one file would be taken for one; split it by machine "
            f"(grep '{hosts[0]}' {log.name} > {hosts[0]}.log) and give each part its host in [[source]]"
        )

    return replace(table, parse=parse, appendable=False)


def _has_time(head: Head) -> bool:
    """Tell whether the rows of a table have a time of their own."""
    # A stamp may stand in brackets, as a list of JSON does.
    if bare_rows.find(head) is not None or re.match(r"\s*(?:\{|\[\D)", head.text):
        return True
    titles = next((line for line in head.lines[:20] if re.search(r"[A-Za-z]{3}", line)), "")
    return bool(re.search(r"(?i)(?<![a-z])(?:time|timestamp|date|datetime)(?![a-z])", titles))


def _one_table(head: Head, found: list[Adapter]) -> Adapter | None:
    """Return the adapter of a table behind a prefix, where exactly one claims it."""
    inner = claims(head) or ([named("meter-csv")] if bare_rows.find(head) else [])
    if len(inner) != 1 or (found and inner[0].name not in TABLES):
        return None
    return _without_titles(head, inner[0])


def _through(inner: Adapter, copied: Callable[[Log], AbstractContextManager[Log]]) -> Adapter:
    """Return the adapter that reads a changed copy of the file."""

    def parse(log: Log) -> Iterator[Part]:
        with copied(log) as copy:
            yield from inner.parse(copy)

    # The copy is made anew each time, so that a grown file is read whole.
    return replace(inner, parse=parse, appendable=False)


def _without_titles(head: Head, adapter: Adapter) -> Adapter:
    """Return the adapter as told where time and power stand, where the cells of rows without titles say it themselves."""
    places = bare_rows.find(head) if adapter.name in TABLES else None
    if places is None:
        return adapter

    def parse(log: Log) -> Iterator[Part]:
        said = log.options
        if said.columns:
            yield from adapter.parse(log)
            return
        missing = Finding(
            "header-missing", Severity.NOTE, log.name,
            f"The file has no header; time was read from column {places.time}, power from column {places.power}, the only one in watts"
            + (f", the card from column {places.device}." if places.device else "."), {"columns": places.columns},
        )  # fmt: skip
        yield Part(findings=(missing,))
        units = {"power_w": "W", **said.units}
        for part in adapter.parse(replace(log, options=replace(said, columns=places.columns, units=units))):
            yield replace(part, findings=tuple(f for f in part.findings if f.code != missing.code))

    return replace(adapter, parse=parse, appendable=False)


def _binary(head: Head) -> bool:
    """Tell whether a file is no text: several bytes in a hundred stand for no character that a log holds."""
    sample = head.text[:BINARY_SAMPLE]
    odd = sum((c < " " and c not in "\t\r\n\x1b") or c == "\ufffd" for c in sample)
    return odd > BINARY_SHARE * len(sample)


def _claims(adapter: Adapter, head: Head) -> bool:
    try:
        return adapter.sniff(head)
    except (ValueError, IndexError, KeyError):
        # A sniff that stumbles over foreign text does not claim it.
        return False
