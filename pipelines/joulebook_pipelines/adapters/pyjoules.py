"""Traces of pyJoules and pyRAPL: a row per measured stretch with its duration and the energy of each domain."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import damage, rapl, stamps, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_JOULES, _RAPL = ("timestamp", "tag", "duration"), ("label", "timestamp", "duration", "pkg", "dram", "socket")
_GPU = re.compile(r"^nvidia_gpu_(\d+)$")
_FORM = stamps.StampForm("epoch", aware=True, unit_us=1e6)


def _header(head: Head) -> tuple[str, tuple[str, ...]] | None:
    """Return the separator and the titles of either tool."""
    line = head.lines[0].strip()
    for separator in (";", ","):
        titles = tuple(t.strip() for t in line.split(separator))
        if titles == _RAPL or (titles[:3] == _JOULES and any(_domain(t) for t in titles[3:])):
            return separator, titles
    return None


def _domain(title: str) -> tuple[str, str, str] | None:
    """Return device, scope and unit of a column: pyJoules writes µJ of RAPL and mJ of cards."""
    if match := _GPU.match(title):
        return f"gpu:{match[1]}", "board", "mJ"
    match = re.match(r"^(package|dram|core|uncore)_(\d+)$", title)
    found = rapl.domain(match[1], int(match[2])) if match else None
    return None if found is None else (found.device, found.scope, "uJ")


def _parse(log: Log) -> Iterator[Part]:
    found = _header(log.head)
    if found is None:
        raise LogRefusedError(f"{log.name}:1: the header is neither pyJoules' (timestamp;tag;duration;…) nor pyRAPL's")
    separator, titles = found
    told: set[str] = set()
    if not any(line.strip() for line in log.head.lines[1:]):
        raise LogRefusedError(f"{log.name}: has a header but no row below it: nothing was measured")
    for block in log.blocks():
        part = _read(block, separator, titles)
        fresh = tuple(c for c in part.channels if c.device not in told)
        told |= {c.device for c in fresh}
        yield Part(part.lines, part.readings, part.rejects, channels=fresh)


_LONGEST_S = 1e7
"""Four months: no stretch is longer, and the calendar is not left."""


def _read(block: Block, separator: str, titles: tuple[str, ...]) -> Part:
    names = [f"c{i}" for i in range(len(titles))]
    split = table.split(block, names, separator, quoted=b'"' in block.data)
    frame = split.frame.filter(pl.col("c0").str.strip_chars() != titles[0])
    place = dict(zip(titles, names, strict=True))
    frame = _timed(frame, place, 1e-6 if titles == _RAPL else 1.0)
    rejects = [damage.odd_lines(block, split.odd, "wrong-number-of-fields")]
    fields = _fields(frame, titles, place)
    lost = frame.filter(pl.col("ts_utc").is_null()).with_columns(device=pl.lit(None, pl.String))
    both = pl.concat_str(pl.col(place["timestamp"]), pl.lit(" + "), pl.col(place["duration"]), ignore_nulls=True)
    stamp = Field("when", "timestamp duration", "ts_utc")
    rejects.append(table.without_time(lost.with_columns(when=both), [f for _, _, f, _ in fields], stamp))
    frame = frame.filter(pl.col("ts_utc").is_not_null())
    if titles == _RAPL:
        numbered = pl.col(place["socket"]).str.strip_chars().str.contains(r"^\d+$")
        lines = frame.filter(~numbered.fill_null(value=False)).select(
            "line", raw=pl.concat_str(names, separator=separator)
        )
        rejects.append(table.whole_lines(lines, "no-such-socket"))
    readings, channels = [], []
    for device, scope, field, socket in fields:
        mine = frame if socket is None else frame.filter(pl.col(place["socket"]).str.strip_chars() == socket)
        kept, bad = _energies(mine.with_columns(device=pl.lit(device)), field, scope)
        readings.append(kept)
        rejects += bad
        channels.append(Channel(device, scope, kind="energy"))
    read = pl.concat(readings).sort("line", maintain_order=True) if readings else None
    return Part(block.count, read, pl.concat(rejects), channels=tuple(channels))


def _timed(frame: pl.DataFrame, place: dict[str, str], unit_s: float) -> pl.DataFrame:
    """Return the rows with the length of each stretch and its end, null where they cannot be read."""
    number = pl.col(place["duration"]).str.strip_chars().cast(pl.Float64, strict=False)
    start = (
        frame.select(stamps.parse(pl.col(place["timestamp"]), _FORM).alias("t")).to_series().dt.replace_time_zone("UTC")
    )
    frame = frame.with_columns(start=start, span_s=number * unit_s)
    length = pl.duration(microseconds=(pl.col("span_s") * 1e6).round().cast(pl.Int64, strict=False))
    sound = pl.col("span_s").is_between(0, _LONGEST_S, closed="right")
    return frame.with_columns(ts_utc=pl.when(sound).then(pl.col("start") + length))


def _energies(mine: pl.DataFrame, field: Field, scope: str) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return the energies of one device, and rejects."""
    values, bad = table.convert(mine, [field])
    # A counter that wrapped within a stretch leaves a negative energy.
    negative = mine.filter((values["energy_j"] < 0).fill_null(value=False))
    values = values.with_columns(pl.when(pl.col("energy_j") >= 0).then("energy_j").alias("energy_j"))
    values, judged = table.judge(values, mine, [field], scope)
    kept = values.join(mine.select("line", "ts_utc", "span_s"), on="line", how="left", maintain_order="left")
    return table.kept(kept), [table.cell_rejects(negative, field, pl.lit("negative-energy")), bad, judged]


def _fields(
    frame: pl.DataFrame, titles: tuple[str, ...], place: dict[str, str]
) -> list[tuple[str, str, Field, str | None]]:
    """Return device, scope and field of each column that is read, with the socket of the rows where they name one."""
    if titles != _RAPL:
        told = [(t, d) for t in titles if (d := _domain(t))]
        return [(d[0], d[1], Field(place[t], t, "energy_j", d[2], required=True), None) for t, d in told]
    sockets = [s for s in frame[place["socket"]].str.strip_chars().unique(maintain_order=True).to_list() if s]
    return [
        (f"{name}:{s}", scope, Field(place[t], t, "energy_j", "uJ", required=t == "pkg"), s)
        for s in sockets if s.isdigit() for t, name, scope in (("pkg", "cpu", "package"), ("dram", "dram", "dram"))
    ]  # fmt: skip


ADAPTER = Adapter(
    name="pyjoules",
    title="traces of pyJoules (CSV) and pyRAPL (CSV)",
    yields="energy per measured stretch of CPU packages, their parts, memory and cards",
    sniff=lambda head: _header(head) is not None,
    parse=_parse,
)
