"""``perf stat`` of RAPL events: totals of a command, or an energy per interval (``-I``), as text or with ``-x``."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook.findings import Finding
from joulebook_pipelines.logs import damage, one_interval, perf_reports, rapl, relative, sections, stamps, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_EVENT = (
    r"^\s*(?:(\d+\.\d+)[\s,;]+)?(?:([SN]\d+(?:-D\d+)?)[\s,;]+\d+[\s,;]+)?(<not \w+>|[\d.,]*\d)(?:\s+|[,;])Joules(?:\s+|[,;])"
    r"(power/energy-\w+/)"
)
_LOOSE = r"power/energy-\w+/"
_COMMA_DECIMALS = re.compile(r"(?m)\d,\d{1,2}\s+Joules\s|\d,\d{6,9}\s+seconds time elapsed")
"""perf prints energies with two decimals and times with nine, with the signs of the locale that it ran in."""

_POINT_STAMP = r"^(\s*\d+\.\d{9}\s)"
"""The stamp of an interval has a point in any locale."""

_JSON = (
    r'(?m)^\{(?:"interval"\s*:\s*([\d.]+),\s*)?(?:"(?:socket|node)"\s*:\s*"([SN]\d+)"[^"]*"[\w-]+"\s*:\s*(\d+),\s*)?'
    r'"counter-value"\s*:\s*"([^"]*)",\s*"unit"\s*:\s*"Joules",\s*"event"\s*:\s*"(power/energy-\w+/)".*$'
)
"""A line of ``-j``; it is read as the line of text that says the same."""

_VALUE = Field("value", "Joules", "energy_j", "J", required=True)


def _sniff(head: Head) -> bool:
    return bool(re.search(rf"(?m){_EVENT}", _with_points(head.text)))


def _with_points(text: str) -> str:
    """Return the text with points as decimal signs, where it was written with commas and points between thousands."""
    if text.lstrip().startswith("{"):
        return re.sub(_JSON, lambda m: " ".join(g for g in (*m.groups()[:4], "Joules", m[5]) if g), text)
    if not _COMMA_DECIMALS.search(text):
        return text
    return re.sub(r"\d[\d.]*,\d+", lambda m: m[0].replace(".", "").replace(",", "."), text)


def _parse(log: Log) -> Iterator[Part]:
    if not perf_reports.is_dated(log):
        yield from _reports(log)
        return
    with perf_reports.dated(log) as copy:
        yield from _reports(copy)


def _reports(log: Log) -> Iterator[Part]:
    text = _with_points(log.head.text)
    first = re.search(rf"(?m){_EVENT}", text)
    if first is None:
        raise LogRefusedError(f"{log.name}: no line is an energy of perf stat (… Joules power/energy-…/)")
    start = perf_reports.first_start(log)
    form = stamps.StampForm("relative", aware=True, unit_us=1e6)
    line = text[: first.start()].count("\n") + 1
    how = relative.stamping(log, form, line, first[1] or "0", start=start)
    totals = None if first[1] else perf_reports.totals(_with_points(log.whole_text(1 << 22)), log)
    reader = _Reader(log, how, totals)
    findings: tuple[Finding, ...] = how.findings
    for block in log.blocks():
        part = reader.read(block)
        yield Part(part.lines, part.readings, part.rejects, channels=part.channels, findings=findings)
        findings = ()


class _Reader:
    """State of one pass: the last stamp of each device, which gives each energy its span."""

    def __init__(self, log: Log, how: relative.Stamping, totals: pl.DataFrame | None) -> None:
        self._log, self._how, self._totals, self._begun = log, how, totals, perf_reports.Begun(log)
        self._last: dict[str, float] = {}
        self._channels: dict[str, Channel] = {}
        self._commas = _COMMA_DECIMALS.search(log.head.text) is not None

    def read(self, block: Block) -> Part:
        cut = pl.col("raw").str.starts_with("{") & ~pl.col("raw").str.contains(r"\}\s*$")
        lines = self._begun.placed(sections.lines_of(block)).filter(pl.col("raw").str.contains(_LOOSE) | cut)
        stamp = pl.col("raw").str.extract(_POINT_STAMP, 1).fill_null("")
        value = pl.col("raw").str.replace(_POINT_STAMP, "")
        plain = stamp + value.str.replace_all(".", "", literal=True).str.replace_all(",", ".", literal=True)
        objects = pl.col("raw").str.replace(_JSON, "${1} ${2} ${3} ${4} Joules ${5}").str.strip_chars_start()
        said = plain if self._commas else pl.when(pl.col("raw").str.starts_with("{")).then(objects).otherwise("raw")
        groups = lines.with_columns(g=said.str.extract_groups(_EVENT)).unnest("g")
        groups = groups.rename({"1": "at", "2": "socket", "3": "value", "4": "event"})
        whole = pl.col("event").is_not_null() & (pl.lit(self._totals is not None) | pl.col("at").is_not_null())
        rejects = [damage.odd_lines(block, groups.filter(~whole).select("line", "raw"), "damaged-line")]
        raw, fresh = self._named(groups.filter(whole))
        raw = self._timed(raw)
        raw, lost = table.timed(raw, (_VALUE,), Field("at", "time", "ts_utc"))
        rejects.append(lost)
        # Text prints thousands apart with commas; what a comma separates in -x output is no part of the number.
        values, bad = table.convert(raw, (_VALUE,), decimal=".,")
        values = values.with_columns(raw["ts_utc"], raw["span_s"])
        values = one_interval.by_device(values) if self._totals is None else values
        readings, beyond = table.judge_each(values, raw, _VALUE, {d: c.scope for d, c in self._channels.items()})
        return Part(lines=block.count, readings=readings, rejects=pl.concat([*rejects, bad, beyond]), channels=fresh)

    def _named(self, raw: pl.DataFrame) -> tuple[pl.DataFrame, tuple[Channel, ...]]:
        rows, fresh = [], []
        for event, socket in raw.select("event", "socket").unique(maintain_order=True).iter_rows():
            number = re.match(r"[SN](\d+)", socket or "")
            domain = rapl.domain(event, int(number[1]) if number else None) or rapl.Domain(event, "part")
            rows.append((event, socket, domain.device))
            if domain.device not in self._channels:
                self._channels[domain.device] = Channel(domain.device, domain.scope, kind="energy")
                fresh.append(self._channels[domain.device])
        names = pl.DataFrame(rows, schema={"event": pl.String, "socket": pl.String, "device": pl.String}, orient="row")
        return raw.join(names, on=["event", "socket"], how="left", nulls_equal=True, maintain_order="left"), tuple(
            fresh
        )

    def _timed(self, raw: pl.DataFrame) -> pl.DataFrame:
        """Intervals end at their stamp and begin where the one before ended, the first at the start; totals begin at their start."""
        if self._totals is not None:
            ends = raw.select("line").join_asof(self._totals, on="line", strategy="forward")
            raw = raw.with_columns(ends["since"], at=ends["elapsed"].cast(pl.String))
        seconds = pl.col("at").cast(pl.Float64, strict=False)
        later = pl.when(pl.col("since") == 0).then("at").otherwise((seconds + pl.col("since")).cast(pl.String))
        naive = raw.select(self._how.naive(later).alias("ts_utc")).to_series()
        raw = raw.with_columns(self._how.clock.to_utc(naive), series=pl.format("{} {}", "since", "device"))
        if self._totals is not None:
            return raw.with_columns(span_s=seconds)
        before = pl.col("series").replace_strict(self._last, default=0.0, return_dtype=pl.Float64)
        raw = raw.with_columns(span_s=seconds - pl.coalesce(seconds.shift(1).over("series"), before))
        self._last |= dict(raw.group_by("series").agg(seconds.last()).iter_rows())
        return raw.with_columns(pl.when(pl.col("span_s") > 0).then("span_s").alias("span_s"))


ADAPTER = Adapter(
    name="perf-stat",
    title="perf stat of RAPL events: totals, or per interval (-I)",
    yields="energy of packages, cores, memory and platform, of the command or per interval",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
