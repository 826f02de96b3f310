"""UPS and switched outlets: ``upsc`` of NUT in a loop, where it tells real power; ``apcaccess``, which tells a share, is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from joulebook_pipelines.logs import entries, stamp_lines, table, untimed
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.stamp_lines import StampLines

_NAME = r"(?:ups|battery|device|driver|input|output|outlet|ambient|server)(?:\.[\w-]+)+"
_LINE = rf"^\s*({_NAME}):\s*(.*?)\s*$"
_TOOL = re.compile(rf"^\s*{_NAME}:")
_REAL = r"^(?:ups|output|input|outlet)(?:\.(?:L?\d|L\d-L\d|\d+))*\.realpower$"
_MAIN = ("ups.realpower", "output.realpower", "outlet.realpower", "input.realpower")
"""What a device tells of all that it feeds, the plainest first; the others lie inside it or hold its own losses."""

_SHARE = re.compile(r"^(?:LOADPCT|NOMPOWER)\s*:", re.MULTILINE)
_APC = re.compile(r"^APC\s*: \d", re.MULTILINE)
_CURE = "write the time before each answer, e.g. while true; do date -Is; upsc NAME; sleep 5; done"


@dataclass
class _Reader:
    clock: StampLines | untimed.Steps | untimed.Moment
    main: str
    first: str
    scope: str
    stamp: str | None = None
    passed: int = 0
    told: set[str] = field(default_factory=set)

    def device(self, name: str) -> str:
        """Return the device that a variable is about: the UPS, or a phase or an outlet of it."""
        return "ups" if name == self.main else f"ups/{name.removesuffix('.realpower')}"


def _sniff(head: Head) -> bool:
    if _APC.search(head.text) and _SHARE.search(head.text):
        return True
    names = set(re.findall(rf"(?m)\b({_NAME}):(?:\s|$)", head.text))
    return len(names) >= 3 and bool(names & {"ups.status", "ups.load", "device.type", "driver.name", *_MAIN})


def _parse(log: Log) -> Iterator[Part]:
    if _APC.search(log.head.text):
        raise LogRefusedError(
            f"{log.name}: apcaccess tells the load as a share (LOADPCT) of a nominal power (NOMPOWER) and no measured power; their product "
            "is an estimate. If it is good enough, write it as a CSV with the titles time,power_w, and say so beside the numbers"
        )
    names = re.findall(rf"(?m)\b({_NAME}):(?:\s|$)", log.head.text)
    real = [n for n in names if re.match(_REAL, n)]
    if not real:
        raise LogRefusedError(
            f"{log.name}: no variable is a real power (ups.realpower); ups.power is apparent power in VA and ups.load a share of the "
            "nominal one, from which no energy follows without the power factor"
        )
    main = next((n for n in _MAIN if n in real), "")
    clock = stamp_lines.find(log.head.lines, log.options, log.name, _TOOL)
    reader = _Reader(
        clock or untimed.of_dumps(log, names.count(real[0]), _CURE), main, real[0], log.options.scope or ""
    )
    for block in log.blocks():
        yield _read(block, reader)
    yield Part(findings=() if isinstance(reader.clock, StampLines) else reader.clock.findings)


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
    lines = _under_stamps(lines, reader)
    named = lines.with_columns(name=pl.col("rest").str.extract(_LINE, 1), raw=pl.col("rest").str.extract(_LINE, 2))
    odd = named.filter(pl.col("name").is_null() & ~pl.col("own"))
    rejects.append(table.whole_lines(odd.select("line", raw="text"), "tool-message"))
    told = named.filter(pl.col("name").str.contains(_REAL))
    names = told["name"].unique(maintain_order=True).to_list()
    devices = {n: reader.device(n) for n in names}
    told = told.with_columns(
        device=pl.col("name").replace_strict(devices, default=None, return_dtype=pl.String), row=pl.col("line"),
        quantity=pl.lit("power_w"), header="name", unit=pl.lit("W"),
    )  # fmt: skip
    scopes = {d: reader.scope if d == "ups" else "part" for d in devices.values()}
    readings, bad = entries.gather(told.select(list(entries.SCHEMA)), scopes)
    fresh = [d for d in readings["device"].unique(maintain_order=True) if d not in reader.told]
    reader.told |= set(fresh)
    return Part(count, readings, pl.concat([*rejects, bad]), channels=tuple(Channel(d, scopes[d]) for d in fresh))


def _under_stamps(lines: pl.DataFrame, reader: _Reader) -> pl.DataFrame:
    """Return the lines without what a collector put before them, with their time."""
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
        return lines.with_columns(utc.alias("ts_utc"))
    begins = pl.col("text").str.contains(rf"^\s*{re.escape(reader.first)}:")
    number = lines.select(begins.cast(pl.Int64).cum_sum() + reader.passed).to_series()
    reader.passed = int(number[-1]) if lines.height else reader.passed
    utc = clock.at(number.clip(lower_bound=1))
    return lines.with_columns(utc.alias("ts_utc"), rest="text", own=pl.lit(value=False))


ADAPTER = Adapter(
    name="ups",
    title="upsc of Network UPS Tools (text, looped); apcaccess is refused",
    yields="real power of a UPS or a switched strip, of its phases and outlets",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
    family="meter",
)
