"""Which rows of an emissions.csv are one run, which repeat, and which trackers watched one machine at once."""

from __future__ import annotations

import json
from datetime import datetime

import polars as pl

START_TOLERANCE_S = 2.0
"""Stamps are whole seconds, taken a moment after the duration: starts of one run agree to this [s] and one per cent."""

LAUNCH_TOLERANCE_S = 5.0
"""Ranks of one job start their trackers within this [s] and two per cent of the run."""

SHORT_OVERLAP_S = 2.0
"""Runs that follow each other overlap by this [s] at most, through the whole seconds of their stamps."""

MACHINE = ("os", "cpu_count", "cpu_model", "gpu_count", "gpu_model", "ram_total_size")
"""What tells one machine from another."""

_LABELS = (
    "project_name", "experiment_id", "task_name", "tracking_mode", "codecarbon_version", "cpu_model", "gpu_model",
    "country_iso_code",
)  # fmt: skip
"""Columns that become labels of the run."""


def repeated(rows: pl.DataFrame) -> pl.Series:
    """Return which rows stand a second time: the same run, stamp, duration and energy; without a run the same text."""
    known = pl.col("run_id").fill_null("").str.strip_chars() != ""
    parts = ["run_id", "task_name", "timestamp", "duration", "energy_consumed"]
    key = (
        pl.when(known).then(pl.concat_str([pl.col(p).fill_null("") for p in parts], separator="\x1f")).otherwise("raw")
    )
    return rows.select((~key.is_first_distinct()).alias("repeated")).to_series()


def chains(rows: pl.DataFrame) -> pl.DataFrame:
    """Tell flushes of one running tracker from rows of their own.

    Parameters
    ----------
    rows
        ``line, run_id, task_name, ts_utc, duration_s, total_j``, without repeated rows.

    Returns
    -------
    polars.DataFrame
        The rows in order of run and time with ``start_utc`` and ``chain`` (number of the run), ``flush`` (the row
        continues the row before it) and ``last`` (the final row of its run).
    """
    key = ["run_id", "task_name"]
    started = pl.col("ts_utc") - pl.duration(microseconds=(pl.col("duration_s") * 1e6).round().cast(pl.Int64))
    rows = (
        rows.with_columns(pl.col(k).fill_null("").str.strip_chars() for k in key)
        .with_columns(start_utc=started)
        .sort(*key, "ts_utc", "duration_s", "line", maintain_order=True)
    )
    apart_s = (pl.col("start_utc").diff().over(key).dt.total_microseconds() / 1e6).abs()
    grows = (pl.col("duration_s").diff().over(key) > 0) & (
        pl.col("total_j").forward_fill().diff().over(key).fill_null(0.0) >= 0
    )
    near = apart_s <= START_TOLERANCE_S + 0.01 * pl.col("duration_s")
    rows = rows.with_columns(flush=(grows & near).fill_null(value=False))
    rows = rows.with_columns(chain=(~pl.col("flush")).cast(pl.Int32).cum_sum())
    return rows.with_columns(last=pl.int_range(pl.len()).over("chain") == pl.len().over("chain") - 1)


def names(runs: pl.DataFrame) -> pl.Series:
    """Return one name a run: its id; with the task where there are several; numbered where an id was used again.

    Parameters
    ----------
    runs
        One row a run: ``line, run_id, task_name, experiment_id, project_name``.
    """
    base = pl.coalesce(
        *(pl.when(pl.col(c).fill_null("").str.strip_chars() != "").then(pl.col(c).str.strip_chars())
          for c in ("run_id", "experiment_id", "project_name")),
        pl.lit("run"),
    )  # fmt: skip
    task = pl.col("task_name").fill_null("")
    named = runs.select(name=pl.when(task != "").then(pl.concat_str(base, task, separator="/")).otherwise(base))
    again = pl.int_range(pl.len()).over("name")
    return named.select(
        pl.when(again == 0).then("name").otherwise(pl.format("{}#{}", "name", again + 1)).alias("name")
    ).to_series()


