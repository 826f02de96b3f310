"""What the rules of an energy-aware scheduler would have done on a recorded log. Nothing here touches hardware.

A rule is a name and two plain functions on frames: ``observe`` adds columns to the log (smoothing, counting),
``decide`` returns one row for each time that it would act: ``ts_utc``, ``decision``, ``reason``, ``at_stake_j``. Write
your own in a notebook the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from joulebook import occupancy

SILENT_S = 600.0
"""Nothing is decided in the first ten minutes [s]."""

TRAINED = ("loss", "learning_rate")
"""Columns of the training log that rules look at, where it has them."""

DECISION: dict[str, pl.DataType | type[pl.DataType]] = {
    "ts_utc": pl.Datetime("us", "UTC"), "decision": pl.String, "reason": pl.String, "at_stake_j": pl.Float64,
}  # fmt: skip
"""Columns that ``decide`` returns."""

Frame = Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True)
class Rule:
    """A rule: its name, what it looks at, and what it would do."""

    name: str
    observe: Frame
    decide: Frame


def log(steps: pl.DataFrame, power: pl.DataFrame) -> pl.DataFrame:
    """Put training and power logs together, one row a step.

    Parameters
    ----------
    steps
        Columns ``step``, ``end_utc``, optionally ``start_utc``, ``loss``, ``learning_rate``.
    power
        Columns ``device``, ``ts_utc``, ``power_w``, optionally ``utilization_ratio``.

    Returns
    -------
    polars.DataFrame
        ``ts_utc`` (end of the step), ``step``, ``loss``, ``learning_rate``, ``seconds``, ``energy_j``, ``power_w``,
        ``utilization_ratio`` (mean over devices and the step; null where nothing was read).

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=s) for s in range(5)]
    >>> log(pl.DataFrame({"step": [1, 2], "end_utc": [t[2], t[4]]}),
    ...     pl.DataFrame({"device": "gpu:0", "ts_utc": t, "power_w": 100.0}))["energy_j"].to_list()
    [200.0, 200.0]
    """
    started = pl.col("end_utc").shift()
    if "start_utc" in steps.columns:
        started = pl.coalesce("start_utc", started)
    spans = (
        steps.drop_nulls("end_utc")
        .sort("end_utc")
        .with_columns(start_utc=pl.coalesce(started, pl.lit(power["ts_utc"].min())).cast(DECISION["ts_utc"]))
    )
    spans = spans.with_columns(
        energy_j=pl.Series(occupancy.within(power, spans), dtype=pl.Float64),
        seconds=(pl.col("end_utc") - pl.col("start_utc")).dt.total_microseconds() / 1e6,
    )
    use = pl.col("utilization_ratio") if "utilization_ratio" in power.columns else pl.lit(None, pl.Float64)
    # a reading belongs to the step that ends next
    seen = (
        power.select(pl.col("ts_utc"), use.alias("utilization_ratio"))
        .sort("ts_utc")
        .join_asof(spans.select(pl.col("end_utc").alias("ts_utc"), "end_utc"), on="ts_utc", strategy="forward")
        .group_by("end_utc")
        .agg(pl.col("utilization_ratio").mean())
    )
    return (
        spans.join(seen.drop_nulls("end_utc"), on="end_utc", how="left")
        .sort("end_utc")
        .select(
            pl.col("end_utc").alias("ts_utc"), "step",
            *(pl.col(c) if c in steps.columns else pl.lit(None, pl.Float64).alias(c) for c in TRAINED),
            "seconds", "energy_j",
            pl.when(pl.col("seconds") > 0).then(pl.col("energy_j") / pl.col("seconds")).alias("power_w"),
            "utilization_ratio",
        )
    )  # fmt: skip


def run(recorded: pl.DataFrame, rules: Sequence[Rule], *, silent_s: float = SILENT_S) -> pl.DataFrame:
    """List what rules would have done on a recorded log, when, and the energy at stake.

    Parameters
    ----------
    recorded
        Columns ``ts_utc`` and what the rules look at, as ``log`` makes it.
    rules
        Rules.
    silent_s
        Time at the start in which nothing is decided [s].

    Returns
    -------
    polars.DataFrame
        One row a decision, in order of time: ``ts_utc``, ``rule``, ``decision``, ``reason``, ``at_stake_j``. Energies
        of different rows may be the same joules: they do not add up.

    Raises
    ------
    ValueError
        A rule returns other columns than the four of a decision.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=s) for s in range(4)]
    >>> hot = Rule("hot", lambda x: x.filter(pl.col("power_w") > 300), lambda x: x.select(
    ...     "ts_utc", decision=pl.lit("lower the cap"), reason=pl.lit("above 300 W"), at_stake_j=pl.lit(0.0)))
    >>> run(pl.DataFrame({"ts_utc": t, "power_w": [100.0, 400.0, 100.0, 400.0]}), [hot], silent_s=2.0).height
    1
    """
    parts = [pl.DataFrame(schema={**DECISION, "rule": pl.String})]
    begin = recorded["ts_utc"].min()
    heard = recorded.filter(pl.col("ts_utc") >= pl.lit(begin) + pl.duration(microseconds=round(silent_s * 1e6)))
    for rule in rules:
        # rules look at all of the log, so that what they smooth is settled when they are first heard
        made = rule.decide(rule.observe(recorded))
        if set(made.columns) != set(DECISION):
            raise ValueError(f"rule {rule.name!r} returns {', '.join(made.columns)}; wanted are {', '.join(DECISION)}")
        kept = made.select(pl.col(c).cast(t) for c, t in DECISION.items())
        kept = kept.filter(pl.col("ts_utc") >= heard["ts_utc"].min()) if heard.height else kept.clear()
        parts.append(kept.with_columns(rule=pl.lit(rule.name)))
    return pl.concat(parts).sort("ts_utc", "rule").select("ts_utc", "rule", "decision", "reason", "at_stake_j")
