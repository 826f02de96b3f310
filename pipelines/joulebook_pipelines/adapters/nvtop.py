"""``nvtop -s`` in a loop: a list of cards as JSON, a value a line, each list under a collector's time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import entries, stamp_lines, table, untimed
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, Part
from joulebook_pipelines.logs.stamp_lines import StampLines

_MEMBER = r'^\s*"(\w+)"\s*:\s*(?:"([^"]*)"|(null|-?[\d.]+)|\[.*)\s*,?\s*$'
_TOOL = re.compile(r'^\s*(?:"|[\[\]{}],?\s*$)')
_DRAWN = r'^\s*(?:"\w+"\s*:|[\[\]{}])'
_CARD = "device_name"
_QUANTITIES = {
    "power_draw": ("power_w", ""), "temp": ("temperature_c", ""), "gpu_util": ("utilization_ratio", "percent"),
    "gpu_clock": ("sm_clock_hz", ""), "mem_clock": ("memory_clock_hz", ""), "mem_used": ("memory_used_bytes", "B"),
}  # fmt: skip
"""Members that are read; most carry their unit with the number."""

_CURE = "write the time before each list, e.g. while true; do date -Is; nvtop -s; sleep 1; done"


@dataclass
class _Rounds:
    """What the blocks so far said that those behind need; the last card of a block waits for its other members."""

    clock: StampLines | untimed.Steps | untimed.Moment
    stamp: str | None = None
    card: int = -1
    rows: int = 0
    passed: int = 0
    waiting: pl.DataFrame | None = None
    told: set[str] = field(default_factory=set)


def _sniff(head: Head) -> bool:
    members = {m[1] for line in head.lines[:200] if (m := re.match(_MEMBER, line))}
    return {_CARD, "power_draw", "gpu_clock"} <= members and "timestamp" not in members


def _parse(log: Log) -> Iterator[Part]:
    clock = stamp_lines.find(log.head.lines, log.options, log.name, _TOOL)
    lists = sum(line.strip() == "[" for line in log.head.lines)
    rounds = _Rounds(clock or untimed.of_dumps(log, lists, _CURE))
    yield Part(findings=(Finding(
        "whole-watts", Severity.NOTE, log.name,
        "nvtop prints whole watts: each reading is known to ±0.5 W, and the scatter of a steady load is that of the rounding.",
    ),))  # fmt: skip
    for block in log.blocks():
        yield _read(block, rounds)
    yield _read(None, rounds)
    yield Part(findings=() if isinstance(rounds.clock, StampLines) else rounds.clock.findings)


def _read(block: Block | None, rounds: _Rounds) -> Part:
    """Return what a block says, ``None`` at the end of the file."""
    lines, rejects = _lines(block, rounds)
    lines = _of_cards(_under_stamps(lines, rounds), rounds)
    odd = lines.filter(~pl.col("own") & ~pl.col("rest").str.contains(_DRAWN))
    rejects.append(table.whole_lines(odd.select("line", raw="text"), "tool-message"))
    told = lines.filter(pl.col("name").is_in(list(_QUANTITIES)) & pl.col("device").is_not_null())
    quantities, units = ({n: q[i] for n, q in _QUANTITIES.items()} for i in (0, 1))
    told = told.with_columns(
        quantity=pl.col("name").replace_strict(quantities, default=None, return_dtype=pl.String),
        unit=pl.col("name").replace_strict(units, default=None, return_dtype=pl.String), header="name",
    )  # fmt: skip
    # What a card does not have is null; a power that lacks is told.
    told = told.filter((pl.col("raw") != "null") | (pl.col("name") == "power_draw"))
    devices = told["device"].unique(maintain_order=True).to_list()
    readings, bad = entries.gather(told.select(list(entries.SCHEMA)), dict.fromkeys(devices, "board"))
    models = dict(lines.filter(pl.col("name") == _CARD).select("device", "raw").iter_rows())
    fresh = [d for d in readings["device"].unique(maintain_order=True) if d not in rounds.told]
    rounds.told |= set(fresh)
    channels = tuple(Channel(d, "board", models.get(d) or "") for d in fresh)
    return Part(block.count if block else 0, readings, pl.concat([*rejects, bad]), channels=channels)


def _lines(block: Block | None, rounds: _Rounds) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return the lines to read now; from the last card on they wait."""
    held = rounds.waiting if rounds.waiting is not None else pl.DataFrame(schema={"line": pl.Int64, "text": pl.String})
    rounds.waiting = None
    if block is None:
        return held, []
    rejects = []
    if b"\x00" in block.data:
        block, nul = table.without_nul(block)
        rejects.append(nul)
    numbers = pl.int_range(block.first_line, block.first_line + block.count, eager=True, dtype=pl.Int64)
    fresh = pl.DataFrame({"line": numbers, "text": block.lines}).filter(pl.col("text").str.strip_chars() != "")
    if not block.terminated and fresh.height and not fresh["text"][-1].rstrip().endswith("]"):
        rejects.append(table.whole_lines(fresh.tail(1).rename({"text": "raw"}), "last-line-cut"))
        fresh = fresh.head(fresh.height - 1)
    lines = pl.concat([held, fresh])
    last = lines.filter(pl.col("text").str.contains(f'"{_CARD}"', literal=True))["line"].max()
    if last is not None:
        rounds.waiting, lines = lines.filter(pl.col("line") >= last), lines.filter(pl.col("line") < last)
    return lines, rejects


