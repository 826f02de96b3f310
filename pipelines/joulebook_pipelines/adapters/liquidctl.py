"""``liquidctl status`` in a loop: what power supplies with a data port measure of their output, rail by rail and in all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import entries, stamp_lines, table, untimed
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.stamp_lines import StampLines

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

    clock: StampLines | untimed.Steps | untimed.Moment
    begin: str
    stamp: str | None = None
    supply: str | None = None
    passed: int = 0
    supplies: list[str] = field(default_factory=list)
    told: set[str] = field(default_factory=set)


def _sniff(head: Head) -> bool:
    return any(re.match(_POWER, line) for line in head.lines[:300])


def _parse(log: Log) -> Iterator[Part]:
    told = [m for line in log.head.lines if (m := re.match(_POWER, line))]
    if not told:
        raise LogRefusedError(f"{log.name}: no line is the power of an output, as liquidctl status prints them")
    clock = stamp_lines.find(log.head.lines, log.options, log.name, re.compile(_BRANCH))
    begin = told[0][1]
    dumps = sum(m[1] == begin for m in told)
    reader = _Reader(clock or untimed.of_dumps(log, dumps, _CURE), begin)
    for block in log.blocks():
        yield _read(block, reader)
    yield Part(findings=() if isinstance(reader.clock, StampLines) else reader.clock.findings)
    if _ESTIMATE.search(log.head.text):
        yield Part(findings=(Finding(
            "columns-not-read", Severity.NOTE, log.name,
            "Not read: Estimated input power, which liquidctl works out from the output and a curve of efficiency; the output is what is "
            "measured, on the side of direct current.", {"columns": ["Estimated input power"]},
        ),))  # fmt: skip


def _read(block: Block, reader: _Reader) -> Part:
    count, rejects = block.count, []
    if b"\x00" in block.data:
        block, nul = table.without_nul(block)
        rejects.append(nul)
    numbers = pl.int_range(block.first_line, block.first_line + block.count, eager=True, dtype=pl.Int64)
    lines = pl.DataFrame({"line": numbers, "text": block.lines}).filter(pl.col("text").str.strip_chars() != "")
    if not block.terminated and lines.height:
        rejects.append(table.whole_lines(lines.tail(1).rename({"text": "raw"}), "last-line-cut"))
        lines = lines.head(lines.height - 1)
    lines = _under_supplies(_under_stamps(lines, reader), reader)
    rejects.append(table.whole_lines(lines.filter("message").select("line", raw="text"), "tool-message"))
    told = lines.filter(pl.col("name").is_not_null())
    homeless = told.filter(pl.col("supply").is_null())
    rejects.append(table.whole_lines(homeless.select("line", raw="text"), "value-without-device"))
    told = _named(told.filter(pl.col("supply").is_not_null()), reader)
    scopes = {d: "dc" if d.count("/") == 1 else "part" for d in told["device"].unique(maintain_order=True)}
    readings, bad = entries.gather(told.select(list(entries.SCHEMA)), scopes, never_zero=False)
    fresh = [d for d in readings["device"].unique(maintain_order=True) if d not in reader.told]
    reader.told |= set(fresh)
    models = dict(told.select("device", "supply").iter_rows())
    channels = tuple(Channel(d, scopes[d], models[d]) for d in fresh)
    return Part(count, readings, pl.concat([*rejects, bad]), channels=channels)


def _under_stamps(lines: pl.DataFrame, reader: _Reader) -> pl.DataFrame:
    """Return the lines without what a collector put before them, with their time and what they say."""
    clock = reader.clock
    if isinstance(clock, StampLines):
        stamp, rest, _ = clock.split(pl.col("text"))
        lines = lines.with_columns(stamp=stamp, rest=rest)
        lines = lines.with_columns(
            pl.col("stamp").forward_fill().fill_null(pl.lit(reader.stamp, pl.String)),
            own=pl.col("stamp").is_not_null() & (pl.col("rest").str.strip_chars() == ""),
        )
        reader.stamp = lines["stamp"][-1] if lines.height else reader.stamp
        utc = clock.clock.to_utc(lines.select(clock.naive(pl.col("stamp")).alias("ts_utc")).to_series())
    else:
        lines = lines.with_columns(rest="text", own=pl.lit(value=False))
        begins = pl.col("rest").str.extract(_POWER, 1) == reader.begin
        number = lines.select(begins.fill_null(value=False).cast(pl.Int64).cum_sum() + reader.passed).to_series()
        reader.passed = int(number[-1]) if lines.height else reader.passed
        utc = clock.at(number.clip(lower_bound=1))
    return lines.with_columns(
        utc.alias("ts_utc"), name=pl.col("rest").str.extract(_POWER, 1), raw=pl.col("rest").str.extract(_POWER, 2)
    )


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
