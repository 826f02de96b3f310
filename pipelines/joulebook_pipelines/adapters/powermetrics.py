"""macOS powermetrics text: sections with a stamp and a length, powers in mW."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import entries, powermetrics_plist, sections, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_HEAD = r"^\*\*\* Sampled system activity \((\w{3} \w{3}\s+\d+ \d\d:\d\d:\d\d \d{4} [+-]\d{4})\) \(([\d.]+)ms elapsed\)"
_POWER = r"^(Package|Combined|CPU|GPU|DRAM|ANE|Intel energy model derived package|[EPS]\d*-Cluster)\s*[Pp]ower(?: \([^)]*\))?:\s*(.*?)\s*$"
_PLACES = {
    "Package": ("package", "package"), "Combined": ("package", "package"), "Intel energy model derived package": ("package", "package"),
    "CPU": ("package/cpu", "part"), "GPU": ("package/gpu", "part"), "ANE": ("package/ane", "part"), "DRAM": ("dram", "dram"),
}  # fmt: skip
"""The chip's package holds CPU, GPU and neural engine; newer versions call their sum "combined"."""

SECOND_US = 1_000_000
"""Stamps are printed in whole seconds."""

_VALUE = Field("value", "Power", "power_w", "mW", required=True)


def _sniff(head: Head) -> bool:
    return any(
        line.startswith("*** Sampled system activity (") for line in head.lines[:200]
    ) or powermetrics_plist.looks_so(head)


def _of_plists(log: Log) -> Part:
    """Return what the samples of a file of property lists say."""
    powers, rejects, lines = powermetrics_plist.read(log)
    if powers.is_empty():
        raise LogRefusedError(
            f"{log.name}: no sample holds a power; log with powermetrics --samplers cpu_power,gpu_power"
        )
    powers = _ends(powers)
    values, bad = table.convert(powers, (_VALUE,))
    values, judged = table.judge(values, powers, (_VALUE,), "package", never_zero=False)
    readings = table.kept(values.with_columns(powers["ts_utc"], powers["span_s"]))
    channels = tuple(_channel(d) for d in powers["device"].unique(maintain_order=True))
    return Part(lines, readings, pl.concat([rejects, bad, judged]), channels=channels)


def _parse(log: Log) -> Iterator[Part]:
    if powermetrics_plist.looks_so(log.head):
        yield _of_plists(log)
        return
    heads = [m for line in log.head.lines if (m := re.match(_HEAD, line))]
    if not heads:
        raise LogRefusedError(
            f"{log.name}: no section has a stamp and a length; log with powermetrics --samplers cpu_power"
        )
    carried, seen = sections.Carried("ts_utc", "span_s", "section"), set[str]()
    count = 0
    for block in log.blocks():
        part, count = _read(block, carried, count)
        if part.readings is not None:
            fresh = entries.fresh(part.readings, seen)
            part = Part(part.lines, part.readings, part.rejects, channels=tuple(_channel(d) for d in fresh))
        yield part


def _channel(device: str) -> Channel:
    scope = next((s for d, s in _PLACES.values() if d == device), "part")
    return Channel(device, scope, kind="mean")


def _read(block: Block, carried: sections.Carried, count: int) -> tuple[Part, int]:
    lines = sections.lines_of(block)
    stamp = pl.col("raw").str.extract(_HEAD, 1).str.to_datetime("%a %b %e %H:%M:%S %Y %z", time_unit="us", strict=False)
    heads = pl.col("raw").str.starts_with("*** Sampled system activity")
    lines = lines.with_columns(
        stamp.dt.convert_time_zone("UTC").alias("ts_utc"), heads.alias("is_head"),
        (pl.col("raw").str.extract(_HEAD, 2).cast(pl.Float64, strict=False) / 1e3).alias("span_s"),
        pl.when(heads).then(heads.cast(pl.Int64).cum_sum() + count).alias("section"),
    )  # fmt: skip
    broken = lines.filter(pl.col("is_head") & (pl.col("ts_utc").is_null() | pl.col("span_s").is_null()))
    count += int(lines["is_head"].sum())
    # The lines under a head that cannot be read have no time: the head above must not lend its own.
    lost = pl.col("section").is_in(broken["section"].implode())
    lines = carried.down(lines)
    lines = lines.with_columns(pl.when(~lost.fill_null(value=False)).then("ts_utc").alias("ts_utc"))
    powers = lines.filter(pl.col("raw").str.contains(_POWER)).with_columns(
        label=pl.col("raw").str.extract(_POWER, 1), value=pl.col("raw").str.extract(_POWER, 2),
    )  # fmt: skip
    names = {k: d for k, (d, _) in _PLACES.items()}
    cluster = pl.concat_str(pl.lit("package/"), pl.col("label").str.to_lowercase())
    powers = powers.with_columns(
        device=pl.coalesce(pl.col("label").replace_strict(names, default=None, return_dtype=pl.String), cluster)
    )
    again = ~pl.struct("section", "device").is_first_distinct()
    powers = powers.filter(~again)  # the section of the graphics repeats the GPU's power
    rejects = [table.whole_lines(broken.select("line", "raw"), "no-such-time")]
    timeless = powers.filter(pl.col("ts_utc").is_null() | pl.col("span_s").is_null())
    rejects.append(table.cell_rejects(timeless, _VALUE, pl.lit("row-without-time")))
    powers = powers.filter(pl.col("ts_utc").is_not_null() & pl.col("span_s").is_not_null())
    powers = _ends(powers)
    values, bad = table.convert(powers, (_VALUE,))
    values, judged = table.judge(values, powers, (_VALUE,), "package", never_zero=False)
    readings = table.kept(values.with_columns(powers["ts_utc"], powers["span_s"]))
    return Part(lines=block.count, readings=readings, rejects=pl.concat([*rejects, bad, judged])), count


def _ends(powers: pl.DataFrame) -> pl.DataFrame:
    """Tell samples within one printed second apart: each ends its own length after the one before, not before its stamp.

    Samples follow each other without a pause, so the seconds that are printed pin all of them down together.
    """
    heads = powers.unique("section", keep="first", maintain_order=True)
    heads = heads.with_columns(printed=pl.col("ts_utc").dt.timestamp("us"), us=(pl.col("span_s") * 1e6).cast(pl.Int64))
    pause = (pl.col("printed").diff() > pl.col("us") + SECOND_US).fill_null(value=False)
    heads = heads.with_columns(passed=pl.col("us").cum_sum(), run=pause.cum_sum())
    behind, late = (
        pl.col("printed") - pl.col("passed"),
        pl.col("us").cum_sum().over("ts_utc") - pl.col("us").first().over("ts_utc"),
    )
    # Pauses that no length tells are seen only as they pass; lengths beyond the time that passed are no such samples.
    ways = (behind.max().over("run") - behind, behind.cum_max() - behind, late.clip(0, SECOND_US - 1))
    ends = heads
    for way in ways:
        ends = heads.with_columns(follows=way)
        if ends.filter(pl.col("follows") >= SECOND_US).is_empty():
            break
    ends = ends.select("section", at=pl.col("ts_utc") + pl.duration(microseconds="follows"))
    return (
        powers.join(ends, on="section", how="left", maintain_order="left").with_columns(ts_utc=pl.col("at")).drop("at")
    )


ADAPTER = Adapter(
    name="powermetrics",
    title="macOS powermetrics, as text and as property lists",
    yields="power of the chip's package, and of CPU, GPU, neural engine and memory in it",
    sniff=_sniff,
    parse=_parse,
)
