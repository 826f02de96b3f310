"""MLPerf result logs (``:::MLLOG``): the window of a training run, or the power window of an inference run."""

from __future__ import annotations

import json
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import damage, mllog, stamps
from joulebook_pipelines.logs.contract import Adapter, Head, Log, LogRefusedError, Part

ORIGIN = "benchmark log"

_UTC = pl.Datetime("us", "UTC")

_POWER_KEYS = ('"power_reading"', '"power_measurement_start"', '"interconnect_power_est"')
_PHASES = {"eval": "evaluation", "init": "startup"}
_LABELS = {
    "submission_benchmark": "benchmark",
    "effective_scenario": "scenario",
    "submission_platform": "platform",
    "seed": "seed",
}
_SPD = stamps.StampForm("%m-%d-%Y %H:%M:%S%.f", aware=True, fixed=False)
"""Inference logs write their power window as UTC in the order month, day, year."""

_KEPT = (
    "run_start", "run_stop", "init_start", "init_stop", "eval_start", "eval_stop", "global_batch_size", "train_samples", "train_loss",
    "power_begin", "power_end", "result_query_count", "generated_samples_per_query", *_LABELS,
)  # fmt: skip


def _sniff(head: Head) -> bool:
    return mllog.present(head) and not any(key in head.text for key in _POWER_KEYS)


def _parse(log: Log) -> Iterator[Part]:
    kept = []
    for block in log.blocks():
        found, odd = mllog.events(block)
        mine = found.filter(pl.col("key").is_in(_KEPT)).drop("raw")
        kept.append(mine)
        yield Part(lines=block.count, rejects=damage.odd_lines(block, odd, "damaged-event"))
    events = pl.concat(kept)
    keys = set(events["key"])
    if {"power_begin", "power_end"} <= keys:
        yield _inference(log, events)
    elif {"run_start", "run_stop"} <= keys:
        yield _training(log, events)
    else:
        raise LogRefusedError(
            f"{log.name}: has neither run_start and run_stop nor power_begin and power_end, so it tells of no run; "
            "give its window as [[run]] with start and end"
        )


def _text(events: pl.DataFrame, key: str) -> str | None:
    values = events.filter((pl.col("key") == key) & pl.col("value").is_not_null())["value"]
    return None if values.is_empty() else str(values[0]).strip().strip('"')


def _number(events: pl.DataFrame, key: str) -> float | None:
    try:
        return float(_text(events, key) or "")
    except ValueError:
        return None


def _labels(events: pl.DataFrame) -> str:
    known = {name: value for key, name in _LABELS.items() if (value := _text(events, key)) is not None}
    return json.dumps(known, sort_keys=True)


def _run(log: Log, name: str, **told: object) -> pl.DataFrame:
    row = {"run_id": name, "host": log.options.host, "origin": ORIGIN} | told
    frame = pl.DataFrame([row])
    numbers = [pl.col(c).cast(pl.Float64) for c in ("samples", "batch_size") if c in frame.columns]
    return frame.with_columns(pl.col("start_utc").cast(_UTC), pl.col("end_utc").cast(_UTC), *numbers)


def _training(log: Log, events: pl.DataFrame) -> Part:
    name = log.path.name.split(".")[0]
    events = events.with_columns(
        at=mllog.stamp(pl.col("time_ms")),
        samples=mllog.told(pl.col("metadata"), "samples_count").cast(pl.Float64, strict=False),
    )
    starts = events.filter(pl.col("key") == "run_start")["at"].drop_nulls()
    stops = events.filter(pl.col("key") == "run_stop")
    if starts.is_empty() or stops["at"].null_count() == stops.height:
        raise LogRefusedError(
            f"{log.name}: the stamps of run_start and run_stop are no Unix times; give the window as [[run]]"
        )
    samples = stops["samples"].drop_nulls()
    run = _run(
        log, name, start_utc=starts[0], end_utc=stops["at"].drop_nulls()[-1],
        samples=samples[-1] if len(samples) else None, batch_size=_number(events, "global_batch_size"), labels=_labels(events),
    )  # fmt: skip
    return Part(runs=run, steps=_steps(events, name), phases=_phases(events, name))


def _steps(events: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the losses that the log tells, each at the step that its number of samples makes."""
    batch = _number(events, "global_batch_size")
    losses = events.filter(
        (pl.col("key") == "train_loss") & pl.col("samples").is_not_null() & pl.col("at").is_not_null()
    )
    return losses.select(
        run_id=pl.lit(name), step=(pl.col("samples") / (batch or 1.0)).round().cast(pl.Int64), start_utc=pl.lit(None, _UTC),
        end_utc="at", tokens=pl.lit(None, pl.Float64), loss=pl.col("value").cast(pl.Float64, strict=False),
        batch_size=pl.lit(batch, pl.Float64), learning_rate=mllog.told(pl.col("metadata"), "lr").cast(pl.Float64, strict=False),
    ).unique("step", keep="first", maintain_order=True)  # fmt: skip


def _phases(events: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the intervals that the log gives start and end of; ranks that tell the same make one."""
    marks = events.filter(pl.col("key").str.contains(r"^(eval|init)_(start|stop)$") & pl.col("at").is_not_null()).sort(
        "at"
    )
    kind = pl.col("key").str.extract(r"^(eval|init)")
    starts = pl.col("key").str.ends_with("_start")
    paired = marks.with_columns(kind=kind, starts=starts).with_columns(
        opens=(pl.col("starts") & ~pl.col("starts").shift(1, fill_value=False)).over("kind"),
        closes=(~pl.col("starts") & pl.col("starts").shift(1, fill_value=False)).over("kind"),
    )
    paired = paired.filter(pl.col("opens") | pl.col("closes")).with_columns(end_utc=pl.col("at").shift(-1).over("kind"))
    return paired.filter(pl.col("opens") & pl.col("end_utc").is_not_null()).select(
        run_id=pl.lit(name), phase=pl.col("kind").replace_strict(_PHASES), start_utc="at", end_utc="end_utc", origin=pl.lit(ORIGIN),
    )  # fmt: skip


def _inference(log: Log, events: pl.DataFrame) -> Part:
    """Return the window in which power counts; the files of all runs have one name, so their folder names the run."""
    stem, folder = log.path.name.split(".")[0], log.path.parent.name
    name = folder if stem.startswith("mlperf_log") and folder else stem
    window = pl.DataFrame({"t": [_text(events, "power_begin"), _text(events, "power_end")]}, schema={"t": pl.String})
    at = window.select(stamps.parse(pl.col("t"), _SPD).dt.replace_time_zone("UTC")).to_series()
    if at.null_count():
        raise LogRefusedError(
            f"{log.name}: power_begin and power_end ({', '.join(map(str, window['t']))}) are no times; give the window as [[run]]"
        )
    queries, each = _number(events, "result_query_count"), _number(events, "generated_samples_per_query")
    samples = None if queries is None else queries * (each or 1.0)
    return Part(runs=_run(log, name, start_utc=at[0], end_utc=at[1], samples=samples, labels=_labels(events)))


ADAPTER = Adapter(
    name="mlperf-results",
    title="MLPerf result logs of training and inference (:::MLLOG)",
    yields="the run's window, samples, batch size; steps with loss; evaluation as phases",
    sniff=_sniff,
    parse=_parse,
)