def _under_stamps(lines: pl.DataFrame, rounds: _Rounds) -> pl.DataFrame:
    """Return the lines without what a collector put before them, with their time."""
    clock = rounds.clock
    if isinstance(clock, StampLines):
        stamp, rest, _ = clock.split(pl.col("text"))
        tool = pl.col("text").str.contains(_TOOL.pattern)
        lines = lines.with_columns(stamp=pl.when(~tool).then(stamp), rest=pl.when(tool).then("text").otherwise(rest))
        lines = lines.with_columns(
            pl.col("stamp").forward_fill().fill_null(pl.lit(rounds.stamp, pl.String)),
            own=pl.col("stamp").is_not_null() & (pl.col("rest").str.strip_chars() == ""),
        )
        rounds.stamp = lines["stamp"][-1] if lines.height else rounds.stamp
        utc = clock.clock.to_utc(lines.select(clock.naive(pl.col("stamp")).alias("ts_utc")).to_series())
        return lines.with_columns(utc.alias("ts_utc"))
    begins = pl.col("text").str.strip_chars() == "["
    number = lines.select(begins.cast(pl.Int64).cum_sum() + rounds.passed).to_series()
    rounds.passed = int(number[-1]) if lines.height else rounds.passed
    utc = clock.at(number.clip(lower_bound=1))
    return lines.with_columns(utc.alias("ts_utc"), rest="text", own=pl.lit(value=False))


def _of_cards(lines: pl.DataFrame, rounds: _Rounds) -> pl.DataFrame:
    """Return the members with the card that they are about: cards are numbered by their place in the list."""
    member = [pl.col("rest").str.extract(_MEMBER, i) for i in (1, 2, 3)]
    lines = lines.with_columns(name=member[0], raw=pl.coalesce(member[1], member[2]))
    lines = lines.with_columns(
        fresh=(pl.col("name") == _CARD).fill_null(value=False).cast(pl.Int64),
        opens=(pl.col("rest").str.strip_chars() == "[").cast(pl.Int64).cum_sum(),
    )
    before = pl.when(pl.col("opens") == 0).then(rounds.card).otherwise(-1)
    lines = lines.with_columns(
        card=pl.col("fresh").cum_sum().over("opens") + before, row=pl.col("fresh").cum_sum() + rounds.rows
    )
    if lines.height:
        rounds.card, rounds.rows = int(lines["card"][-1]), int(lines["row"][-1])
    return lines.with_columns(device=pl.when(pl.col("card") >= 0).then(pl.format("gpu:{}", "card")))


ADAPTER = Adapter(
    name="nvtop",
    title="nvtop -s (JSON, looped)",
    yields="board power in whole watts, utilisation, memory, temperature and clocks per card",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
