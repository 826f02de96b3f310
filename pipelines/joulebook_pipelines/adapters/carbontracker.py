"""carbontracker's log: each epoch with its duration and the mean power of cards, processors and memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import entries, local_time, stamps, table
from joulebook_pipelines.logs.contract import Adapter, Channel, Head, Log, LogRefusedError, Part

_LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?) - (?:\w+ - )?(.*)$")
_EPOCH = re.compile(r"^Epoch (\d+):")
_DURATION = re.compile(r"^\s*Duration: (?:(\d+) days?, )?(\d+):(\d\d):(\d\d(?:\.\d+)?)\s*$")
_POWER = re.compile(r"^\s*Average power usage \(W\) for (\w+): (.+)$")
_SCOPES = {"gpu": "board", "cpu": "package", "ram": "dram", "memory": "dram"}
_DEVICES = {"board": "gpu", "package": "cpu", "dram": "dram"}


@dataclass
class _Epoch:
    """What the lines of one epoch say."""

    number: int
    stamp: str
    span_s: float | None = None
    powers: list[tuple[int, str, str, str]] = field(default_factory=list)


def _sniff(head: Head) -> bool:
    return "Average power usage (W) for " in head.text and any(_LINE.match(line) for line in head.lines[:50])


def _parse(log: Log) -> Iterator[Part]:
    epochs: list[_Epoch] = []
    odd: list[tuple[int, str]] = []
    lines = 0
    for block in log.blocks():
        for number, line in enumerate(block.lines, block.first_line):  # some lines an epoch
            if line.strip() and not _take(epochs, number, line):
                odd.append((number, line))
        lines += block.count
    if not any(e.powers for e in epochs):
        raise LogRefusedError(
            f"{log.name}: no epoch was finished, so no power was written; let at least one epoch pass"
        )
    utc = _ends(log, epochs)
    frame = _cells(epochs, utc)
    scopes = {d: _SCOPES.get(s, "") for e in epochs for _, d, s, _ in e.powers}
    timed = frame.with_columns(pl.when(pl.col("span_s") > 0).then("ts_utc").alias("ts_utc"))
    readings, rejects = entries.gather(timed.drop("span_s"), scopes)
    readings = readings.join(
        frame.select("line", "device", "span_s"), on=["line", "device"], how="left", maintain_order="left"
    )
    bad = pl.DataFrame(odd, schema={"line": pl.Int64, "raw": pl.String}, orient="row")
    yield Part(
        lines, readings, pl.concat([table.whole_lines(bad, "foreign-line"), rejects]), phases=_phases(log, epochs, utc),
        channels=tuple(Channel(d, scopes[d], kind="mean") for d in readings["device"].unique(maintain_order=True)),
        findings=_findings(log),
    )  # fmt: skip


def _ends(log: Log, epochs: list[_Epoch]) -> list[object]:
    """Return when each epoch was told."""
    texts = [e.stamp for e in epochs]
    form = local_time.form(log, texts)
    clock = local_time.localiser(log, form, 1, texts[0])
    naive = pl.DataFrame({"t": texts}).select(stamps.parse(pl.col("t"), form).alias("ts_utc")).to_series()
    return clock.to_utc(naive).to_list()


def _cells(epochs: list[_Epoch], utc: list[object]) -> pl.DataFrame:
    """Return the powers of the epochs one below the other, as text, with the length of their epoch."""
    rows = [
        (line, device, when, e.span_s, "power_w", f"Average power usage (W) for {scope}", "W", raw)
        for e, when in zip(epochs, utc, strict=True) for line, device, scope, raw in e.powers
    ]  # fmt: skip
    names = ("line", "device", "ts_utc", "span_s", "quantity", "header", "unit", "raw")
    schema = {**entries.SCHEMA, "span_s": pl.Float64}
    return (
        pl.DataFrame(rows, schema={n: schema[n] for n in names}, orient="row")
        .with_row_index("row")
        .cast({"row": pl.Int64})
    )


def _take(epochs: list[_Epoch], number: int, line: str) -> bool:
    """Take in a line; tell whether it was one of the tool's."""
    match = _LINE.match(line)
    if match is None:
        return False
    stamp, said = match.groups()
    if found := _EPOCH.match(said):
        epochs.append(_Epoch(int(found[1]), stamp))
    elif (found := _DURATION.match(said)) and epochs:
        days, hours, minutes, seconds = (float(g or 0) for g in found.groups())
        epochs[-1].span_s = 86_400 * days + 3600 * hours + 60 * minutes + seconds
    elif (found := _POWER.match(said)) and epochs:
        kind, values = found[1].lower(), found[2].strip().strip("[]").replace(",", " ").split()
        name = _DEVICES.get(_SCOPES.get(kind, ""), kind)
        several = len(values) > 1
        epochs[-1].powers += [(number, f"{name}:{i}" if several else name, kind, v) for i, v in enumerate(values)]
    return True


def _phases(log: Log, epochs: list[_Epoch], utc: list[object]) -> pl.DataFrame | None:
    name = PurePosixPath(log.name).stem
    frame = pl.DataFrame(
        [
            (name, f"epoch {e.number}", when, e.span_s, "training log")
            for e, when in zip(epochs, utc, strict=True)
            if e.span_s and when
        ],
        schema={
            "run_id": pl.String,
            "phase": pl.String,
            "end_utc": pl.Datetime("us", "UTC"),
            "span_s": pl.Float64,
            "origin": pl.String,
        },
        orient="row",
    )
    length = pl.duration(microseconds=(pl.col("span_s") * 1e6).round().cast(pl.Int64))
    return frame.select("run_id", "phase", (pl.col("end_utc") - length).alias("start_utc"), "end_utc", "origin")


def _findings(log: Log) -> tuple[Finding, ...]:
    return (Finding(
        "means-per-epoch", Severity.NOTE, log.name,
        "Each power is the mean of the samples of an epoch, before carbontracker's own PUE; epochs are the finest that the file tells.", {},
    ),)  # fmt: skip


ADAPTER = Adapter(
    name="carbontracker",
    title="carbontracker's log (…_carbontracker.log)",
    yields="mean power per epoch of cards, processors and memory; epochs as phases",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
