"""Redfish JSON of any vendor: Power, PowerSupplyMetrics, EnvironmentMetrics, Thermal, Sensor, MetricReport."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from joulebook import rules
from joulebook.findings import Finding
from joulebook_pipelines.logs import bmc_doubts, cells, local_time, redfish_values, stamp_lines, stamps, table, untimed
from joulebook_pipelines.logs.contract import Adapter, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.redfish_values import Value

_KEYS = re.compile(
    r'"(?:PowerConsumedWatts|PowerControl|InputPowerWatts|PowerInputWatts|PowerWatts|ReadingCelsius)"\s*:'
)
_TYPES = re.compile(
    r'"@odata\.type"\s*:\s*"#(?:Power|PowerSubsystem|PowerSupply|PowerSupplyMetrics|EnvironmentMetrics|Thermal\w*|Sensor\w*|MetricReport)\.'
)
_CURE = (
    'write the time with each document, e.g. while true; do date -Is; curl -s "$URL"; echo; sleep 10; done, '
    "or wrap it as "
    '{"time": "2026-03-02T10:00:00Z", "power": {…}}'
)
_NOTHING = re.compile(r"(?!)")
MOST_BEFORE = 60
"""A stamp before a document on the same line is no longer than this."""

_DECODER = json.JSONDecoder()
_BEGINS = re.compile(r"^(?=[{\[]|[#=\s\[]*\d{4}-|[A-Z][a-z]{2} )", re.MULTILINE)
"""How a line begins that can start a document or a stamp: what is damaged ends there."""


def sniff(head: Head) -> bool:
    """Tell whether the file holds Redfish resources, bare or wrapped, after a stamp or not."""
    first = next((line.lstrip() for line in head.lines if line.strip() and not _is_stamp(line)), "")
    begin = _document_begin(first, 0, len(first))
    return begin is not None and begin < MOST_BEFORE and bool(_KEYS.search(head.text) or _TYPES.search(head.text))


def _is_stamp(line: str) -> bool:
    return line.lstrip().startswith("#") or ("{" not in line and bool(re.search(r"\d{4}|\d\d:\d\d", line)))


def _parse(log: Log) -> Iterator[Part]:
    text = log.whole_text()
    collector = stamp_lines.find(log, _NOTHING)
    scanner = _Scanner(text, re.compile(collector.pattern) if collector else None)
    scanner.scan()
    rows = [(line, stamp, v) for line, stamp, document in scanner.documents for v in redfish_values.values(document)]
    if not rows:
        why = "its documents hold no power, temperature or fan reading"
        if not scanner.documents:
            why = f"no JSON document could be read, first line {scanner.odd[0][0] if scanner.odd else 1}"
        raise LogRefusedError(f"{log.name}: {why}; log the Power or EnvironmentMetrics resource of the chassis")
    frame, untimed_ = _timed(log, rows, collector)
    readings, rejects = _readings(frame)
    odd = pl.DataFrame(scanner.odd, schema={"line": pl.Int64, "raw": pl.String, "rule": pl.String}, orient="row")
    yield Part(
        lines=text.count("\n") + (not text.endswith("\n")), readings=readings,
        rejects=pl.concat([rejects, table.whole_lines(odd, pl.col("rule"))]),
        channels=_channels(log, frame, readings), findings=(*untimed_, *_findings(log, readings)),
    )  # fmt: skip


@dataclass
class _Scanner:
    """Goes through a file of documents, with stamps or other lines between them."""

    text: str
    stamp_line: re.Pattern[str] | None
    documents: list[tuple[int, str | None, object]] = field(default_factory=list)
    odd: list[tuple[int, str, str]] = field(default_factory=list)
    at: int = 0
    line: int = 1
    stamp: str | None = None

    def scan(self) -> None:
        """Fill ``documents`` (line, stamp before it, parsed) and ``odd`` (line, text, rule)."""
        while self.at < len(self.text):  # one turn a document or a line between documents
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            begin = _document_begin(self.text, self.at, end)
            self._between(self.text[self.at : end if begin is None else begin])
            if begin is None:
                self.at, self.line = end + 1, self.line + 1
            else:
                self._document(begin, end)

    def _between(self, said: str) -> None:
        said = said.strip()
        match = self.stamp_line.match(said) if self.stamp_line else None
        if match:
            self.stamp = match[1]
        elif said.strip(",]") and not said.startswith("#"):
            self.stamp = None  # what should have been a stamp may be this: the stamp before it is another document's
            self.odd.append((self.line, said[: table.LONGEST_RAW], "not-understood"))

    def _document(self, begin: int, end: int) -> None:
        try:
            document, stop = _DECODER.raw_decode(self.text, begin)
            self.documents.append((self.line, self.stamp, document))
        except (ValueError, RecursionError):
            self.odd.append((self.line, self.text[begin:end][: table.LONGEST_RAW], "not-json"))
            found = _BEGINS.search(self.text, end)
            stop = found.start() if found else len(self.text)
        self.stamp = None
        self.line += self.text.count("\n", self.at, stop)
        self.at = stop


def _document_begin(text: str, at: int, end: int) -> int | None:
    """Return where in a line a document begins: at its start, or behind a stamp."""
    places = [i for i in (text.find("{", at, end), text.find("[", at, end)) if i >= 0]
    if not places or '"' in text[at : min(places)]:
        return None
    begin = min(places)
    if text[begin] == "[" and re.match(r"\[\s*\d{4}-", text[begin : begin + 8]):
        begin = text.find("{", begin, end)  # a stamp in brackets
    return begin if begin >= 0 else None


def _timed(
    log: Log, rows: list[tuple[int, str | None, Value]], collector: stamp_lines.StampLines | None
) -> tuple[pl.DataFrame, tuple[Finding, ...]]:
    """Return one row a value with its UTC time: its own, its document's, or that of the line before the document."""
    frame = pl.DataFrame(
        [(n, v.device, v.scope, v.quantity, v.unit, v.column, _shown(v.raw), _text(v.time), s) for n, s, v in rows],
        schema={
            "line": pl.Int64, "device": pl.String, "scope": pl.String, "quantity": pl.String, "unit": pl.String,
            "column": pl.String, "raw": pl.String, "time": pl.String, "stamp": pl.String,
        },
        orient="row",
    )  # fmt: skip
    inside = frame.filter(pl.col("time").is_not_null())
    if inside.is_empty() and (collector is None or frame["stamp"].null_count() == frame.height):
        steps = untimed.of_dumps(log, frame["line"].n_unique(), _CURE)
        return frame.with_columns(steps.at(frame["line"].rank("dense").cast(pl.Int64))), steps.findings
    utc = pl.lit(None, pl.Datetime("us", "UTC"))
    if not inside.is_empty():
        form, clock = _form(log, inside)
        naive = frame.select(stamps.parse(pl.col("time"), form).alias("own")).to_series()
        frame = frame.with_columns(clock.to_utc(naive))
    else:
        frame = frame.with_columns(own=utc)
    if collector is not None:
        naive = frame.select(collector.naive(pl.col("stamp")).alias("before")).to_series()
        frame = frame.with_columns(collector.clock.to_utc(naive))
    else:
        frame = frame.with_columns(before=utc)
    return frame.with_columns(ts_utc=pl.when(pl.col("time").is_not_null()).then("own").otherwise("before")), ()


