"""``promtool query range`` and ``query instant``: a line a series, behind or below it each value with its time."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import local_time, looped, prometheus_names, prometheus_series, stamps, table
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.prometheus_cards import Series
from joulebook_pipelines.logs.prometheus_labels import LABELS, labels

_SERIES = rf"^([a-zA-Z_:][a-zA-Z0-9_:]*)?({LABELS})?\s*=>\s*(.*?)\s*$"
"""Groups: name, labels, what stands behind on the line."""

_VALUE = r"^\s*(\S+)\s+@\[(-?\d+(?:\.\d+)?)\]\s*$"


def _sniff(head: Head) -> bool:
    if "@[" not in head.text:
        return False
    lines = pl.DataFrame({"raw": [line for line in head.lines[:60] if line.strip()]})
    parts = _parts(lines)
    named = parts.filter(pl.col("series") & (pl.col("name").is_not_null() | pl.col("labels").is_not_null()))
    values = parts.filter(pl.col("value").is_not_null())
    known = any(prometheus_names.looks_known(name or "") or "power" in (name or "") for name in named["name"])
    odd = parts.filter(~pl.col("series") & pl.col("value").is_null()).height - (not head.complete)
    return (
        values.height > 0 and named.height > 0 and odd * 5 <= lines.height and (known or named["name"].null_count() > 0)
    )


def _parts(lines: pl.DataFrame) -> pl.DataFrame:
    """Return lines with the series that they begin, and the value and stamp that they hold."""
    said = pl.col("raw").str.extract_groups(_SERIES).struct
    lines = lines.with_columns(
        series=pl.col("raw").str.contains(_SERIES), name=said.field("1"), labels=said.field("2"), rest=said.field("3")
    )
    value = pl.when("series").then("rest").otherwise("raw").str.extract_groups(_VALUE).struct
    return lines.with_columns(value=value.field("1"), stamp=value.field("2"))


def _parse(log: Log) -> Iterator[Part]:
    frames, odd, count = [], [table.no_rejects()], 0
    for block in log.blocks():
        count += block.count
        lines, cut = looped.lines(block, ends=("]",))
        odd += cut
        frames.append(_parts(lines.rename({"text": "raw"})))
    lines = pl.concat(frames).with_columns(at=pl.col("series").cum_sum())
    strange = pl.col("value").is_null() & (~pl.col("series") | (pl.col("rest") != ""))
    homeless = pl.col("value").is_not_null() & (pl.col("at") == 0)
    odd.append(table.whole_lines(lines.filter(strange), "not-a-sample"))
    odd.append(table.whole_lines(lines.filter(homeless), "value-without-series"))
    series, samples = _series(lines.filter(~homeless))
    if samples.is_empty():
        raise LogRefusedError(
            f"{log.name}: holds no value with a time, as promtool query range prints them (301.5 @[1772528400])"
        )
    form = local_time.form(log, samples["stamp"].head(200).to_list())
    utc = samples.select(stamps.parse(pl.col("stamp"), form).alias("ts_utc")).to_series().dt.replace_time_zone("UTC")
    told = samples.with_columns(utc.alias("ts_utc"), raw="value").select(list(prometheus_series.SAMPLES))
    part = prometheus_series.readings(log, series, told)
    rejects = pl.concat([*odd, part.rejects]) if part.rejects is not None else pl.concat(odd)
    yield Part(count, part.readings, rejects, channels=part.channels, findings=part.findings)


def _series(lines: pl.DataFrame) -> tuple[list[Series], pl.DataFrame]:
    """Return the distinct series, and the values with the place of theirs."""
    named = lines.filter("series").select("at", "name", "labels")
    kinds = named.select("name", "labels").unique(maintain_order=True).with_row_index("place")
    series = [Series(name or "", labels(text)) for _, name, text in kinds.iter_rows()]
    places = named.join(kinds, on=["name", "labels"], nulls_equal=True).select(
        "at", series=pl.col("place").cast(pl.Int64)
    )
    values = lines.filter(pl.col("value").is_not_null()).drop("series")
    return series, values.join(places, on="at", how="left", maintain_order="left")


ADAPTER = Adapter(
    name="promtool",
    title="promtool query range, query instant (text)",
    yields="power and energy counters of cards, sockets, memory and nodes, with utilisation, temperature and clocks",
    sniff=_sniff,
    parse=_parse,
)
