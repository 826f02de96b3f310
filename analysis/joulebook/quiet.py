"""Stretches of a log in which the machine is at rest, found outside of runs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import numpy as np
import polars as pl

from joulebook import segments, totals

MIN_READINGS: Final = 20
"""Readings that a quiet stretch needs."""

LEVEL_TOLERANCE_RATIO: Final = 0.03
"""Quiet stretches whose level lies above the lowest by more are not at rest."""

MIN_QUIET_S: Final = 60.0
"""Shortest quiet stretch that is looked at [s]."""

GUARD_S: Final = 5.0
"""Time beside a run that is not trusted to be quiet: spans, clocks, start-up [s]."""

LOAD_RATIO: Final = 0.6
"""Share of the run's mean power from which a stretch outside of runs is under load, not idle."""

REST_RATIO: Final = 0.9
"""The same share where utilisation says that the boards are at rest: what else a node draws may be most of its power."""

WORK_UTILIZATION_RATIO: Final = 0.2
"""Mean utilisation within runs from which it tells work from rest at all."""

BUSY_UTILIZATION_RATIO: Final = 0.05
"""Mean utilisation from which a stretch is in use."""

DRIFT_RATIO: Final = 0.03
"""Change of power within a stretch above which the machine is still warming or cooling."""

LONG_QUIET_S: Final = 600.0
"""Quiet time after which a machine is at thermal rest [s], and that such rest has to last to be preferred."""

SETTLING: Final = "soon after work, while another stretch is at thermal rest"
"""Why a quiet stretch is not used though nothing else speaks against it."""

UNMOVED: Final = "its readings are all equal, as of a sensor that is stuck or coarse"
"""Why a stretch without a single usable reading is not used."""

ELSEWHERE: Final = "the boards rest, and something else draws"
"""Why a quiet stretch above the lowest level is not used where utilisation tells that the boards were at rest."""


_STAMP: Final = pl.Datetime("us", "UTC")
EMPTY: Final = pl.DataFrame(
    schema={
        "start_utc": _STAMP, "end_utc": _STAMP, "n": pl.Int64, "mean_w": pl.Float64, "used": pl.Boolean,
        "reason": pl.String,
    }
)  # fmt: skip
"""Result without a stretch."""


def _outside(series: pl.DataFrame, runs: pl.DataFrame) -> list[tuple[datetime, datetime]]:
    """Return the stretches of the log outside of runs, guarded."""
    first, last = series["ts_utc"][0], series["ts_utc"][-1]
    guard = timedelta(seconds=GUARD_S)
    out = []
    begin = first
    for start, end in runs.sort("start_utc").select("start_utc", "end_utc").iter_rows():
        if start - guard > begin:
            out.append((begin, min(start - guard, last)))
        begin = max(begin, end + guard)
    if begin < last:
        out.append((begin, last))
    return [(a, b) for a, b in out if (b - a).total_seconds() >= MIN_QUIET_S]


