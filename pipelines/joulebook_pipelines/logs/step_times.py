"""How long each step took, where a log counts the seconds since its start instead."""

from __future__ import annotations

import polars as pl

FEWEST, AGREE = 3, 0.1
"""Steps from which on a log is judged; the share of the time between its lines by which its seconds may rise more or less."""


def of_steps(told: pl.DataFrame) -> pl.DataFrame:
    """Return the lines with ``step_time_s`` of each step: what rises like the clock of the lines counts from the start.

    Parameters
    ----------
    told
        ``run_id, at, step_time_s`` of each line, in file order.
    """
    known = told.filter(pl.col("at").is_not_null() & pl.col("step_time_s").is_not_null())
    rise = (pl.col("step_time_s") - pl.col("step_time_s").shift(1)).over("run_id")
    passed = ((pl.col("at") - pl.col("at").shift(1)).dt.total_microseconds() / 1e6).over("run_id")
    like_clock = (rise > 0) & ((rise - passed).abs() <= AGREE * passed)
    judged = known.with_columns(_rises=rise, _like=like_clock).group_by("run_id").agg(
        _counts=(pl.col("_like").sum() >= FEWEST - 1) & (pl.col("_like").mean() > 0.5)
    ).filter("_counts")  # fmt: skip
    if judged.is_empty():
        return told
    counts = pl.col("run_id").is_in(judged["run_id"].implode())
    of_each = pl.when(rise > 0).then(rise).when(pl.int_range(pl.len()).over("run_id") == 0).then("step_time_s")
    return told.with_columns(step_time_s=pl.when(counts).then(of_each).otherwise("step_time_s"))
