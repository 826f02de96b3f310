"""CSV of one chart of Weights & Biases: a column for the axis, and for each run its metric with the least and greatest beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from joulebook_pipelines.logs import damage, dialect, step_log, step_names, table, wall_clock
from joulebook_pipelines.logs.contract import Adapter, Block, Head, Log, LogRefusedError, Part

_WALL = frozenset({"wall time", "wall_time", "_timestamp", "timestamp"})
_RELATIVE = "relative time"
_STEPS = frozenset(
    {"step", "_step", "global_step", "train/global_step", "trainer/global_step", "iteration", "train/step", "epoch"}
)
_METERED = ("power", "watt", "energy", "joule", "kwh")


@dataclass(frozen=True)
class _Chart:
    """What the titles say.

    Parameters
    ----------
    names
        Names of the columns of the split.
    axis
        Title of the first column.
    runs
        For each run the column and the title of each thing of a step.
    metrics
        All metrics of the chart.
    """

    names: tuple[str, ...]
    axis: str
    runs: dict[str, dict[str, tuple[str, str]]]
    metrics: tuple[str, ...]


def _chart(head: Head) -> _Chart | None:
    titles = dialect.split_line(head.lines[0], ",")
    axis = titles[0].lower()
    known = axis in _STEPS | _WALL or axis.startswith(_RELATIVE)
    series = [t for t in titles[1:] if f"{t}__MIN" in titles and f"{t}__MAX" in titles and " - " in t]
    if not known or not series or any(m in t.rsplit(" - ", 1)[1].lower() for t in series for m in _METERED):
        return None
    names = tuple(f"c{i}" for i in range(len(titles)))
    runs: dict[str, dict[str, tuple[str, str]]] = {}
    for title in dict.fromkeys(t.rsplit(" - ", 1)[0] for t in series):
        own = {t.rsplit(" - ", 1)[1]: t for t in series if t.rsplit(" - ", 1)[0] == title}
        things = {q: own[n] for q, n in step_names.known_names(tuple(own)).items() if q in (*step_names.VALUES, "step")}
        runs[title] = {q: (names[titles.index(t)], t) for q, t in things.items()}
    return _Chart(names, titles[0], runs, tuple(dict.fromkeys(t.rsplit(" - ", 1)[1] for t in series)))


def _parse(log: Log) -> Iterator[Part]:
    chart = _chart(log.head)
    if chart is None:
        raise LogRefusedError(
            f"{log.name}:1: the header is not that of a chart of W&B (Step, then RUN - METRIC with __MIN and __MAX)"
        )
    wall, form = chart.axis.lower() in _WALL, None
    if chart.axis.lower().startswith(_RELATIVE):
        raise LogRefusedError(
            f"{log.name}: its axis is {chart.axis!r}, whose start is not in the file; choose Step or Wall Time as the axis of the chart "
            "and export it again"
        )
    if not any({"loss", "tokens", "tokens_seen", "learning_rate"} & set(things) for things in chart.runs.values()):
        raise LogRefusedError(
            f"{log.name}: is a chart of {', '.join(map(repr, chart.metrics[:4]))}, which is nothing of training steps; export the chart of "
            "the training loss, and leave this file out of the study"
        )
    if wall:
        rows = [dialect.split_line(line, ",") for line in log.head.lines[1:200]]
        form = wall_clock.form(log, [r[0] for r in rows if len(r) == len(chart.names) and r[0]])
    runs = {
        run: step_log.Steps(log, _titles(chart, things, wall=wall), form)
        for run, things in chart.runs.items()
        if things
    }
    numbers = dict.fromkeys(runs, 0)
    for block in log.blocks():
        frame, rejects = _split(block, chart.names)
        odd = [rejects]
        for run, steps in runs.items():
            raw = _of_run(frame, chart.runs[run], run, numbers[run], wall=wall)
            numbers[run] += raw.height
            odd.append(steps.add(raw))
        yield Part(lines=block.count, rejects=pl.concat(odd))
    doubts = () if wall else (step_log.without_times(log, "The chart"),)
    for steps in runs.values():
        yield steps.part(*doubts)
        doubts = ()


def _titles(chart: _Chart, things: dict[str, tuple[str, str]], *, wall: bool) -> dict[str, str]:
    """Return the names in the file of the things of a step."""
    axis = {"end_utc": chart.axis} if wall else {"step": chart.axis}
    return {"step": "", **{q: t for q, (_, t) in things.items()}, **axis, "run_id": "run"}


def _of_run(
    frame: pl.DataFrame, things: dict[str, tuple[str, str]], run: str, before: int, *, wall: bool
) -> pl.DataFrame:
    """Return the rows in which a run has a value, its steps numbered in their order where the axis is the time."""
    columns = {q: c for q, (c, _) in things.items()}
    rows = frame.filter(pl.any_horizontal([pl.col(c) != "" for c in columns.values()]))
    order = (pl.int_range(1, pl.len() + 1) + before).cast(pl.String)
    axis = (
        {"end_utc": pl.col("c0"), "step": pl.col(columns["step"]) if "step" in columns else order}
        if wall
        else {"step": pl.col("c0")}
    )
    values = {q: pl.col(c) for q, c in columns.items() if q != "step"}
    return rows.select("line", run_id=pl.lit(run), **axis, **values)


def _split(block: Block, names: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    raw = table.split(block, names, ",", quoted=b'"' in block.data)
    frame = raw.frame.filter(pl.col("line") > 1).with_columns(
        pl.col(n).fill_null("").str.strip_chars(' "') for n in names
    )
    return frame, damage.odd_lines(block, raw.odd.filter(pl.col("line") > 1), "wrong-number-of-fields")


ADAPTER = Adapter(
    name="wandb-chart",
    title="CSV of a chart of Weights & Biases (RUN - METRIC, with __MIN and __MAX)",
    yields="steps with loss, tokens or learning rate of each run of the chart, with time where that is its axis",
    sniff=lambda head: _chart(head) is not None,
    parse=_parse,
)