def _quiet(series: pl.DataFrame, window: tuple[datetime, datetime]) -> pl.DataFrame:
    """Return the level stretches of one window, with the reason of those that do not count."""
    part = totals.cut([series], *window)[0].with_columns(device=pl.lit(""))
    if part.height < MIN_READINGS:
        few = pl.lit(f"fewer than {MIN_READINGS} readings")
        row = {
            "start_utc": pl.col("ts_utc").min(),
            "end_utc": pl.col("ts_utc").max(),
            "n": pl.len(),
            "mean_w": pl.col("power_w").mean(),
        }
        return part.select(**row, used=pl.lit(False), reason=few).head(part.height).cast(EMPTY.schema)
    found = segments.find(part).frame.filter(pl.col("kind").is_in(["idle", "stable", "transient"]))
    mean = part["utilization_ratio"].mean()
    used = mean if isinstance(mean, float) else 0.0
    lasts = (pl.col("end_utc") - pl.col("start_utc")).dt.total_microseconds() / 1e6
    drifts = (pl.col("slope_w_per_s") * lasts).abs() > DRIFT_RATIO * pl.col("mean_w")
    short = (pl.col("n") < MIN_READINGS) | (lasts < MIN_QUIET_S - 1.0)
    reason = (
        pl.when(pl.lit(used >= BUSY_UTILIZATION_RATIO)).then(pl.lit(f"in use: utilisation {used:.2f}"))
        .when((pl.col("n") == 0) & (lasts >= MIN_QUIET_S)).then(pl.lit(UNMOVED))
        .when(short).then(pl.lit("too short"))
        .when(pl.col("kind") == "transient").then(pl.col("reason"))
        .when(drifts).then(pl.lit("still warming or cooling"))
        .otherwise(pl.lit(""))
    )  # fmt: skip
    # A level lasts until the reading after it, which may be of the run.
    until = pl.min_horizontal("end_utc", pl.lit(window[1]).cast(_STAMP))
    judged = found.with_columns(until.alias("end_utc"), reason=reason).with_columns(used=pl.col("reason") == "")
    return judged.select(EMPTY.columns).cast(EMPTY.schema)


def _found_runs(series: pl.DataFrame) -> pl.DataFrame:
    """Return the stretches of work that the power itself shows."""
    found = segments.find(series.with_columns(device=pl.lit("")))
    idle = found.of("idle").filter((pl.col("end_utc") - pl.col("start_utc")).dt.total_seconds() >= MIN_QUIET_S)
    first, last = series["ts_utc"][0], series["ts_utc"][-1]
    starts = [first, *idle["end_utc"].to_list()]
    ends = [*idle["start_utc"].to_list(), last]
    frame = pl.DataFrame(
        {"start_utc": starts, "end_utc": ends}, schema={c: series.schema["ts_utc"] for c in ("start_utc", "end_utc")}
    )
    return frame.filter(pl.col("end_utc") > pl.col("start_utc"))


def _load_w(series: pl.DataFrame, runs: pl.DataFrame) -> float:
    """Return the mean power inside the runs, infinite where the log shows none."""
    value = series["power_w"].filter(pl.Series(totals.inside(series["ts_utc"], runs))).mean()
    return value if isinstance(value, float) else float("inf")


def _loaded(series: pl.DataFrame, rows: pl.DataFrame, runs: pl.DataFrame, use: list[pl.DataFrame]) -> pl.Series:
    """Return which stretches are under load: about as high as the runs, and nothing says that the boards rest."""
    load_w = _load_w(series, runs)
    high = rows["used"] & (rows["mean_w"] > LOAD_RATIO * load_w)
    if not high.any():
        return high
    told = _told(use)
    if not _mean_use(told, runs) >= WORK_UTILIZATION_RATIO:
        return high
    rests = _rests(told, rows)
    return high & ~(rests & (rows["mean_w"] < REST_RATIO * load_w))


