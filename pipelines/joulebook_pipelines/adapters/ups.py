"""UPS and switched outlets: ``upsc`` of NUT in a loop, where it tells real power; ``apcaccess``, which tells a share, is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from joulebook_pipelines.logs import entries, looped, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part

_NAME = r"(?:ups|battery|device|driver|input|output|outlet|ambient|server)(?:\.[\w-]+)+"
_LINE = rf"^\s*({_NAME}):\s*(.*?)\s*$"
_TOOL = rf"^\s*{_NAME}:"
_REAL = r"^(?:ups|output|input|outlet)(?:\.(?:L?\d|L\d-L\d|\d+))*\.realpower$"
_MAIN = ("ups.realpower", "output.realpower", "outlet.realpower", "input.realpower")
"""What a device tells of all that it feeds, the plainest first; the others lie inside it or hold its own losses."""

_SHARE = re.compile(r"^(?:LOADPCT|NOMPOWER)\s*:", re.MULTILINE)
_APC = re.compile(r"^APC\s*: \d", re.MULTILINE)
_CURE = "write the time before each answer, e.g. while true; do date -Is; upsc NAME; sleep 5; done"


@dataclass
class _Reader:
    times: looped.Times
    main: str
    first: str
    scope: str
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
    times = looped.Times.find(log, _TOOL, rounds=names.count(real[0]), cure=_CURE)
    reader = _Reader(times, main, real[0], log.options.scope or "")
    for block in log.blocks():
        yield _read(block, reader)
    yield Part(findings=times.findings)


def _read(block: Block, reader: _Reader) -> Part:
    lines, rejects = looped.lines(block)
    lines = reader.times.under(lines, pl.col("rest").str.contains(rf"^\s*{re.escape(reader.first)}:"))
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
    fresh = entries.fresh(readings, reader.told)
    return Part(block.count, readings, pl.concat([*rejects, bad]), channels=tuple(Channel(d, scopes[d]) for d in fresh))


ADAPTER = Adapter(
    name="ups",
    title="upsc of Network UPS Tools (text, looped); apcaccess is refused",
    yields="real power of a UPS or a switched strip, of its phases and outlets",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
    family="meter",
)
