"""Scalars of one run as experiment trackers export them: TensorBoard's CSV of a chart, MLflow's history of metrics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from joulebook_pipelines.logs import damage, dialect, mlflow_keys, step_log, table, wall_clock
from joulebook_pipelines.logs.contract import Adapter, Block, Head, Log, LogRefusedError, Part

_TENSORBOARD = ["wall time", "step", "value"]
_RUNS = ("run_uuid", "run_id")


@dataclass(frozen=True)
class _Form:
    """Columns of an export.

    Parameters
    ----------
    names, places
        Names of the columns of the split, and which of them is time, step, value, key and run (``""`` = none).
    things
        Key of a metric and the thing of a step that it is.
    titles
        Names in the file of the things of a step.
    """

    names: tuple[str, ...]
    places: dict[str, str]
    things: dict[str, str]
    titles: dict[str, str]


def _header(head: Head) -> list[str] | None:
    titles = mlflow_keys.titles(head.lines[0])
    return titles if titles == _TENSORBOARD or mlflow_keys.of_steps(head) else None


def _form(log: Log, titles: list[str]) -> _Form:
    names = tuple(f"c{i}" for i in range(len(titles)))
    at = dict(zip(titles, names, strict=True))
    if titles == _TENSORBOARD:
        # The chart's tag stands in the file's name only: run-NAME-tag-TAG.csv.
        _, told, tag = log.path.name.split(".csv")[0].lower().rpartition("tag-")
        loss = "loss" in tag and not re.search(r"val|eval|test|dev", tag)
        if told and not loss:
            raise LogRefusedError(
                f"{log.name}: is a chart of {tag!r}, which is no loss of training steps; export the chart of the training loss, and "
                "leave this file out of the study"
            )
        places = {"end_utc": at["wall time"], "step": at["step"], "value": at["value"], "key": "", "run_id": ""}
        return _Form(
            names, places, {"": "loss"} if loss else {}, _titled(places, titles, {"loss": "Value"} if loss else {})
        )
    run = next((at[r] for r in _RUNS if r in at), "")
    places = {"end_utc": at["timestamp"], "step": at["step"], "value": at["value"], "key": at["key"], "run_id": run}
    things = mlflow_keys.of_steps(log.head)
    return _Form(names, places, things, _titled(places, titles, {q: k for k, q in things.items()}))


def _titled(places: dict[str, str], titles: list[str], known: dict[str, str]) -> dict[str, str]:
    told = {q: titles[int(c[1:])] for q, c in places.items() if c and q not in {"value", "key"}}
    return told | known


def _parse(log: Log) -> Iterator[Part]:
    titles = _header(log.head)
    if titles is None:
        raise LogRefusedError(f"{log.name}:1: the header is neither TensorBoard's (Wall time,Step,Value) nor MLflow's")
    form = _form(log, titles)
    at = int(form.places["end_utc"][1:])
    rows = [dialect.split_line(line, ",") for line in log.head.lines[1:200]]
    stamps_ = wall_clock.form(log, [r[at] for r in rows if len(r) == len(titles) and r[at]])
    collected = step_log.Steps(log, form.titles, stamps_)
    for block in log.blocks():
        raw, rejects = _split(block, form)
        yield Part(lines=block.count, rejects=pl.concat([rejects, collected.add(raw)]))
    yield collected.part()


def _split(block: Block, form: _Form) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the things of each step as text, one row a step of a block, and rejects of lines with other fields."""
    split = table.split(block, form.names, ",", quoted=b'"' in block.data)
    rejects = damage.odd_lines(block, split.odd, "wrong-number-of-fields")
    told = {q: pl.col(c).str.strip_chars(' "') for q, c in form.places.items() if c}
    rows = split.frame.filter(pl.col("line") > 1).select("line", **told)
    if "key" not in told:
        rows = rows.rename({"value": "loss"}) if form.things else rows.drop("value")
        return rows, rejects
    rows = rows.filter(pl.col("key").is_in(list(form.things)))
    group = [c for c in ("run_id", "step") if c in rows.columns]
    return rows.group_by(group, maintain_order=True).agg(
        pl.col("line").first(), pl.col("end_utc").first(),
        *(pl.col("value").filter(pl.col("key") == k).first().alias(q) for k, q in form.things.items()),
    ), rejects  # fmt: skip


ADAPTER = Adapter(
    name="scalars-csv",
    title="scalars exported from TensorBoard and MLflow (CSV)",
    yields="runs, steps with time, loss and, from MLflow, tokens, batch size and learning rate",
    sniff=lambda head: _header(head) is not None,
    parse=_parse,
)
