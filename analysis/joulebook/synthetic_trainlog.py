"""What the training script itself would have logged of a made-up record: steps and phases."""

from __future__ import annotations

import polars as pl

from joulebook.synthetic_truth import Truth
from joulebook.synthetic_witness import UTC_CLOCK, Clock, decimal, lines, shifted

_STAMP = "%Y-%m-%dT%H:%M:%S%.3f"


def jsonl(truth: Truth, *, clock: Clock = UTC_CLOCK, loss_decimals: int = 5) -> str:
    """Return one JSON object a step, stamped at its end with ``Z`` or the zone's offset.

    Parameters
    ----------
    truth
        What happened.
    clock
        Clock and zone of the host.
    loss_decimals
        Decimals of the loss.

    Returns
    -------
    str
        Lines with ``time``, ``run``, ``step``, ``step_time_s``, ``tokens``, ``batch_size``, ``loss``.

    Examples
    --------
    >>> from joulebook import synthetic
    >>> print(jsonl(synthetic.node(1)).splitlines()[0][:54])
    {"time": "2026-11-02T01:10:16.550Z", "run": "pretrain-
    """
    seconds = (pl.col("end_utc") - pl.col("start_utc")).dt.total_microseconds() * 1e-6
    steps = truth.steps.with_columns(
        seconds.alias("step_time_s"), _stamped(truth, truth.steps["end_utc"], clock).alias("time")
    )
    quoted = {"time": pl.col("time"), "run": pl.col("run_id")}
    bare = {
        "step": pl.col("step").cast(pl.String),
        "step_time_s": decimal("step_time_s", 3),
        "tokens": decimal("tokens", 0),
        "batch_size": decimal("batch_size", 0),
        "loss": decimal("loss", loss_decimals),
    }
    members = [pl.concat_str(pl.lit(f'"{k}": "'), v, pl.lit('"')) for k, v in quoted.items()]
    members += [pl.concat_str(pl.lit(f'"{k}": '), v) for k, v in bare.items()]
    objects = pl.concat_str(pl.lit("{"), pl.concat_str(members, separator=", "), pl.lit("}"))
    return lines(steps.select(objects.alias("object")), "")


def phases_csv(truth: Truth, *, clock: Clock = UTC_CLOCK) -> str:
    """Return the phases of all runs: columns ``run``, ``phase``, ``start``, ``end``.

    Parameters
    ----------
    truth
        What happened.
    clock
        Clock and zone of the host.

    Returns
    -------
    str
        The file's text.

    Examples
    --------
    >>> from joulebook import synthetic
    >>> print(phases_csv(synthetic.node(1)).splitlines()[1])
    pretrain-1,startup,2026-11-02T01:10:00.000Z,2026-11-02T01:10:12.100Z
    """
    table = truth.phases.select("run_id", "phase").with_columns(
        _stamped(truth, truth.phases["start_utc"], clock).alias("start"),
        _stamped(truth, truth.phases["end_utc"], clock).alias("end"),
    )
    return "run,phase,start,end\n" + lines(table, ",")


def _stamped(truth: Truth, times_utc: pl.Series, clock: Clock) -> pl.Series:
    shown = shifted(truth, times_utc, clock=clock)
    return shown.dt.strftime(_STAMP + ("Z" if clock.zone == "UTC" else "%:z"))