def _form(log: Log, inside: pl.DataFrame) -> tuple[stamps.StampForm, local_time.Localiser]:
    samples = inside["time"].head(200).to_list()
    form = local_time.form(log, samples)
    return form, local_time.localiser(log, form, int(inside["line"][0]), samples[0])


def _shown(raw: object) -> str:
    return raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)[: table.LONGEST_RAW]


def _text(time: object) -> str | None:
    return None if time is None else str(time)


def _readings(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return one row a document and device, and rejects of what is no number, has no time, or cannot be."""
    factor = pl.when(pl.col("unit") == "kWh").then(3.6e6).when(pl.col("unit") == "percent").then(0.01).otherwise(1.0)
    frame = frame.with_columns(number=cells.plain_number(pl.col("raw")) * factor)
    again = pl.int_range(pl.len()).over("line", "device", "quantity", "ts_utc") > 0
    rule = (
        pl.when(pl.col("number").is_null()).then(cells.why_null(pl.col("raw")))
        .when(pl.col("ts_utc").is_null()).then(pl.lit("no-such-time"))
        .when(again).then(pl.lit("second-of-its-device"))
    )  # fmt: skip
    frame = frame.with_columns(rule=rule)
    rejects = [_rejects(frame.filter(pl.col("rule").is_not_null()))]
    good = frame.filter(pl.col("rule").is_null())
    key = ["line", "device", "ts_utc"]
    present = good["quantity"].unique(maintain_order=True).to_list()
    scope = pl.col("scope").sort_by((pl.col("scope") == "part").cast(pl.Int8), maintain_order=True).first()
    wide = good.group_by(key, maintain_order=True).agg(
        scope.alias("scope"), *(pl.col("number").filter(pl.col("quantity") == q).first().alias(q) for q in present)
    )
    frames = []
    for (scope_, whole), mine in wide.with_columns(whole=pl.col("device") == "node").group_by(
        "scope", "whole", maintain_order=True
    ):
        kept, gone = rules.judge(mine.select(*key, *present), str(scope_) or "node", never_zero=True if whole else None)
        told = gone.select("line", "device", "quantity", broken="rule").join(good, on=["line", "device", "quantity"])
        rejects.append(_rejects(told.with_columns(rule="broken")))
        frames.append(kept)
    readings = table.kept(pl.concat(frames)) if frames and present else wide.select(key).clear()
    return readings.sort("ts_utc", "line", "device", maintain_order=True), pl.concat(rejects)


def _rejects(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select("line", "device", column_name="column", rule="rule", raw="raw")


def _channels(log: Log, frame: pl.DataFrame, readings: pl.DataFrame) -> tuple[Channel, ...]:
    scopes: dict[str, str] = {}
    for device, scope in frame.select("device", "scope").unique(maintain_order=True).iter_rows():
        if scopes.get(device, "part") == "part":
            scopes[device] = scope or log.options.scope or ""
    counters = set(frame.filter(pl.col("quantity") == "energy_counter_j")["device"])
    return tuple(
        Channel(d, scopes[d], kind="counter" if d in counters else "instant")
        for d in readings["device"].unique(maintain_order=True)
    )


def _findings(log: Log, readings: pl.DataFrame) -> tuple[Finding, ...]:
    doubts = bmc_doubts.Doubts()
    doubts.count(readings)
    return tuple(doubts.findings(log.name))


ADAPTER = Adapter(
    name="redfish",
    title="Redfish Power, PowerSupplyMetrics, EnvironmentMetrics, Thermal, MetricReport (JSON, single or in a loop)",
    yields="node power and limit, power of supplies (input, output) and processors; fans and temperatures",
    sniff=sniff,
    parse=_parse,
    needs_zone=True,
)
