"""``liquidctl status`` in a loop: what power supplies with a data port measure of their output, rail by rail and in all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import entries, looped, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part

_BRANCH = r"^\s*[├└|`]──\s*"
_POWER = _BRANCH + r"(Total power output|\S.*? output power)\s\s+(.*?)\s*$"
"""Groups: what is told, its value with the unit."""

_TOTAL = "Total power output"
_ESTIMATE = re.compile(_BRANCH + r"Estimated input power\s", re.MULTILINE)
_MESSAGE = r"(?i)^\s*(?:error|warning|no device|usage)\b|\b(?:failed|could not|traceback)\b"
_CURE = "write the time before each status, e.g. while true; do date -Is; liquidctl --match HX status; sleep 2; done"


@dataclass
class _Reader:
    """What the blocks so far said that those behind need."""

    times: looped.Times
    begin: str
    supply: str | None = None
    supplies: list[str] = field(default_factory=list)
    told: set[str] = field(default_factory=set)


def _sniff(head: Head) -> bool:
    return any(re.match(_POWER, line) for line in head.lines[:300])


def _parse(log: Log) -> Iterator[Part]:
    told = [m for line in log.head.lines if (m := re.match(_POWER, line))]
    if not told:
        raise LogRefusedError(f"{log.name}: no line is the power of an output, as liquidctl status prints them")
    begin = told[0][1]
    times = looped.Times.find(log, _BRANCH, rounds=sum(m[1] == begin for m in told), cure=_CURE)
    reader = _Reader(times, begin)
    for block in log.blocks():
        yield _read(block, reader)
    yield Part(findings=times.findings)
    if _ESTIMATE.search(log.head.text):
        yield Part(findings=(Finding(
            "columns-not-read", Severity.NOTE, log.name,
            "Not read: Estimated input power, which liquidctl works out from the output and a curve of efficiency; the output is what is "
            "measured, on the side of direct current.", {"columns": ["Estimated input power"]},
        ),))  # fmt: skip


def _read(block: Block, reader: _Reader) -> Part:
    lines, rejects = looped.lines(block)
    power = [pl.col("rest").str.extract(_POWER, i) for i in (1, 2)]
    lines = reader.times.under(lines, power[0] == reader.begin).with_columns(name=power[0], raw=power[1])
    lines = _under_supplies(lines, reader)
    rejects.append(table.whole_lines(lines.filter("message").select("line", raw="text"), "tool-message"))
    told = lines.filter(pl.col("name").is_not_null())
    homeless = told.filter(pl.col("supply").is_null())
    rejects.append(table.whole_lines(homeless.select("line", raw="text"), "value-without-device"))
    told = _named(told.filter(pl.col("supply").is_not_null()), reader)
    scopes = {d: "dc" if d.count("/") == 1 else "part" for d in told["device"].unique(maintain_order=True)}
    readings, bad = entries.gather(told.select(list(entries.SCHEMA)), scopes, never_zero=False)
    fresh = entries.fresh(readings, reader.told)
    models = dict(told.select("device", "supply").iter_rows())
    channels = tuple(Channel(d, scopes[d], models[d]) for d in fresh)
    return Part(block.count, readings, pl.concat([*rejects, bad]), channels=channels)


def _under_supplies(lines: pl.DataFrame, reader: _Reader) -> pl.DataFrame:
    """Return the lines with the device under whose name they stand."""
    branch = pl.col("rest").str.contains(_BRANCH)
    lines = lines.with_columns(message=~branch & pl.col("rest").str.contains(_MESSAGE))
    heads = ~(pl.col("own") | branch | pl.col("message"))
    lines = lines.with_columns(
        supply=pl.when(heads)
        .then(pl.col("rest").str.strip_chars())
        .forward_fill()
        .fill_null(pl.lit(reader.supply, pl.String))
    )
    reader.supply = lines["supply"][-1] if lines.height else reader.supply
    return lines


def _named(told: pl.DataFrame, reader: _Reader) -> pl.DataFrame:
    """Return entries: each supply with its number, its output in all or one rail of it."""
    reader.supplies += [s for s in told["supply"].unique(maintain_order=True) if s not in reader.supplies]
    numbers = {s: str(i) for i, s in enumerate(reader.supplies, 1)}
    number = pl.col("supply").replace_strict(numbers, default=None, return_dtype=pl.String)
    rail = pl.col("name").str.strip_suffix(" output power").str.replace_all("/", "-")
    place = pl.when(pl.col("name") == _TOTAL).then(pl.lit("")).otherwise(pl.concat_str(pl.lit("/"), rail))
    return told.with_columns(
        device=pl.concat_str(pl.lit("psu:"), number, pl.lit("/out"), place), row=pl.col("line"), quantity=pl.lit("power_w"),
        header="name", unit=pl.lit("W"),
    )  # fmt: skip


ADAPTER = Adapter(
    name="liquidctl",
    title="liquidctl status (text, looped)",
    yields="output power of power supplies with a data port, in all and by rail",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
