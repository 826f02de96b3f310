"""Alumet CSV: one line a metric, energies per interval by RAPL domain and by card."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import damage, one_interval, rapl, rows, stamps, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_HEADER = ("metric", "timestamp", "value", "resource_kind", "resource_id")
_RAPL = re.compile(r"^rapl_consumed_energy(?:_(J|mJ|uJ))?$")
_CARD = re.compile(r"^nvml_energy_consumption(?:_(J|mJ|uJ))?$")
_ENERGY = r"^(rapl_consumed_energy|nvml_energy_consumption)(_(J|mJ|uJ))?$"
_FORM = stamps.StampForm("%Y-%m-%dT%H:%M:%S%.f", aware=True, fixed=True)


_FEWEST_COLUMNS = 5
"""Metric, time, value, and kind and name of the resource."""


def _sniff(head: Head) -> bool:
    names = head.lines[0].strip().split(";")
    return tuple(names[:5]) == _HEADER


def _parse(log: Log) -> Iterator[Part]:
    headers = log.head.lines[0].strip().split(";")
    if len(headers) < _FEWEST_COLUMNS:
        raise LogRefusedError(
            f"{log.name}:1: has {len(headers)} columns; Alumet writes metric;timestamp;value and what consumed it"
        )
    names = tuple(f"c{i}" for i in range(len(headers)))
    late = headers.index("__late_attributes") if "__late_attributes" in headers else len(headers) - 1
    reader = _Reader(names, late)
    read = False
    yield Part(lines=1)
    for block in rows.below(log.blocks(), 1):
        part = reader.read(block)
        read = read or bool(part.readings is not None and part.readings.height)
        yield part
    if not read:
        raise LogRefusedError(
            f"{log.name}: holds no energy (rapl_consumed_energy or nvml_energy_consumption); run alumet with its rapl or nvml plugin"
        )


class _Reader:
    """State of one pass: the last stamp of each device, which gives each energy its span."""

    def __init__(self, names: tuple[str, ...], late: int) -> None:
        self._names, self._late = names, names[late]
        self._last: dict[str, int] = {}
        self._channels: dict[str, Channel] = {}

    def read(self, block: Block) -> Part:
        split = table.split(block, self._names, ";", quoted=b'"' in block.data)
        rejects = [damage.odd_lines(block, split.odd, "wrong-number-of-fields")]
        raw = split.frame.filter(pl.col("c0").str.contains(_ENERGY))
        raw = raw.with_columns(domain=pl.col(self._late).str.extract(r"domain=([\w-]+)"))
        raw, fresh = self._named(raw)
        at = raw.select(stamps.parse(pl.col("c1"), _FORM).dt.replace_time_zone("UTC").alias("ts_utc")).to_series()
        raw = raw.with_columns(at)
        lost = raw.filter(pl.col("ts_utc").is_null())
        unit = next((m[1] for t in raw["c0"].head(1) if (m := re.search(r"_(J|mJ|uJ)$", t))), "J")
        energy = Field("c2", "value", "energy_j", unit, required=True)
        rejects.append(table.without_time(lost, (energy,), Field("c1", "timestamp", "ts_utc")))
        raw = self._spanned(raw.filter(pl.col("ts_utc").is_not_null()))
        values, bad = table.convert(raw, (energy,))
        values = one_interval.by_device(values.with_columns(raw["ts_utc"], raw["span_s"]))
        readings, beyond = table.judge_each(values, raw, energy, {d: c.scope for d, c in self._channels.items()})
        return Part(lines=block.count, readings=readings, rejects=pl.concat([*rejects, bad, beyond]), channels=fresh)

    def _named(self, raw: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Channel, ...]]:
        """Give each line its device; sums that the tool makes itself are parts, as their summands are read."""
        keys = raw.select("c0", "c3", "c4", "domain").unique(maintain_order=True)
        rows, fresh = [], []
        for metric, kind, ident, domain in keys.iter_rows():
            device, scope = _place(metric, kind or "", (ident or "").strip(), domain or "")
            rows.append((metric, kind, ident, domain, device))
            if device not in self._channels:
                self._channels[device] = Channel(device, scope, kind="energy")
                fresh.append(self._channels[device])
        table_ = pl.DataFrame(rows, schema={n: pl.String for n in ("c0", "c3", "c4", "domain", "device")}, orient="row")
        named = raw.join(table_, on=["c0", "c3", "c4", "domain"], how="left", nulls_equal=True, maintain_order="left")
        # Several registers of one name in one poll (a platform domain a socket) are told apart by their order.
        place = pl.int_range(pl.len()).over("c1", "device")
        again = named.with_columns(place=place).filter(pl.col("place") > 0)
        if again.height:
            for device, n in again.select("device", "place").unique(maintain_order=True).iter_rows():
                name = f"{device}/{n}"
                if name not in self._channels:
                    self._channels[name] = Channel(name, self._channels[device].scope, kind="energy")
                    fresh.append(self._channels[name])
            suffix = pl.when(place > 0).then(pl.concat_str("device", pl.lit("/"), place)).otherwise("device")
            named = named.with_columns(device=suffix)
        return named, tuple(fresh)

    def _spanned(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Each energy covers the time since the reading before; the first of a device covers the usual step."""
        before = pl.col("device").replace_strict(self._last, default=None, return_dtype=pl.Int64)
        us = pl.col("ts_utc").dt.timestamp("us")
        step = us - pl.coalesce(us.shift(1).over("device"), before)
        usual = step.filter(step > 0).median().over("device")
        span = pl.when(step.is_null() | (step <= 0)).then(usual).otherwise(step) / 1e6
        spanned = raw.with_columns(span_s=span)
        ends = spanned.group_by("device").agg(us.last().alias("us"))
        self._last |= dict(ends.iter_rows())
        return spanned


def _place(metric: str, kind: str, ident: str, domain: str) -> tuple[str, str]:
    if _CARD.match(metric):
        return f"gpu:{ident}" if ident.isdigit() else f"gpu:{ident or 0}", "board"
    if domain.endswith("_total"):
        return domain.replace("_", "-"), "part"
    known = rapl.domain(domain or kind.removeprefix("cpu_"), int(ident) if ident.isdigit() else None)
    return (known.device, known.scope) if known else (f"{kind}:{domain or ident}", "part")


ADAPTER = Adapter(
    name="alumet",
    title="Alumet CSV",
    yields="energy per interval of CPU packages, memory, platform and cards",
    sniff=_sniff,
    parse=_parse,
)
