"""Published tables of runs: made into sweeps, and their energies held against the power logs behind them."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from joulebook.findings import Finding, Severity

SAME_RATIO = 1e-3
"""Two powers are the same number within rounding to four digits."""
IDLE_RATIO = 0.7
"""A log has idle ends where its lowest power is below this share of its busy power."""
UNDERSTATED_RATIO = 0.005
"""Shortfall from which an energy is called understated: well above rounding and sampling of a minute at 10 Hz."""


@dataclass(frozen=True)
class Audit:
    """Published energies against logs.

    Parameters
    ----------
    runs
        ``run_id``, ``energy_j`` (published), ``mean_power_w`` (published), ``duration_s`` (published), ``log_mean_w``,
        ``log_s``, ``busy_mean_w``, ``busy_s``, ``busy_energy_j``, ``checked_energy_j`` (busy power × published
        duration), ``effect_ratio`` (published / checked − 1), ``cause``.
    findings
        One a run whose energy is understated.
    """

    runs: pl.DataFrame
    findings: tuple[Finding, ...] = ()


def sweep_runs(table: pl.DataFrame, *, x: str, mean_power_w: str, tokens_per_s: str) -> pl.DataFrame:
    """Return rows for a sweep from a table of throughput and mean power.

    Parameters
    ----------
    table
        One row a run.
    x, mean_power_w, tokens_per_s
        Its columns for the knob, mean power [W] and throughput [1/s].

    Returns
    -------
    pl.DataFrame
        ``x``, ``energy_per_token_j``, ``mean_power_w``; a row without throughput or power has null energy.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> t = pl.DataFrame({"batch": [8], "watts": [300.0], "rate": [150.0]})
    >>> sweep_runs(t, x="batch", mean_power_w="watts", tokens_per_s="rate")["energy_per_token_j"][0]
    2.0
    """
    missing = [c for c in (x, mean_power_w, tokens_per_s) if c not in table.columns]
    if missing:
        raise ValueError(f"table has no column {', '.join(missing)}; it has {', '.join(table.columns)}")
    power, rate = (
        pl.when(pl.col(c).cast(pl.Float64) > 0).then(pl.col(c).cast(pl.Float64)) for c in (mean_power_w, tokens_per_s)
    )
    return table.select(x=pl.col(x).cast(pl.Float64), energy_per_token_j=power / rate, mean_power_w=power)


def audit(table: pl.DataFrame, power: pl.DataFrame) -> Audit:
    """Return whether published energies are what the power inside the run times its duration gives.

    A mean over a whole log, idle ends included, is lower than the power of the run; multiplied with the duration of
    the run it understates the energy. The busy stretch of a log runs from the first to the last reading above the
    middle between its lowest power and its 95 % quantile.

    Parameters
    ----------
    table
        ``run_id``, ``energy_j`` [J], ``mean_power_w`` [W], ``duration_s`` [s], as published.
    power
        ``run_id``, ``ts_utc``, ``power_w`` of the logs, one device or their sum; runs without a log are left out.

    Returns
    -------
    Audit
        By ``run_id``.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> from datetime import datetime, timedelta, UTC
    >>> watts = [10.0] * 20 + [100.0] * 80
    >>> log = pl.DataFrame({"run_id": ["a"] * 100, "power_w": watts,
    ...     "ts_utc": [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=i) for i in range(100)]})
    >>> told = pl.DataFrame({"run_id": ["a"], "energy_j": [82 * 50.0], "mean_power_w": [82.0], "duration_s": [50.0]})
    >>> audit(told, log).findings[0].code
    'published-energy-understated'
    """
    for frame, name, wanted in (
        (table, "table", ("run_id", "energy_j", "mean_power_w", "duration_s")),
        (power, "power", ("run_id", "ts_utc", "power_w")),
    ):
        missing = [c for c in wanted if c not in frame.columns]
        if missing:
            raise ValueError(f"{name} has no column {', '.join(missing)}; it has {', '.join(frame.columns)}")
    runs = (
        table.select("run_id", "energy_j", "mean_power_w", "duration_s")
        .join(_of_logs(power), on="run_id")
        .with_columns(checked_energy_j=pl.col("busy_mean_w") * pl.col("duration_s"))
        .with_columns(effect_ratio=pl.col("energy_j") / pl.col("checked_energy_j") - 1)
        .with_columns(cause=_cause())
        .sort("run_id")
    )
    short = runs.filter(pl.col("effect_ratio") < -UNDERSTATED_RATIO)
    return Audit(runs, tuple(_finding(row) for row in short.iter_rows(named=True)))


def _of_logs(power: pl.DataFrame) -> pl.DataFrame:
    """Return mean, span and busy stretch of each log; means of the busy stretch are weighted by time."""
    low, high = pl.col("power_w").min().over("run_id"), pl.col("power_w").quantile(0.95).over("run_id")
    ordered = power.filter(pl.col("power_w").is_not_null()).sort("run_id", "ts_utc")
    marked = ordered.with_columns(
        busy=(pl.col("power_w") >= (low + high) / 2) | (low > IDLE_RATIO * high),
        step_s=pl.col("ts_utc").diff().over("run_id").dt.total_microseconds() / 1e6,
        middle_w=(pl.col("power_w") + pl.col("power_w").shift(1).over("run_id")) / 2,
    )
    first = pl.col("ts_utc").filter(pl.col("busy")).min().over("run_id")
    last = pl.col("ts_utc").filter(pl.col("busy")).max().over("run_id")
    inside = pl.col("inside")
    return (
        marked.with_columns(inside=(pl.col("ts_utc") > first) & (pl.col("ts_utc") <= last))
        .group_by("run_id", maintain_order=True)
        .agg(
            log_mean_w=pl.col("power_w").mean(),
            log_s=pl.col("step_s").sum(),
            busy_s=pl.col("step_s").filter(inside).sum(),
            busy_energy_j=(pl.col("step_s") * pl.col("middle_w")).filter(inside).sum(),
        )
        .with_columns(busy_mean_w=pl.col("busy_energy_j") / pl.col("busy_s"))
    )


def _cause() -> pl.Expr:
    """Return what the published energy was made of, in words."""
    whole_log = (pl.col("mean_power_w") / pl.col("log_mean_w") - 1).abs() < SAME_RATIO
    product = (pl.col("energy_j") / (pl.col("mean_power_w") * pl.col("duration_s")) - 1).abs() < SAME_RATIO
    return (
        pl.when(whole_log & product)
        .then(pl.lit("mean power of the whole log, idle ends included, times the run's duration"))
        .when(product)
        .then(pl.lit("published mean power times the run's duration"))
        .otherwise(pl.lit("unknown"))
    )


def _finding(row: dict[str, object]) -> Finding:
    number = {k: float(v) for k, v in row.items() if isinstance(v, float)}
    message = (
        f"The published {number['energy_j']:.0f} J are {row['cause']}: {number['mean_power_w']:.2f} W over "
        f"{number['duration_s']:.1f} s. Inside the busy stretch the power is {number['busy_mean_w']:.2f} W, so the "
        f"energy is understated by {-100 * number['effect_ratio']:.1f} % ({number['checked_energy_j']:.0f} J)."
    )
    if number["busy_s"] > 1.1 * number["duration_s"]:
        message += (
            f" The log is busy for {number['busy_s']:.1f} s and holds {number['busy_energy_j']:.0f} J: work outside of "
            "the timed part is not counted at all."
        )
    evidence = {k: v for k, v in row.items() if k != "run_id"}
    return Finding("published-energy-understated", Severity.WARNING, str(row["run_id"]), message, evidence)
