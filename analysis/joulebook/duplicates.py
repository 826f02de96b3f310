"""Runs that several files tell of: the same run is counted once, whichever of its records is kept."""

from __future__ import annotations

import polars as pl

START_TOLERANCE_S = 5.0
"""Records of one run agree on its start to this [s]: stamps of trackers are whole seconds, taken a moment late."""

RUNS_SCHEMA = {
    "source_id": pl.Int32, "run_id": pl.String, "kept": pl.Boolean, "kept_source_id": pl.Int32, "reason": pl.String,
}  # fmt: skip


def runs(logged: pl.DataFrame, *, path: str = "path") -> pl.DataFrame:
    """Tell which record of each run is kept where several sources hold it.

    Two records are one run when they bear the same name and began at the same time. The record that goes furthest is
    kept (a later flush of a running tracker holds the earlier ones), then the one that is no backup, then the first.

    Parameters
    ----------
    logged
        One row a record: ``source_id, run_id, start_utc, end_utc`` and the path of the source.
    path
        Name of the column with the path.

    Returns
    -------
    polars.DataFrame
        One row a record, in the same order: ``source_id, run_id, kept, kept_source_id, reason`` (``""`` where kept).

    Examples
    --------
    >>> from datetime import datetime
    >>> times = {"start_utc": datetime(2026, 3, 1, 9), "end_utc": datetime(2026, 3, 1, 10)}
    >>> logged = pl.DataFrame([
    ...     {"source_id": 1, "run_id": "a", "path": "emissions.csv_1.bak", **times},
    ...     {"source_id": 2, "run_id": "a", "path": "emissions.csv", **times},
    ... ])
    >>> runs(logged)["kept"].to_list()
    [False, True]
    """
    if logged.is_empty():
        return pl.DataFrame(schema=RUNS_SCHEMA)
    numbered = logged.select("source_id", "run_id", "start_utc", "end_utc", path=path).with_row_index("place")
    # Records of one name, in order of their start: a new run begins where the start moves by more than the tolerance.
    ordered = numbered.sort("run_id", "start_utc", "place", nulls_last=True)
    step_s = (pl.col("start_utc").diff().over("run_id").dt.total_microseconds() / 1e6).fill_null(0.0)
    ordered = ordered.with_columns(execution=(step_s > START_TOLERANCE_S).cast(pl.Int32).cum_sum().over("run_id"))
    key = ["run_id", "execution"]
    backup = pl.col("path").str.to_lowercase().str.contains(r"\.bak$|~$|\.old$")
    ranked = ordered.with_columns(backup=backup).sort(
        *key,
        "end_utc",
        "backup",
        "source_id",
        "place",
        descending=[False, False, True, False, False, False],
        nulls_last=True,
    )
    best = {c: pl.col(c).first().over(key) for c in ("source_id", "path", "place")}
    judged = ranked.with_columns(
        kept=(pl.col("place") == best["place"]) | (pl.col("source_id") == best["source_id"]),
        kept_source_id=best["source_id"], kept_path=best["path"],
    )  # fmt: skip
    reason = (
        pl.when("kept").then(pl.lit(""))
        .otherwise(pl.format("the same run is in {}, which is used", "kept_path"))
    )  # fmt: skip
    return (
        judged.with_columns(reason=reason).sort("place")
        .select("source_id", "run_id", "kept", "kept_source_id", "reason")
        .cast({"source_id": pl.Int32, "kept_source_id": pl.Int32})
    )  # fmt: skip
