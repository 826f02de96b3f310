"""Rows of a run table as runs in time: when each began and ended, which labels it carries."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import cells, dialect, local_time, relative, run_lengths
from joulebook_pipelines.logs.contract import Head, Log, LogRefusedError
from joulebook_pipelines.logs.run_titles import Columns

LONGEST_RUN_S = 3.2e8
"""Ten years."""

LONGEST_LABEL = 80
"""A longer text is a prompt or a path, not a label."""

_AGREE = 0.95
"""Share of neighbouring rows that must not overlap for a stamp to be believed the start, or the end, of its row."""

_LIMIT = re.compile(r"(?i)(?:.*\.)?power[_ ](?:limit|cap)(?![a-z])")

_SLACK_S = 0.05


_NAME = re.compile(r"[A-Za-z_][\w .+()/-]*$")
"""What a run is called: it begins with a letter, as no number and no time does."""


def are_named(head: Head, separator: str, count: int) -> bool:
    """Tell whether each row begins with a name of its own, and no number or time; a row that is alone needs none."""
    lines = [line for line in head.lines[head.top[0] :] if line.strip()]
    if head.complete and len(lines) == 1:
        return len(dialect.split_line(lines[0], separator)) == count
    names = []
    for line in lines if head.complete else lines[:-1]:
        row = dialect.split_line(line, separator)
        if len(row) != count or not _NAME.match(name := row[0].strip('" ')):
            return False
        names.append(name)
    return len(names) > 1 and len(set(names)) == len(names)


def times(log: Log, raw: pl.DataFrame, found: Columns) -> tuple[pl.DataFrame, tuple[Finding, ...]]:
    """Return the rows with ``start_utc``, ``end_utc`` and ``span_s``, null where a row does not say them.

    Parameters
    ----------
    log
        The file.
    raw
        ``line`` and the text columns of the table.
    found
        What its titles say.

    Raises
    ------
    LogRefusedError
        Neither duration nor times are there, or a stamp may be the start as well as the end.
    """
    if {"start", "end"} <= set(found.roles):
        first, doubts = _utc(log, raw, found, "start")
        last, _ = _utc(log, raw, found, "end")
        frame = raw.with_columns(first.alias("start_utc"), last.alias("end_utc"))
        span_s = (pl.col("end_utc") - pl.col("start_utc")).dt.total_microseconds() / 1e6
        return _sound(frame.with_columns(span_s=span_s)), doubts
    frame = raw.with_columns(_durations(log, raw, found))
    role = next((r for r in ("start", "end", "stamp") if r in found.roles), None)
    if role is None:
        return _one_after_another(_sound(frame)), (_no_times(log),)
    at, doubts = _utc(log, raw, found, role)
    side = role if role != "stamp" else _side(log, at, frame["span_s"], found.titles[found.roles[role]])
    length = pl.duration(microseconds=(pl.col("span_s") * 1e6).round().cast(pl.Int64))
    known = _sound(frame.with_columns(at.alias("at")))
    stamp = pl.col("at")
    start, end = (stamp, stamp + length) if side == "start" else (stamp - length, stamp)
    return known.with_columns(start_utc=start, end_utc=end).drop("at"), doubts


def _durations(log: Log, raw: pl.DataFrame, found: Columns) -> pl.Series:
    """Return the length of each run [s]."""
    if "duration" not in found.roles:
        if log.options.distance_s is None:
            energies = any(c.quantity == "energy_j" for c in found.spent)
            cure = "each run took" if energies else "each row covers; 1 keeps powers and energies per token right"
            raise LogRefusedError(
                f"{log.name}:1: gives neither duration nor times of the runs; add period_s = (the seconds that {cure}) to this [[source]], "
                'or name the column of their durations: columns = { span_s = "…" }'
            )
        return pl.Series("span_s", [log.options.distance_s] * raw.height, dtype=pl.Float64)
    unit = found.duration_unit or log.options.units.get("span_s", "")
    text = pl.col(f"c{found.roles['duration']}")
    return raw.select(
        pl.coalesce(run_lengths.seconds(text), cells.number(text, "span_s", unit)).alias("span_s")
    ).to_series()


def _sound(frame: pl.DataFrame) -> pl.DataFrame:
    """Take away lengths that no run has."""
    return frame.with_columns(pl.when(pl.col("span_s").is_between(1e-6, LONGEST_RUN_S)).then("span_s").alias("span_s"))


def _utc(log: Log, raw: pl.DataFrame, found: Columns, role: str) -> tuple[pl.Series, tuple[Finding, ...]]:
    column, at = f"c{found.roles[role]}", raw["line"]
    samples = [t for t in raw[column].head(200).to_list() if t]
    form = local_time.form(log, samples)
    known = relative.stamping(log, form, int(at[0]), samples[0])
    naive = raw.select(known.naive(pl.col(column).fill_null("")).alias(role)).to_series()
    return known.clock.to_utc(naive), known.findings


def _side(log: Log, at: pl.Series, span_s: pl.Series, title: str) -> str:
    """Return whether a stamp is the start or the end of its row: the reading in which rows do not overlap."""
    if log.options.interval_label:
        return log.options.interval_label
    rows = pl.DataFrame({"at": at, "span": span_s}).drop_nulls()
    step = rows["at"].diff().dt.total_microseconds() / 1e6
    fits = {
        "start": (rows["span"].shift(1) <= step + _SLACK_S).drop_nulls(),
        "end": (rows["span"] <= step + _SLACK_S).filter(step.is_not_null()),
    }
    holds = [side for side, ok in fits.items() if len(ok) and float(str(ok.mean())) >= _AGREE]
    if len(holds) == 1:
        return holds[0]
    raise LogRefusedError(
        f'{log.name}: {title!r} may be the start or the end of each row; add interval_label = "start" or "end" to this [[source]]'
    )


def _one_after_another(frame: pl.DataFrame) -> pl.DataFrame:
    """Lay the runs one behind the other from 1970 on."""
    us = (pl.col("span_s") * 1e6).round().cast(pl.Int64)
    end = us.fill_null(0).cum_sum()
    known = pl.col("span_s").is_not_null()
    utc = pl.Datetime("us", "UTC")
    return frame.with_columns(
        start_utc=pl.when(known).then((end - us).cast(utc)), end_utc=pl.when(known).then(end.cast(utc))
    )


def _no_times(log: Log) -> Finding:
    return Finding(
        "no-times", Severity.WARNING, log.name,
        "The table does not say when its runs took place: they were laid one after another from 1970-01-01, behind those of other such "
        "tables. Energies, durations and energies per token hold; nothing can be compared in time with other files.",
    )  # fmt: skip


def labels(raw: pl.DataFrame, found: Columns, others: Sequence[int], units: Mapping[str, str]) -> pl.Series:
    """Return the labels of each run as JSON: every short cell that is nothing else, under its title; the power limit in watts.

    Parameters
    ----------
    raw
        Text columns ``c0`` and so on.
    others
        Places of the columns that have no other meaning.
    units
        What study.toml says of units.
    """
    if not others:
        return pl.Series("labels", ["{}"] * raw.height, dtype=pl.String)
    limit = next((i for i in others if _LIMIT.match(found.titles[i])), None)
    said = _limit_factor(found.titles[limit], units) if limit is not None else None
    rows = []
    for row in raw.select([f"c{i}" for i in others]).iter_rows():  # a run table has a row a run: they are few
        told: dict[str, Any] = {
            found.titles[i]: _value(text) for i, text in zip(others, row, strict=True)
            if text and found.titles[i] and len(text) <= LONGEST_LABEL and text.lower() not in cells.MISSING
        }  # fmt: skip
        value = told.get(found.titles[limit]) if limit is not None else None
        if said is not None and isinstance(value, int | float):
            told["power_limit_w"] = value * said
        rows.append(json.dumps(told, sort_keys=True, ensure_ascii=False))
    return pl.Series("labels", rows, dtype=pl.String)


def _limit_factor(title: str, units: Mapping[str, str]) -> float | None:
    written = re.split(r"[^a-z]+", title.lower().rstrip(")] "))[-1]
    unit = units.get("power_limit_w", written if written in {"w", "watts", "kw"} else "")
    return cells.factor("power_limit_w", unit) if unit else None


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        return value if abs(value) < 1e18 else text
    return text
