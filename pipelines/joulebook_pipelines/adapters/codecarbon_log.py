"""What CodeCarbon's tracker prints while it runs: energies since the start, with the power of the last interval."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import entries, local_time, relative, stamps, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part

_LINE = r"\[codecarbon \w+ @ (\d\d:\d\d:\d\d)\] (.*)$"
_ISO = stamps.ISO
_DATED = rf"^\W{{0,2}}({_ISO})(\W.*)$"
"""A program that has its own form of log lines writes the tracker's messages in it."""

_MESSAGES = r"Energy consumed for |kWh of electricity"
_ENERGY = r"Energy consumed for (RAM|all GPUs|all CPUs|All CPU|all CPU|CPU|GPU)\s*: ([\d.eE+-]+) kWh"
_POWER = r"(?:RAM|All GPUs|All CPUs|CPU|GPU|Total CPU|Total GPU|All CPU)\s*Power\s*: ([\d.eE+-]+) W"
_TOTAL = r"[\]:|-]\s*([\d.eE+-]+) kWh of electricity(?: and [\d.eE+-]+ L of water)? (?:were )?used since the beginning"
_DEVICES = {"RAM": ("dram", "dram")}
_GPU, _CPU = ("gpu", "board"), ("cpu", "package")
_SCOPES = {"dram": "dram", "gpu": "board", "cpu": "package", "components": "components"}


def _sniff(head: Head) -> bool:
    own = re.search(r"(?m)^\S*\s*\[codecarbon \w+ @ \d\d:\d\d:\d\d\] Energy consumed for ", head.text) is not None
    return own or ("[codecarbon " in head.text and re.search(_TOTAL, head.text) is not None) or bool(_dated(head))


def _dated(head: Head) -> list[str]:
    """Return the stamps of messages in another program's form, none where the tracker writes its own."""
    if "Energy consumed for " not in head.text or re.search(_LINE, head.text, re.MULTILINE):
        return []
    mine = [line for line in head.lines if "Energy consumed for " in line]
    return [m[1] for line in mine if (m := re.match(_DATED, line)) and re.search(_ENERGY, line)]


def _clock(log: Log, dated: list[str]) -> Callable[[pl.Series], pl.Series]:
    """Return what turns the stamps of the lines into UTC."""
    if not dated:
        first = re.search(_LINE, log.head.text, re.MULTILINE)
        if first is None:
            raise LogRefusedError(f"{log.name}: holds no line of CodeCarbon's tracker")
        return relative.OfDay(log, log.head.text[: first.start()].count("\n") + 1, first[1]).utc
    form = local_time.form(log, dated)
    clock = local_time.localiser(log, form, 1, dated[0])
    return lambda text: clock.to_utc(
        text.to_frame("t").select(stamps.parse(pl.col("t"), form).alias("ts_utc")).to_series()
    )


def _parse(log: Log) -> Iterator[Part]:
    dated = _dated(log.head)
    utc = _clock(log, dated)
    told: set[str] = set()
    for block in log.blocks():
        lines = _taken_apart(block, _DATED if dated else _LINE)
        speaks = pl.col("about").is_not_null() | pl.col("total").is_not_null()
        rest, mine = lines.filter(~speaks), lines.filter(speaks)
        mine = mine.with_columns(utc(mine["stamp"].fill_null("")).alias("ts_utc"), row=pl.col("line"))
        readings, rejects = entries.gather(_cells(mine), _SCOPES, never_zero=False)
        fresh = entries.fresh(readings, told)
        # What else a program of its own prints is not the tracker's.
        foreign = pl.col("text").str.contains(_MESSAGES) if dated else pl.col("stamp").is_null()
        odd = table.whole_lines(rest.filter(foreign).select("line", raw="text"), "foreign-line")
        yield Part(
            block.count, readings, pl.concat([odd, rejects]),
            channels=tuple(Channel(d, _SCOPES[d], kind="counter") for d in fresh),
        )  # fmt: skip
    yield Part(findings=(Finding(
        "tracker-estimates", Severity.NOTE, log.name,
        "The tracker's own account: energies since its start. Memory, and processors without a counter, are models, not measurements. "
        "Its emissions.csv of the same run says the same; only one of the two is to be in a study.", {},
    ),))  # fmt: skip


def _taken_apart(block: Block, pattern: str) -> pl.DataFrame:
    """Return the lines of a block with what they hold: stamp, what an energy is about, energy, power, sum, device."""
    lines = block.filled("text")
    text = pl.col("text")
    lines = lines.with_columns(
        stamp=text.str.extract(pattern, 1), about=text.str.extract(_ENERGY, 1), energy=text.str.extract(_ENERGY, 2),
        power=text.str.extract(_POWER, 1), total=text.str.extract(_TOTAL, 1),
    )  # fmt: skip
    return lines.with_columns(
        device=pl.when(pl.col("total").is_not_null()).then(pl.lit("components"))
        .when(pl.col("about") == "RAM").then(pl.lit("dram"))
        .when(pl.col("about").str.contains("GPU")).then(pl.lit("gpu")).otherwise(pl.lit("cpu"))
    )  # fmt: skip


def _cells(mine: pl.DataFrame) -> pl.DataFrame:
    """Return the energies and powers of lines one below the other, as text."""
    energies = mine.select(
        "row", "line", "device", "ts_utc", quantity=pl.lit("energy_counter_j"), header=pl.lit("Energy consumed"),
        unit=pl.lit("kWh"), raw=pl.coalesce("energy", "total"),
    )  # fmt: skip
    powers = mine.filter(pl.col("power").is_not_null()).select(
        "row", "line", "device", "ts_utc", quantity=pl.lit("reported_power_w"), header=pl.lit("Power"), unit=pl.lit("W"), raw="power",
    )  # fmt: skip
    return pl.concat([energies, powers])


ADAPTER = Adapter(
    name="codecarbon-log",
    title="lines that CodeCarbon's tracker prints while it runs, in its own form or a program's log",
    yields="energy since the start of all boards, processors, memory and their sum; the printed powers apart",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
    family="model",
)