def _told(use: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """Return the rows of devices that tell a utilisation, in order of time."""
    return totals.in_time([rows.drop_nulls("utilization_ratio") for rows in use])


def _rests(told: list[pl.DataFrame], rows: pl.DataFrame) -> pl.Series:
    """Return in which stretches utilisation tells that the boards were at rest."""
    return pl.Series([_mean_use(told, rows[k]) < BUSY_UTILIZATION_RATIO for k in range(rows.height)], dtype=pl.Boolean)


def _mean_use(told: list[pl.DataFrame], windows: pl.DataFrame) -> float:
    """Return the mean utilisation of devices within windows, not-a-number where it is not told."""
    inside = [r["utilization_ratio"].to_numpy()[totals.inside(r["ts_utc"], windows)] for r in told]
    together = np.concatenate([np.zeros(0), *inside])
    return float(together.mean()) if together.size else float("nan")


def stretches(
    series: pl.DataFrame, *, runs: pl.DataFrame | None = None, use: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Find the stretches in which the machine is at rest.

    Parameters
    ----------
    series
        Power of all devices together: ``ts_utc``, ``power_w`` [W], ``utilization_ratio``.
    runs
        ``start_utc``, ``end_utc`` of the runs; without it work is told from rest by power alone.
    use
        ``device``, ``ts_utc``, ``utilization_ratio`` of the boards behind that power. Default: that of the series.

    Returns
    -------
    polars.DataFrame
        One row a level stretch outside of runs: ``start_utc``, ``end_utc``, ``n``, ``mean_w`` [W], ``used``, and
        ``reason`` where it is not used.

    Raises
    ------
    ValueError
        Where ``runs`` lacks a column.

    Examples
    --------
    >>> import numpy as np
    >>> from datetime import UTC, datetime, timedelta
    >>> stamps = [datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=s) for s in range(1500)]
    >>> watts = np.repeat([60.0, 500.0], [700, 800]) + np.random.default_rng(2).normal(0.0, 1.0, 1500)
    >>> stretches(pl.DataFrame({"ts_utc": stamps, "power_w": watts, "utilization_ratio": None}))["used"].to_list()
    [True]
    """
    if runs is not None and {"start_utc", "end_utc"} - set(runs.columns):
        raise ValueError(f"runs: start_utc and end_utc are needed; there are {', '.join(runs.columns)}")
    known = _found_runs(series) if runs is None else runs
    rows = pl.concat([EMPTY, *(_quiet(series, window) for window in _outside(series, known))])
    boards = [series] if use is None else [rows for _, rows in totals.by_device(use)]
    rows = _drop(rows, pl.lit(_loaded(series, rows, known, boards)), "as high as the run: under load")
    lowest = rows.filter("used")["mean_w"].min()
    if not isinstance(lowest, float):
        return rows
    above = pl.col("used") & (pl.col("mean_w") > lowest * (1.0 + LEVEL_TOLERANCE_RATIO))
    if use is not None:
        rows = _drop(rows, above & pl.lit(_rests(_told(boards), rows)), ELSEWHERE)
    return _rested(series, _drop(rows, above, f"above the lowest level, {lowest:.6g} W"), known)


def _rested(series: pl.DataFrame, rows: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Keep only thermal rest where there is enough of it: fans and leakage follow the last load for minutes."""
    ends = runs.select(hot_until=pl.col("end_utc").dt.cast_time_unit("us")).sort("hot_until")
    before = rows.with_row_index("row").sort("start_utc").join_asof(ends, left_on="start_utc", right_on="hot_until")
    calm = before.sort("row").select(
        pl.max_horizontal("start_utc", pl.col("hot_until") + timedelta(seconds=LONG_QUIET_S)).alias("calm_utc")
    )
    rows = rows.with_columns(calm)
    lasts = (pl.col("end_utc") - pl.col("calm_utc")).dt.total_microseconds() / 1e6
    rested = pl.col("used") & (lasts >= LONG_QUIET_S - 2.0 * GUARD_S)
    if not rows.select(rested.any()).item():
        return rows.drop("calm_utc")
    rows = _drop(rows, ~rested & pl.col("used"), SETTLING)
    cut = rows.with_columns(start_utc=pl.when("used").then("calm_utc").otherwise("start_utc")).drop("calm_utc")
    parts = [series["power_w"].filter(pl.Series(totals.inside(series["ts_utc"], cut[k]))) for k in range(cut.height)]
    means = pl.Series([part.mean() for part in parts], dtype=pl.Float64)
    return cut.with_columns(n=pl.Series([part.len() for part in parts], dtype=pl.Int64), mean_w=means)


def _drop(rows: pl.DataFrame, which: pl.Expr, reason: str) -> pl.DataFrame:
    return rows.with_columns(
        used=pl.col("used") & ~which, reason=pl.when(which).then(pl.lit(reason)).otherwise("reason")
    )
