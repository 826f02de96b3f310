"""Exposition text of Prometheus exporters: scrapes with stamps of their own, or with a collector's stamp before each."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook.findings import Finding
from joulebook_pipelines.logs import (
    local_time,
    looped,
    prometheus_names,
    prometheus_series,
    stamp_lines,
    stamps,
    table,
    untimed,
)
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.prometheus_cards import Series
from joulebook_pipelines.logs.prometheus_labels import LABELS, labels

_SAMPLE = rf"^([a-zA-Z_:][a-zA-Z0-9_:]*)({LABELS})?[ \t]+(\S+)(?:[ \t]+(-?\d+(?:\.\d+)?))?\s*$"
_TOOL = re.compile(r"^#\s*(HELP|TYPE|UNIT|EOF)\b|^[a-zA-Z_:][\w:]*(\{|\s+[\d.+-])")


def _sniff(head: Head) -> bool:
    lines = [line for line in head.lines[:60] if line.strip()]
    lines = lines if head.complete else lines[:-1]
    samples = [m for line in lines if (m := re.match(_SAMPLE, line))]
    metas = sum(line.startswith("#") for line in lines)
    known = any(prometheus_names.looks_known(m[1]) for m in samples)
    return known and (len(samples) + metas) * 5 >= len(lines) * 4


def _parse(log: Log) -> Iterator[Part]:
    collector = stamp_lines.find(log, _TOOL)
    frames, odd, count, mark = [], [table.no_rejects()], 0, None
    for block in log.blocks():
        count += block.count
        lines, cut = looped.lines(block)
        lines = lines.rename({"text": "raw"})
        odd += cut
        if collector is not None:
            stamp, _, _ = collector.split(pl.col("raw"))
            tool = pl.col("raw").str.contains(_TOOL.pattern)
            lines = lines.with_columns(mark=pl.when(~tool).then(stamp), tool=tool)
            own = pl.col("mark").is_not_null()
            lines = lines.with_columns(pl.col("mark").forward_fill().fill_null(pl.lit(mark, pl.String)), own=own)
            mark = lines["mark"][-1] if lines.height else mark
            lines = lines.filter(~pl.col("own")).drop("own", "tool")
        lines = lines.filter(~pl.col("raw").str.strip_chars_start().str.starts_with("#"))
        parts = pl.col("raw").str.extract_groups(_SAMPLE).struct
        lines = lines.with_columns(
            name=parts.field("1"), labels=parts.field("2"), value=parts.field("3"), stamp=parts.field("4")
        )
        odd.append(table.whole_lines(lines.filter(pl.col("name").is_null()), "not-a-sample"))
        frames.append(lines.filter(pl.col("name").is_not_null()).drop("raw"))
    found = pl.concat(frames)
    if found.is_empty():
        raise LogRefusedError(f"{log.name}: holds no sample")
    series, found = _series(found)
    utc, untimed_ = _utc(log, found, collector)
    samples = found.with_columns(utc.alias("ts_utc")).rename({"value": "raw"})
    part = prometheus_series.readings(log, series, samples.select(list(prometheus_series.SAMPLES)))
    rejects = pl.concat([*odd, part.rejects]) if part.rejects is not None else pl.concat(odd)
    yield Part(count, part.readings, rejects, channels=part.channels, findings=(*untimed_, *part.findings))


def _series(found: pl.DataFrame) -> tuple[list[Series], pl.DataFrame]:
    """Return the distinct series, and the samples with the place of theirs."""
    kinds = found.select("name", "labels").unique(maintain_order=True).with_row_index("series")
    series = [Series(name, labels(text)) for _, name, text in kinds.iter_rows()]
    joined = found.join(kinds, on=["name", "labels"], how="left", nulls_equal=True, maintain_order="left")
    return series, joined.with_columns(pl.col("series").cast(pl.Int64))


def _utc(
    log: Log, found: pl.DataFrame, collector: stamp_lines.StampLines | None
) -> tuple[pl.Series, tuple[Finding, ...]]:
    """Return the time of each sample: its own, else that of the scrape.

    Raises
    ------
    LogRefusedError
        Neither is in the file.
    """
    own = found["stamp"].drop_nulls()
    known = pl.Series("ts_utc", [None] * found.height, dtype=pl.Datetime("us", "UTC"))
    if len(own):
        form = local_time.form(log, own.head(200).to_list())
        if form.pattern == "epoch":
            known = (
                found.select(stamps.parse(pl.col("stamp"), form).alias("ts_utc"))
                .to_series()
                .dt.replace_time_zone("UTC")
            )
    if collector is not None:
        known = pl.select(pl.coalesce(known, collector.utc(found, pl.col("mark"))).alias("ts_utc")).to_series()
    if (
        known.null_count() == found.height
        and not found.select(pl.struct("name", "labels").is_duplicated().any()).item()
    ):
        moment = untimed.Moment(log)
        return moment.at(known), moment.findings
    if known.null_count() == found.height:
        raise LogRefusedError(
            f"{log.name}: scrapes without time: an exporter's text does not say when it was taken. Query "
            "the Prometheus for a range (/api/v1/query_range) and give its JSON, or print date -Is before each scrape"
        )
    return known, ()


ADAPTER = Adapter(
    name="prometheus-text",
    title="exposition text of Prometheus exporters (repeated scrapes with times)",
    yields="power and energy counters of cards, sockets, memory and nodes, with utilisation, temperature and clocks",
    sniff=_sniff,
    parse=_parse,
)
