"""JSON of ``rocm-smi`` and ``amd-smi``: one document a round, or rounds in a list, with stamps inside or between them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import polars as pl

from joulebook_pipelines.logs import amd_names, cells, entries, table
from joulebook_pipelines.logs.amd_rounds import Said, Times
from joulebook_pipelines.logs.contract import Head, Log, LogRefusedError

_OPENING = re.compile(r"^[ \t]*(?=[{\[])", re.MULTILINE)
_ROCM = re.compile(r'"card\d+"\s*:\s*\{')
_ROCM_KEY = re.compile(r'"[^"]*(?:\([WC%]\)|\(uJ\))"\s*:')
_AMD = re.compile(r'"gpu"\s*:\s*"?\d+')
_AMD_KEY = re.compile(r'"(?:socket_power|power_usage|total_energy_consumption)"\s*:')


def looks_so(head: Head) -> bool:
    """Tell whether a file begins like such JSON."""
    text = head.text
    if not _OPENING.search(text):
        return False
    return bool((_ROCM.search(text) and _ROCM_KEY.search(text)) or (_AMD.search(text) and _AMD_KEY.search(text)))


@dataclass
class _Found:
    """Entries of the documents so far, what stands between them, and which stamps the documents carry."""

    rows: list[tuple[int, int, str, str, str, str, str, str]] = field(default_factory=list)
    naming: dict[str, dict[str, str]] = field(default_factory=dict)
    between: list[tuple[int, str]] = field(default_factory=list)
    own: list[str] = field(default_factory=list)

    def add(self, number: int, line: int, document: object, said: str) -> None:
        """Take in a document that begins on a line."""
        cursor, mark = 0, self.between[-1][1] if self.between else ""
        for device, flat, stamp in _cards(document):
            self.own.append(stamp)
            begin = _begin(said, device, cursor)
            lowered = {k.lower(): (k, v) for k, v in flat.items()}
            for quantity, best in amd_names.chosen(lowered).items():
                names = (best, *amd_names.others(lowered, best))
                name = next((n for n in names if not _says_nothing(lowered[n][1])), best)
                key, value = lowered[name]
                at = max(said.find(f'"{key}"', begin), 0)
                cursor = max(cursor, at)
                place = said.count("\n", 0, at) + line
                self.rows.append((number, place, device, quantity, name, key, value, stamp or mark))
            self.naming.setdefault(device, {k: v for k, (_, v) in lowered.items() if k in amd_names.NAMING})


def read(log: Log) -> Said:
    """Return what the documents say.

    Raises
    ------
    LogRefusedError
        A document is damaged, or the rounds carry no time.
    """
    text = log.whole_text()
    found, at, line, number = _Found(), 0, 1, 0
    for number, (begin, end, document) in enumerate(_documents(log, text)):
        found.between += [(line + i, p.strip()) for i, p in enumerate(text[at:begin].split("\n")) if p.strip()]
        line += text.count("\n", at, begin)
        try:
            found.add(number, line, document, text[begin:end])
        except RecursionError:
            raise LogRefusedError(f"{log.name}:{line}: nested too deeply for a round") from None
        line += text.count("\n", begin, end)
        at = end
    found.between += [(line + i, p.strip()) for i, p in enumerate(text[at:].split("\n")) if p.strip()]
    if not found.rows:
        raise LogRefusedError(f"{log.name}: no card in it has a quantity that is read")
    stamped = [s for s in found.own if s]
    times = Times(log, stamped[:200] if len(stamped) * 2 > len(found.own) else [], found.rows[0][1], number + 1)
    total = text.count("\n") + (not text.endswith("\n"))
    told = _entries(found, times)
    doubts = times.steps.findings if times.steps is not None else ()
    return Said(told, total, found.naming, _strange(found, times), doubts)


def _says_nothing(text: str) -> bool:
    return text.strip(" ()").lower() in cells.MISSING


def _entries(found: _Found, times: Times) -> pl.DataFrame:
    names = ("doc", "line", "device", "quantity", "name", "header", "raw", "stamp")
    frame = pl.DataFrame(found.rows, schema=names, orient="row")
    stamp = frame["stamp"]
    if times.collector is not None:
        stamp = frame.select(times.collector.split(pl.col("stamp"))[0].alias("stamp")).to_series()
    units = {k: u for k, (_, u) in amd_names.QUANTITIES.items()}
    made = frame.with_columns(
        (times.utc(stamp.fill_null("")) if times.steps is None else times.steps.at(frame["doc"] + 1)).alias("ts_utc"),
        row=pl.struct("doc", "device", "stamp").rle_id(),
        unit=pl.col("name").replace_strict(units, return_dtype=pl.String),
        raw=pl.col("raw").str.strip_chars(" ()"),
    )
    return made.select(pl.col(c).cast(t) for c, t in entries.SCHEMA.items())


def _strange(found: _Found, times: Times) -> pl.DataFrame:
    """Return rejects of lines between the documents that are no stamps."""
    lines = pl.DataFrame(found.between, schema={"line": pl.Int64, "raw": pl.String}, orient="row")
    if times.collector is not None:
        lines = lines.filter(times.collector.split(pl.col("raw"))[0].is_null())
    cut = pl.when(pl.col("raw").str.contains(r"^[{\[]")).then(pl.lit("document-cut")).otherwise(pl.lit("tool-message"))
    return table.whole_lines(lines.filter(~pl.col("raw").is_in([",", "]", "["])), cut)


def _documents(log: Log, text: str) -> Iterator[tuple[int, int, object]]:
    """Yield begin, end and content of each document; one that was cut or damaged is passed over, its whole inner ones are not."""
    decoder, at, search, first_bad = json.JSONDecoder(), 0, 0, 0
    while (opening := _OPENING.search(text, search)) is not None:
        begin = opening.end()
        try:
            document, at = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError) as error:
            first_bad = first_bad or text.count("\n", 0, getattr(error, "pos", begin)) + 1
            below = text.find("\n", begin)
            search = len(text) if below < 0 else below + 1
            continue
        search = at
        yield begin, at, document
    if first_bad and not at:
        raise LogRefusedError(f"{log.name}:{first_bad}: not whole JSON: the output was cut or damaged; log it again")


def _cards(document: object) -> Iterator[tuple[str, dict[str, str], str]]:
    """Yield device, flat values and own stamp of each card of a document."""
    if isinstance(document, list):
        for item in document:
            yield from _cards(item)
    elif isinstance(document, dict):
        stamp = _stamp({k: str(v) for k, v in document.items() if not isinstance(v, (dict, list))})
        device = amd_names.card(str(document["gpu"])) if isinstance(document.get("gpu"), int | str) else None
        if device:
            yield device, dict(_flat(document)), stamp
            return
        for key, value in document.items():
            if isinstance(value, dict) and (device := amd_names.card(key)):
                flat = dict(_flat(value))
                yield device, flat, _stamp(flat) or stamp
            elif isinstance(value, list):
                yield from ((d, flat, own or stamp) for d, flat, own in _cards(value))


def _stamp(flat: Mapping[str, str]) -> str:
    return next((v for k, v in flat.items() if k.lower() in amd_names.TIMES), "")


def _flat(thing: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield the leaves of a card; amd-smi's ``{"value": 36, "unit": "W"}`` is one leaf."""
    for key, value in thing.items():
        if isinstance(value, dict) and "value" in value and "unit" in value:
            yield key, f"{value['value']} {value['unit']}"
        elif isinstance(value, dict):
            yield from _flat(value)
        elif not isinstance(value, list):
            yield key, str(value)


def _begin(said: str, device: str, after: int) -> int:
    """Return where a card begins in the text of a document, from a place on."""
    number = device.removeprefix("gpu:")
    found = re.compile(rf'"(?:card|gpu)?{number}"\s*:|"gpu"\s*:\s*"?{number}\b').search(said, after)
    return found.start() if found else after
