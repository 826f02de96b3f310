"""Dumps of the files of Linux powercap (RAPL), as ``grep . /sys/class/powercap/intel-rapl*/energy_uj`` prints them, looped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import cells, damage, entries, rapl, stamp_lines, table, untimed
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.stamp_lines import StampLines

_PATH = r"(?:^|[\s/])(intel-rapl(?:-mmio)?(?::\d+)*)/(energy_uj|name|max_energy_range_uj)[:=\s]+(.*?)\s*$"
"""The zone, the file and what it holds."""

_OTHER = r"intel-rapl\S*/\w+|^\s*-{2,}\s*$"
_NO_ENERGY = re.compile(r"/(?:name|max_energy_range_uj|constraint\w*|enabled|uevent)[:=\s]")
_CURE = "write the time before each dump, e.g. while true; do date +%s.%N; grep . /sys/class/powercap/intel-rapl*/energy_uj; sleep 1; done"


@dataclass
class _Dumps:
    """What the lines so far said that those behind need."""

    clock: StampLines | untimed.Steps | untimed.Moment
    domains: dict[str, rapl.Domain]
    stamp: str | None = None
    seen: dict[str, int] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)


def _energies(head: Head) -> list[str]:
    """Return the zones of the counters at the beginning of a file, in order."""
    return [
        m[1] for line in head.lines if "energy_uj" in line and (m := re.search(_PATH, line)) and m[2] == "energy_uj"
    ]


def _parse(log: Log) -> Iterator[Part]:
    zones = _energies(log.head)
    if not zones:
        raise LogRefusedError(f"{log.name}: no line holds a counter of powercap (…/intel-rapl:0/energy_uj:123)")
    said = {(m[1], m[2]): m[3] for line in log.head.lines if _NO_ENERGY.search(line) and (m := re.search(_PATH, line))}
    domains = {zone: _domain(zone, said) for zone in dict.fromkeys(zones)}
    clock = stamp_lines.find(log, re.compile(r"^\s*/?\S*intel-rapl"))
    dumps = _Dumps(clock or untimed.of_dumps(log, max(zones.count(z) for z in domains), _CURE), domains)
    for block in log.blocks():
        yield _read(block, dumps, log)
    told = () if isinstance(dumps.clock, StampLines) else dumps.clock.findings
    yield Part(findings=(*told, *_ranges(log, dumps.domains, said)))


def _domain(zone: str, said: dict[tuple[str, str], str]) -> rapl.Domain:
    """Return what a zone measures: by its name, where the dump has it, else by its number."""
    mirror = "mmio" in zone
    place = rapl.zone(zone.replace("-mmio", ""))
    name = said.get((zone, "name"), "")
    known = rapl.domain(name, place[0] if place else None) if name else None
    found = known or rapl.of_path(zone.replace("-mmio", "")) or rapl.Domain(zone, "part")
    # The same package through another register: read, never added.
    return rapl.Domain(f"{found.device}/mmio", "part") if mirror else found


def _read(block: Block, dumps: _Dumps, log: Log) -> Part:
    lines = _understood(block, dumps)
    energies = lines.filter(pl.col("what") == "energy_uj")
    strange = energies.filter(~pl.col("zone").is_in(list(dumps.domains)))
    energies = energies.filter(pl.col("zone").is_in(list(dumps.domains)))
    energies = energies.with_columns(_times(energies, dumps)).with_columns(
        device=pl.col("zone").replace_strict({z: d.device for z, d in dumps.domains.items()}, return_dtype=pl.String)
    )
    last = pl.col("line") == block.cut_line
    cut = energies.filter(last)
    told = energies.filter(~last).select(
        "line", "device", "ts_utc", "raw", row=pl.col("line"), quantity=pl.lit("energy_counter_j"), header=pl.lit("energy_uj"),
        unit=pl.lit("uj"),
    )  # fmt: skip
    scopes = {d.device: d.scope or log.options.scope or "" for d in dumps.domains.values()}
    readings, rejects = entries.gather(told.select(list(entries.SCHEMA)), scopes)
    foreign = lines.filter(pl.col("what").is_null() & ~pl.col("meant") & ~pl.col("rest").str.contains(_OTHER))
    odd = [
        table.whole_lines(frame.select("line", raw="text"), rule)
        for frame, rule in ((cut, damage.CUT), (strange, "no-such-domain"), (foreign, "foreign-line"))
    ]
    fresh = entries.fresh(readings, dumps.told)
    return Part(
        block.count,
        readings,
        pl.concat([*odd, rejects]),
        channels=tuple(Channel(d, scopes[d], kind="counter") for d in fresh),
    )


def _understood(block: Block, dumps: _Dumps) -> pl.DataFrame:
    """Return the lines of a block with the stamp above them, their zone, their file and what it holds."""
    lines = block.filled("text")
    clock = dumps.clock if isinstance(dumps.clock, StampLines) else None
    stamp, rest, meant = (
        clock.split(pl.col("text")) if clock else (pl.lit(None, pl.String), pl.col("text"), pl.lit(value=False))
    )
    lines = lines.with_columns(stamp=stamp, rest=rest, meant=meant)
    lines = lines.with_columns(
        zone=pl.col("rest").str.extract(_PATH, 1),
        what=pl.col("rest").str.extract(_PATH, 2),
        raw=pl.col("rest").str.extract(_PATH, 3),
    )
    # A stamp that cannot be read is not the one before it.
    held = pl.when("meant").then(pl.col("stamp").fill_null("")).forward_fill().fill_null(pl.lit(dumps.stamp, pl.String))
    lines = lines.with_columns(stamp=held)
    dumps.stamp = lines["stamp"][-1] if lines.height else dumps.stamp
    return lines


def _times(energies: pl.DataFrame, dumps: _Dumps) -> pl.Series:
    """Return when each counter was read: the stamp above it, or the number of the dump."""
    if isinstance(dumps.clock, StampLines):
        return dumps.clock.utc(energies, pl.col("stamp").fill_null(""))
    before = pl.col("zone").replace_strict(dumps.seen, default=0, return_dtype=pl.Int64)
    number = energies.select(before + pl.int_range(1, pl.len() + 1).over("zone")).to_series()
    for zone, count in energies["zone"].value_counts().iter_rows():
        dumps.seen[zone] = dumps.seen.get(zone, 0) + count
    return dumps.clock.at(number).alias("ts_utc")


def _ranges(log: Log, domains: dict[str, rapl.Domain], said: dict[tuple[str, str], str]) -> tuple[Finding, ...]:
    texts = [(domains[z].device, v) for (z, what), v in said.items() if what == "max_energy_range_uj" and z in domains]
    frame = pl.DataFrame(texts, schema={"device": pl.String, "raw": pl.String}, orient="row")
    frame = frame.with_columns(j=cells.plain_number(pl.col("raw")) * 1e-6).drop_nulls()
    ranges = dict(frame.select("device", "j").iter_rows())
    if not ranges:
        return ()
    told = ", ".join(f"{d} at {r:.6g} J" for d, r in ranges.items())
    return (Finding(
        "counter-range", Severity.NOTE, log.name, f"The file says where its counters wrap: {told}. Wraps are corrected with it.", ranges,
    ),)  # fmt: skip


ADAPTER = Adapter(
    name="powercap-dump",
    title="dumps of powercap's files (grep . /sys/class/powercap/…/energy_uj), looped",
    yields="energy counters of packages, their parts, memory and platform",
    sniff=lambda head: bool(_energies(head)),
    parse=_parse,
    needs_zone=True,
)
