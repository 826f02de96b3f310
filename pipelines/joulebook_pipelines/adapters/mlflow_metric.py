"""Files of MLflow's file store: ``mlruns/EXPERIMENT/RUN/metrics/NAME`` with a line a value: milliseconds, value, step."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from joulebook_pipelines.logs import damage, entries, step_log, step_names
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.stamps import StampForm

_LINE = r"^(1\d{12}) (-?[\d.]+(?:[eE][+-]?\d+)?|-?[Nn]a[Nn]|-?[Ii]nf\w*) (-?\d+)$"
_SYSTEM = re.compile(r"(?:^|/)gpu_(\d+)_(power_usage_watts|utilization_percentage|memory_usage_megabytes)$")
_QUANTITIES = {
    "power_usage_watts": ("power_w", "W"), "utilization_percentage": ("utilization_ratio", "%"),
    "memory_usage_megabytes": ("memory_used_bytes", "MB"),
}  # fmt: skip
"""System metrics of a card as MLflow names them (https://mlflow.org/docs/latest/ml/tracking/system-metrics)."""

_FORM = StampForm("epoch", aware=True, unit_us=1e3)
_FOLDER = "metrics"
LEAST_SHARE = 0.8
"""Share of the lines that must be whole: a crash may leave a few that are not."""


def _metric(path: Path) -> tuple[str, str]:
    """Return the run and the name of the metric, which may have folders of its own."""
    parts = path.parts
    at = len(parts) - 1 - parts[::-1].index(_FOLDER) if _FOLDER in parts[:-1] else 0
    return (parts[at - 1], "/".join(parts[at + 1 :])) if at else ("", path.name)


def _is_loss(name: str) -> bool:
    return step_names.known_names([name]).get("loss") == name


def _sniff(head: Head) -> bool:
    lines = [line for line in (head.lines if head.complete else head.lines[:-1]) if line.strip()]
    _, name = _metric(Path(head.name))
    placed = f"{_FOLDER}/" in head.name or "loss" in name.lower() or _SYSTEM.search(name) is not None
    return placed and bool(lines) and sum(bool(re.match(_LINE, line)) for line in lines) >= LEAST_SHARE * len(lines)


def _parse(log: Log) -> Iterator[Part]:
    run, name = _metric(log.path)
    card = _SYSTEM.search(name)
    if card is None and not _is_loss(name):
        raise LogRefusedError(
            f"{log.name}: is the metric {name!r}, which is no loss of training steps and no power, utilisation or memory of a card; leave "
            "it out of the study"
        )
    # A run that no folder names is that of the file.
    names = {"end_utc": "timestamp", "step": "step", "loss": name} | ({"run_id": _FOLDER} if run else {})
    steps = step_log.Steps(log, names, _FORM)
    device = "" if card is None else f"gpu:{card[1]}"
    for block in log.blocks():
        lines, rejects = _split(block)
        if card is None:
            raw = lines.select("line", "end_utc", "step", loss="value")
            raw = raw.with_columns(run_id=pl.lit(run)) if run else raw
            yield Part(block.count, rejects=pl.concat([rejects, steps.add(raw)]))
            continue
        quantity, unit = _QUANTITIES[card[2]]
        told = lines.select(
            "line", pl.from_epoch(pl.col("end_utc").cast(pl.Int64), time_unit="ms").dt.cast_time_unit("us").dt.replace_time_zone("UTC")
            .alias("ts_utc"), row=pl.col("line"), device=pl.lit(device), quantity=pl.lit(quantity), header=pl.lit(name),
            unit=pl.lit(unit), raw=pl.col("value"),
        )  # fmt: skip
        readings, bad = entries.gather(told.select(list(entries.SCHEMA)), {device: "board"})
        channels = (Channel(device, "board"),) if readings.height else ()
        yield Part(block.count, readings, pl.concat([rejects, bad]), channels=channels)
    if card is None:
        yield steps.part()


def _split(block: Block) -> tuple[pl.DataFrame, pl.DataFrame]:
    lines = block.filled()
    lines = lines.with_columns(
        pl.col("raw").str.extract(_LINE, i).alias(n) for i, n in enumerate(("end_utc", "value", "step"), 1)
    )
    whole = pl.col("end_utc").is_not_null()
    # The store ends every line, so a number without one may be half of itself.
    good = whole & (pl.col("line") != block.cut_line)
    odd = lines.filter(~good).select("line", "raw")
    return lines.filter(good), damage.odd_lines(block, odd, "wrong-number-of-fields")


ADAPTER = Adapter(
    name="mlflow-metric",
    title="metric files of MLflow's file store (mlruns/…/metrics/NAME)",
    yields="steps with time and loss; power, utilisation and memory of cards from system metrics",
    sniff=_sniff,
    parse=_parse,
)
