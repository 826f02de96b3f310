"""Low power before and after the work of a run: idle time, not stalls."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook.wording import energy, lasting

EDGE_FACTOR = 1.5
"""A dip at the edge of the log is a stall cut short if it lasts less than this many typical inner dips [1]."""

IDLE_SECONDS = 30.0
"""Idle time at the edges of a run is told from this length on [s] ..."""

IDLE_SHARE = 0.05
"""... and from this share of the run [1]."""


def told_apart(dips: pl.DataFrame, first_utc: datetime, last_utc: datetime) -> pl.DataFrame:
    """Call a stall at the start or end of the log idle time: a stall lies between work.

    Parameters
    ----------
    dips
        Columns ``start_utc``, ``end_utc``, ``seconds``, ``kind``.
    first_utc, last_utc
        First and last reading.

    Returns
    -------
    polars.DataFrame
        The same rows, with ``kind`` = ``idle`` for those.

    Examples
    --------
    >>> at = [datetime(2026, 1, 1, 0, minute) for minute in range(4)]
    >>> dips = pl.DataFrame({"start_utc": [at[0], at[2]], "end_utc": [at[1], at[3]], "seconds": 60.0, "kind": "stall"})
    >>> told_apart(dips, at[0], datetime(2026, 1, 1, 1))["kind"].to_list()
    ['idle', 'stall']
    """
    edge = (pl.col("start_utc") <= first_utc) | (pl.col("end_utc") >= last_utc)
    inner = dips.filter(~edge)["seconds"]
    typical = inner.median() if inner.len() > 1 else None
    # a log that begins within one of many alike dips shows a part of it
    cut = pl.col("seconds") < EDGE_FACTOR * typical if isinstance(typical, float) else pl.lit(False)
    idle = (pl.col("kind") == "stall") & edge & ~cut
    return dips.with_columns(kind=pl.when(idle).then(pl.lit("idle")).otherwise("kind"))


def findings(dips: pl.DataFrame, first_utc: datetime, last_utc: datetime, *, busy_w: float) -> tuple[Finding, ...]:
    """Say how much of a run lies before or after its work.

    Parameters
    ----------
    dips
        Columns ``start_utc``, ``end_utc``, ``seconds``, ``mean_w`` [W], ``kind``.
    first_utc, last_utc
        First and last reading.
    busy_w
        Power at work [W].

    Examples
    --------
    >>> at = [datetime(2026, 1, 1, 0, minute) for minute in range(3)]
    >>> dips = pl.DataFrame({"start_utc": at[:1], "end_utc": at[1:2], "seconds": 60.0, "mean_w": 90.0, "kind": "idle"})
    >>> findings(dips, at[0], at[2], busy_w=300.0)[0].evidence["energy_j"]
    5400.0
    """
    idle = dips.filter(pl.col("kind") == "idle")
    head = float(idle.filter(pl.col("start_utc") <= first_utc)["seconds"].sum())
    tail = float(idle.filter(pl.col("end_utc") >= last_utc)["seconds"].sum())
    if head + tail < max(IDLE_SECONDS, IDLE_SHARE * (last_utc - first_utc).total_seconds()):
        return ()
    parts = [f"{lasting(seconds)} at the {end}" for seconds, end in ((head, "start"), (tail, "end")) if seconds > 0]
    joules = float((idle["seconds"] * idle["mean_w"]).sum())
    mean_w = joules / float(idle["seconds"].sum())
    return (Finding(
        "idle-at-edges", Severity.NOTE, "stalls",
        f"For {' and '.join(parts)} the run draws {mean_w:.4g} W, at work {busy_w:.4g} W; {energy(joules)} together: no "
        "stalls, but part of the run's energy. Narrow its start and end if the job was not running then.",
        {"head_s": head, "tail_s": tail, "energy_j": joules},
    ),)  # fmt: skip