def overlaps(runs: pl.DataFrame) -> pl.DataFrame:
    """Find trackers that ran at the same time.

    Parameters
    ----------
    runs
        One row a run: ``start_utc, end_utc, total_j`` and :data:`MACHINE`.

    Returns
    -------
    polars.DataFrame
        The runs with ``group`` (runs that overlap share it), ``members`` and ``machines`` in it, ``first`` (the
        longest, which stands for the machine), ``agree`` (the group can be one machine: all of it lies within the
        longest, and none used more) and ``lane``: 0 for runs alone and for those that stand for their machine, else
        a number that runs at one time do not share.
    """
    runs = runs.with_row_index("i").sort("start_utc", "end_utc", "i")
    reach = pl.col("end_utc").cum_max().shift(1) - pl.duration(milliseconds=round(SHORT_OVERLAP_S * 1e3))
    runs = runs.with_columns(group=(pl.col("start_utc") >= reach).fill_null(value=True).cast(pl.Int32).cum_sum())
    length_s = (pl.col("end_utc") - pl.col("start_utc")).dt.total_microseconds() / 1e6
    machine = pl.concat_str([pl.col(c).fill_null("") for c in MACHINE], separator="\x1f")
    runs = runs.with_columns(length_s=length_s, machine=machine)
    longest = pl.col("i").sort_by("length_s", "i", descending=[True, False]).first().over("group") == pl.col("i")
    runs = runs.with_columns(
        first=longest, members=pl.len().over("group"), machines=pl.col("machine").n_unique().over("group")
    )
    lead = {
        c: pl.col(c).filter(pl.col("first")).first().over("group")
        for c in ("start_utc", "end_utc", "length_s", "total_j")
    }
    room_us = ((LAUNCH_TOLERANCE_S + 0.02 * lead["length_s"]) * 1e6).round().cast(pl.Int64)
    inside = (pl.col("start_utc") >= lead["start_utc"] - pl.duration(microseconds=room_us)) & (
        pl.col("end_utc") <= lead["end_utc"] + pl.duration(microseconds=room_us)
    )
    less = (pl.col("total_j") <= 1.1 * lead["total_j"]).fill_null(value=True)
    agree = (inside & less).all().over("group") & (pl.col("machines") == 1)
    runs = runs.with_columns(agree=agree)
    beside = (pl.col("members") > 1) & ~(pl.col("first") & pl.col("agree"))
    return _with_lanes(runs.with_columns(beside=beside)).sort("i").drop("i", "machine", "length_s", "beside")


def _with_lanes(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the runs numbered so that no two beside each other share a number; a loop over such runs only."""
    ends: list[datetime] = []
    lanes = []
    for start, end in runs.filter("beside").select("start_utc", "end_utc").iter_rows():
        lane = next((i for i, e in enumerate(ends) if e < start), len(ends))
        ends[lane : lane + 1] = [end]
        lanes.append(lane + 1)
    beside = runs.select(pl.when("beside").then(pl.col("beside").cast(pl.Int32).cum_sum() - 1)).to_series()
    numbers = pl.Series("lane", lanes, dtype=pl.Int64)
    return runs.with_columns(
        numbers.gather(beside.fill_null(0)).alias("lane") if lanes else pl.lit(0).alias("lane")
    ).with_columns(lane=pl.when("beside").then("lane").otherwise(0))


def as_table(runs: pl.DataFrame, host: str) -> pl.DataFrame:
    """Return the rows of ``runs`` that one row a run makes, on a host; ``runs`` has ``name``, its times and the columns of a row."""
    labels = [
        json.dumps({k: v for k, v in row.items() if v not in (None, "")}, ensure_ascii=False, sort_keys=True)
        for row in runs.select(_LABELS).iter_rows(named=True)
    ]
    return runs.select(
        run_id="name", host=pl.lit(host), start_utc="start_utc", end_utc="end_utc",
        origin=pl.lit("tracker"), labels=pl.Series(labels, dtype=pl.String),
    )  # fmt: skip
