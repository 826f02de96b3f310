"""JSON of a Prometheus: answers of range and instant queries, one or many, also kept by name or one a line."""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from joulebook_pipelines.logs import prometheus_series, table
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.prometheus_cards import Series
from joulebook_pipelines.logs.stamps import LAST_EPOCH_S

_ANSWER = re.compile(r'"resultType"\s*:|"metric"\s*:\s*\{')
_ERROR = re.compile(r'"status"\s*:\s*"error"')
_SAMPLE = re.compile(r'\[\s*-?\d[\d.eE+-]*\s*,\s*"(?:[^"\\]|\\.)*"\s*\]')
"""A sample as it stands in the text: time and value."""


def _sniff(head: Head) -> bool:
    text = head.text.lstrip()
    return text[:1] in {"{", "["} and bool(_ANSWER.search(text) or (_ERROR.search(text) and '"errorType"' in text))


@dataclass
class _Answers:
    """Series and samples of all the answers of a file."""

    name: str
    places: dict[str, int] = field(default_factory=dict)
    series: list[Series] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    times: list[float | None] = field(default_factory=list)
    values: list[str] = field(default_factory=list)
    odd: list[tuple[int, str]] = field(default_factory=list)

    def add(self, document: object, line: int) -> None:
        """Take in a document: an answer, a list of results, or results kept by a name."""
        if isinstance(document, dict) and document.get("status") == "error":
            raise LogRefusedError(
                f"{self.name}:{line}: the query failed: {document.get('errorType')}: {document.get('error')}"
            )
        self._walk(document, "")

    def _walk(self, thing: object, name: str) -> None:
        if isinstance(thing, list):
            for item in thing:
                self._walk(item, name)
        elif isinstance(thing, dict) and isinstance(thing.get("metric"), dict):
            self._result(thing, name)
        elif isinstance(thing, dict):
            for key, value in thing.items():
                if isinstance(value, (dict, list)):
                    self._walk(value, name if key in {"data", "result", "results"} else str(key))

    def _result(self, result: dict[str, object], name: str) -> None:
        metric = result["metric"]
        assert isinstance(metric, dict)
        labels = {str(k): str(v) for k, v in metric.items()}
        own = labels.pop("__name__", "") or name
        key = json.dumps([own, labels], sort_keys=True)
        place = self.places.setdefault(key, len(self.series))
        if place == len(self.series):
            self.series.append(Series(own, labels))
        values = result.get("values", [result["value"]] if "value" in result else [])
        for sample in values if isinstance(values, list) else []:
            if (
                isinstance(sample, list)
                and len(sample) == 2
                and isinstance(sample[0], int | float)
                and abs(sample[0]) < LAST_EPOCH_S
            ):
                self.numbers.append(place)
                self.times.append(float(sample[0]))
                self.values.append(str(sample[1]))
            else:
                self.odd.append((1, json.dumps(sample)))

    def samples(self, lines: list[int]) -> pl.DataFrame:
        """Return the samples with the lines on which they stand."""
        us = (pl.Series("t", self.times, dtype=pl.Float64) * 1e6).round().cast(pl.Int64, strict=False)
        utc = us.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
        frame = pl.DataFrame(
            {"series": self.numbers, "line": lines, "ts_utc": utc, "raw": self.values}, schema=prometheus_series.SAMPLES
        )
        year = pl.col("ts_utc").dt.year()
        return frame.with_columns(ts_utc=pl.when(year.is_between(2000, 2100)).then("ts_utc"))


def _documents(log: Log, text: str) -> Iterator[tuple[int, object]]:
    """Yield the documents of a file with the offset at which each begins."""
    decoder, at = json.JSONDecoder(), 0
    while True:
        blank = re.compile(r"[\s,;]*").match(text, at)
        at = blank.end() if blank else at
        if at >= len(text):
            return
        try:
            document, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            line = text.count("\n", 0, getattr(error, "pos", at)) + 1
            raise LogRefusedError(
                f"{log.name}:{line}: not whole JSON ({getattr(error, 'msg', 'too deep')}): the answer was cut or damaged; export it again"
            ) from None
        yield at, document
        at = end


def _parse(log: Log) -> Iterator[Part]:
    text = log.whole_text()
    answers = _Answers(log.name)
    counts: list[tuple[int, int]] = []
    for at, document in _documents(log, text):
        line = text.count("\n", 0, at) + 1 if len(counts) < 2 else 1
        try:
            answers.add(document, line)
        except RecursionError:
            raise LogRefusedError(f"{log.name}:{line}: nested too deeply for an answer") from None
        counts.append((at, len(answers.values)))
    if not answers.series:
        raise LogRefusedError(
            f"{log.name}: the answer holds no series: nothing was measured, or the query matched nothing"
        )
    lines = _lines(text, counts, len(answers.values))
    part = prometheus_series.readings(log, answers.series, answers.samples(lines))
    odd = table.whole_lines(
        pl.DataFrame(answers.odd, schema={"line": pl.Int64, "raw": pl.String}, orient="row"), "not-a-sample"
    )
    rejects = odd if part.rejects is None else pl.concat([part.rejects, odd])
    total = text.count("\n") + (not text.endswith("\n"))
    yield Part(total, part.readings, rejects, channels=part.channels, findings=part.findings)


def _lines(text: str, counts: list[tuple[int, int]], samples: int) -> list[int]:
    """Return the line of each sample: of its own where the text shows it, else where its document begins."""
    ends = [m.start() for m in re.finditer("\n", text)]
    if len(ends) > len(counts):
        places = [m.start() for m in _SAMPLE.finditer(text)]
        if len(places) == samples:
            return [bisect.bisect_left(ends, p) + 1 for p in places]
    made: list[int] = []
    for at, until in counts:
        made += [bisect.bisect_left(ends, at) + 1] * (until - len(made))
    return made


ADAPTER = Adapter(
    name="prometheus",
    title="Prometheus query answers (JSON) of DCGM, NVIDIA, IPMI, Node Exporter, Kepler and Scaphandre exporters",
    yields="power and energy counters of cards, sockets, memory and nodes, with utilisation, temperature and clocks",
    sniff=_sniff,
    parse=_parse,
)
