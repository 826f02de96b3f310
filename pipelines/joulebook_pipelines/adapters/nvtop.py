"""``nvtop -s`` in a loop: a list of cards as JSON, a value a line, each list under a collector's time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import entries, looped, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, Part

_MEMBER = r'^\s*"(\w+)"\s*:\s*(?:"([^"]*)"|(null|-?[\d.]+)|\[.*)\s*,?\s*$'
_TOOL = r'^\s*(?:"|[\[\]{}],?\s*$)'
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

    times: looped.Times
    card: int = -1
    rows: int = 0
    waiting: pl.DataFrame | None = None
    told: set[str] = field(default_factory=set)


def _sniff(head: Head) -> bool:
    members = {m[1] for line in head.lines[:200] if (m := re.match(_MEMBER, line))}
    return {_CARD, "power_draw", "gpu_clock"} <= members and "timestamp" not in members


def _parse(log: Log) -> Iterator[Part]:
    lists = sum(line.strip() == "[" for line in log.head.lines)
    rounds = _Rounds(looped.Times.find(log, _TOOL, rounds=lists, cure=_CURE))
    yield Part(findings=(Finding(
        "whole-watts", Severity.NOTE, log.name,
        "nvtop prints whole watts: each reading is known to ±0.5 W, and the scatter of a steady load is that of the rounding.",
    ),))  # fmt: skip
    for block in log.blocks():
        yield _read(block, rounds)
    yield _read(None, rounds)
    yield Part(findings=rounds.times.findings)


def _read(block: Block | None, rounds: _Rounds) -> Part:
    """Return what a block says, ``None`` at the end of the file."""
    lines, rejects = _lines(block, rounds)
    lines = rounds.times.under(lines, pl.col("rest").str.strip_chars() == "[", tool=_TOOL)
    lines = _of_cards(lines, rounds)
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
    fresh = entries.fresh(readings, rounds.told)
    channels = tuple(Channel(d, "board", models.get(d) or "") for d in fresh)
    return Part(block.count if block else 0, readings, pl.concat([*rejects, bad]), channels=channels)


def _lines(block: Block | None, rounds: _Rounds) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return the lines to read now; from the last card on they wait."""
    held = rounds.waiting if rounds.waiting is not None else pl.DataFrame(schema={"line": pl.Int64, "text": pl.String})
    rounds.waiting = None
    if block is None:
        return held, []
    fresh, rejects = looped.lines(block, ends=("]",))
    lines = pl.concat([held, fresh])
    last = lines.filter(pl.col("text").str.contains(f'"{_CARD}"', literal=True))["line"].max()
    if last is not None:
        rounds.waiting, lines = lines.filter(pl.col("line") >= last), lines.filter(pl.col("line") < last)
    return lines, rejects


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
