"""Logs into which every process of a distributed run writes each step: one step is one step, however many tell of it."""

from __future__ import annotations

import polars as pl

from joulebook.findings import Finding, Severity

TOGETHER = 0.25
"""Lines of one step lie within this share of the usual time between steps where several processes end it together; micro-steps
are spread over it, and a step done again comes later."""

LEAST_STEPS, LEAST_SHARE = 5, 0.9
"""Steps from which on a log is judged, and the share of them with the same number of lines."""

_VALUES = ("tokens", "loss", "batch_size")


def once(told: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Return the lines with one a step, the lines that are left out, and how many processes told of each step (1: nothing was done).

    Parameters
    ----------
    told
        ``line, run_id, step, at`` and the values of each line, in file order.
    """
    none = told.clear()
    known = told.filter(pl.col("step").is_not_null() & pl.col("at").is_not_null())
    if known.height == known.select("run_id", "step").n_unique():
        return told, none, 1
    step_s = _usual_s(known)
    if step_s is None:
        return told, none, 1
    since = (pl.col("at").diff().over("run_id", "step").dt.total_microseconds() / 1e6).fill_null(0.0)
    known = known.sort("run_id", "step", "at", "line").with_columns(turn=(since > TOGETHER * step_s).cast(pl.Int32))
    known = known.with_columns(pl.col("turn").cum_sum().over("run_id", "step"))
    key = ["run_id", "step", "turn"]
    alike = pl.all_horizontal(
        [(pl.col(c).is_not_null().sum() == pl.len()) | (pl.col(c).is_null().all()) for c in _VALUES]
    )
    says = pl.any_horizontal([pl.col(c).is_not_null().any() for c in _VALUES])
    spread_s = (pl.col("at").max() - pl.col("at").min()).dt.total_microseconds() / 1e6
    executions = known.group_by(key).agg(lines=pl.len(), alike=alike & says & (spread_s <= TOGETHER * step_s))
    counts = executions.filter("alike").group_by("lines").len().sort("len", descending=True)
    usual = int(counts["lines"][0]) if counts.height else 1
    if usual < 2 or executions.height < LEAST_STEPS or counts["len"][0] < LEAST_SHARE * executions.height:
        return told, none, 1
    last = known.group_by(key, maintain_order=True).agg(pl.col("line").last())["line"]
    extra = known.filter(~pl.col("line").is_in(last.implode())).sort("line").select(told.columns)
    return told.filter(~pl.col("line").is_in(extra["line"].implode())), extra, usual


def _usual_s(known: pl.DataFrame) -> float | None:
    """Return the usual time between the first ends of steps [s]; ``None`` where it cannot be told."""
    firsts = known.group_by("run_id", "step").agg(pl.col("at").min()).sort("run_id", "at")
    steps = firsts.select(pl.col("at").diff().over("run_id").dt.total_microseconds() / 1e6).to_series().drop_nulls()
    usual = steps.median()
    return usual if isinstance(usual, float) and usual > 0 else None


def told(name: str, processes: int) -> Finding:
    """Say that several processes wrote each step, and what that leaves open."""
    return Finding(
        "several-ranks", Severity.WARNING, name,
        f"{processes} lines tell of each step at the same time: as many processes wrote into one log. Each step is counted once, with the "
        f"values of its last line; if its tokens are those of one process, the run has {processes} times as many: give tokens in [[run]].",
        {"processes": processes},
    )  # fmt: skip
