"""PowerJoular CSV, of the whole machine and of one process (``….csv-PID.csv``): means over the cycle before each stamp."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from joulebook_pipelines.logs import absent, local_time, relative, rows, stamps, wide
from joulebook_pipelines.logs.contract import Adapter, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_HEADER = re.compile(r"^Date,CPU Utilization,(Total Power,)?CPU Power(,GPU Power)?\s*$")
_PROCESS = re.compile(r"\.csv-(\w[\w.-]*?)\.csv")
_NAIVE = stamps.StampForm("%Y-%m-%d %H:%M:%S%.f", aware=False, fixed=True)
_STAMP = r"^\s*(\d{4})-\s*(\d+)-\s*(\d+)\s+(\d+):\s*(\d+):\s*(\d+)(?:\.\s*(\d+))?\s*$"
"""Numbers are printed without leading zeros, in some versions with a blank in front; the last one is milliseconds."""

USUAL_CYCLE_S = 1.0


@dataclass(frozen=True)
class _Place:
    device: str
    scope: str


def _sniff(head: Head) -> bool:
    return bool(_HEADER.match(head.lines[0]))


def _naive(text: pl.Expr) -> pl.Expr:
    parts = text.str.extract_groups(_STAMP).struct
    date = pl.concat_str(parts.field("1"), *(parts.field(i).str.zfill(2) for i in "23"), separator="-")
    time = pl.concat_str([parts.field(i).str.zfill(2) for i in "456"], separator=":")
    milli = parts.field("7").str.zfill(3).fill_null("0")
    return stamps.parse(pl.concat_str(date, pl.lit(" "), time, pl.lit("."), milli), _NAIVE)


def _parse(log: Log) -> Iterator[Part]:
    if not _sniff(log.head):
        raise LogRefusedError(
            f"{log.name}:1: the header of PowerJoular is Date,CPU Utilization,…; this one is {log.head.lines[0][:80]!r}"
        )
    headers = [h.strip() for h in log.head.lines[0].split(",")]
    names = tuple(f"c{i}" for i in range(len(headers)))
    sample = rows.first(log, len(names), ",", 2)
    if not sample:
        raise LogRefusedError(f"{log.name}: has a header but no row below it: nothing was measured")
    clock = local_time.localiser(log, _NAIVE, 2, sample[0][0])
    groups, silent = _groups(log, headers, names, sample)
    span_s = _cycle_s(sample)
    sheet = wide.Sheet(names, ",", Field("c0", "Date", "ts_utc"), groups, _naive, clock, span_s=span_s)
    yield from wide.Reader(log, sheet).parts()
    yield Part(findings=(*absent.told(log, silent), *relative.repeated_hour(log, clock)))


def _groups(
    log: Log, headers: list[str], names: tuple[str, ...], sample: list[list[str]]
) -> tuple[tuple[wide.Group, ...], list[str]]:
    """Return the devices of the file, and the columns that are 0 all along."""
    process = _PROCESS.search(log.path.name) if "Total Power" not in headers else None
    cpu = f"cpu/{process[1]}" if process else "cpu"
    places = {
        "CPU Power": _Place(cpu, "package"),
        "GPU Power": _Place("gpu", "board"),
        "Total Power": _Place("components", "components"),
    }
    groups, silent = [], []
    for header, place in places.items():
        if header not in headers:
            continue
        at = headers.index(header)
        if header == "GPU Power" and absent.stays_zero(sample, at):
            silent.append(header)
            continue
        fields = [Field(names[at], header, "power_w", "W", required=True)]
        if header == "CPU Power":
            fields.append(
                Field(names[headers.index("CPU Utilization")], "CPU Utilization", "utilization_ratio", "ratio")
            )
        # A process that sleeps draws nothing, so 0 W is no error here.
        never_zero = False if process else None
        groups.append(
            wide.Group(Channel(place.device, place.scope, kind="mean"), tuple(fields), place.scope, never_zero)
        )
    return tuple(groups), silent


def _cycle_s(sample: list[list[str]]) -> float:
    """Return the length of a cycle: the usual step of the first stamps."""
    at = pl.DataFrame({"t": [r[0] for r in sample]}).select(_naive(pl.col("t"))).to_series().drop_nulls()
    steps = at.diff().dt.total_microseconds().drop_nulls()
    steps = steps.filter(steps > 0)
    return USUAL_CYCLE_S if steps.is_empty() else float(str(steps.median())) / 1e6


ADAPTER = Adapter(
    name="powerjoular",
    title="PowerJoular CSV, of the machine or of one process",
    yields="power of the CPU (RAPL), of cards and in total, CPU utilisation; of one process where the file is one",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
