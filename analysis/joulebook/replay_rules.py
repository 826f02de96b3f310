"""The usual rules of an energy-aware scheduler, to be replayed on a recorded log."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from joulebook.replay import Rule

LOW_UTILIZATION = 0.5
"""Below this a reading is low [1]."""

LOW_IN_A_ROW = 3
"""So many low readings in a row count [1]."""

SMOOTHING = 0.05
"""Weight of the newest loss in the exponential moving average [1]."""

LR_LIMIT = 0.15
"""Largest change of the learning rate at a time [1]."""

NOTCH_STEPS = 100
"""Accumulation changes at most one notch in so many steps [1]."""

PLATEAU_STEPS = 200
"""Steps over which the smoothed loss has to stand still [1]."""

PLATEAU_SHARE = 0.002
"""A fall of the smoothed loss below this share is standing still [1]."""

CAP_SHARE = 0.8
"""Power cap on the plateau, as a share of the power before [1]."""

TIGHTEN = 0.05
"""The target is tightened by so much once it is met [1]."""


def low_utilization(*, below: float = LOW_UTILIZATION, in_a_row: int = LOW_IN_A_ROW) -> Rule:
    """Return the rule that acts on several low utilisations in a row, never on one.

    Parameters
    ----------
    below
        Utilisation that is low [1].
    in_a_row
        Readings in a row that have to be low.

    Returns
    -------
    Rule
        At stake is the energy of the low readings.

    Examples
    --------
    >>> low_utilization().name
    'low-utilization'
    """

    def observe(x: pl.DataFrame) -> pl.DataFrame:
        low = (pl.col("utilization_ratio") < below).fill_null(False)
        return x.with_columns(low=low).with_columns(
            block=(pl.col("low") != pl.col("low").shift()).fill_null(True).cum_sum()
        )

    def decide(x: pl.DataFrame) -> pl.DataFrame:
        stretches = (
            x.filter("low")
            .group_by("block", maintain_order=True)
            .agg(pl.col("ts_utc"), pl.len().alias("n"), pl.col("energy_j").sum(), pl.col("utilization_ratio").mean())
        )
        return stretches.filter(pl.col("n") >= in_a_row).select(
            pl.col("ts_utc").list.get(in_a_row - 1),
            decision=pl.lit("look for what the accelerators wait for; more workers or a larger batch"),
            reason=pl.format("{} readings in a row at {} of the time busy", "n", pl.col("utilization_ratio").round(2)),
            at_stake_j="energy_j",
        )

    return Rule("low-utilization", observe, decide)


def accumulation(*, notch_steps: int = NOTCH_STEPS) -> Rule:
    """Return the rule that doubles gradient accumulation while utilisation is low, a notch at a time.

    Parameters
    ----------
    notch_steps
        Steps between two changes, 50 to 100.

    Returns
    -------
    Rule
        The learning rate follows with sqrt(2), at most 15 % a time. At stake is the energy up to the next change.

    Examples
    --------
    >>> accumulation().name
    'accumulation'
    """

    def observe(x: pl.DataFrame) -> pl.DataFrame:
        low = (pl.col("utilization_ratio") < LOW_UTILIZATION).fill_null(False).cast(pl.Int32)
        ready = (low.rolling_sum(LOW_IN_A_ROW) >= LOW_IN_A_ROW).fill_null(False)
        acts = x.with_columns(ready=ready)
        free = _spaced(acts["ready"].to_numpy(), acts["step"].to_numpy().astype(np.int64), notch_steps)
        return acts.with_columns(acts=pl.Series(free), total=pl.col("energy_j").cum_sum())

    def decide(x: pl.DataFrame) -> pl.DataFrame:
        ratio = learning_rate_change(math.sqrt(2))
        until = pl.col("total").shift(-1).fill_null(x["total"].max() if x.height else 0.0)
        return x.filter("acts").select(
            "ts_utc",
            decision=pl.lit(f"one more notch of accumulation, learning rate x {ratio:.2f}"),
            reason=pl.lit(f"{LOW_IN_A_ROW} readings in a row below {LOW_UTILIZATION:.0%} busy"),
            at_stake_j=until - pl.col("total"),
        )

    return Rule("accumulation", observe, decide)


def plateau_cap(*, steps: int = PLATEAU_STEPS, share: float = CAP_SHARE) -> Rule:
    """Return the rule that lowers the power cap once the smoothed loss stands still, and only then.

    Parameters
    ----------
    steps
        Steps over which the loss has to stand still.
    share
        New cap over the power before [1].

    Returns
    -------
    Rule
        Acts once a plateau. At stake is the energy above the cap until the plateau ends, if speed were not lost.

    Examples
    --------
    >>> plateau_cap().name
    'plateau-cap'
    """

    def observe(x: pl.DataFrame) -> pl.DataFrame:
        smooth = pl.col("loss").ewm_mean(alpha=SMOOTHING, ignore_nulls=True)
        still = (1 - smooth / smooth.shift(steps) < PLATEAU_SHARE).fill_null(False)
        return x.with_columns(smooth=smooth, still=still).with_columns(
            block=(pl.col("still") != pl.col("still").shift()).fill_null(True).cum_sum()
        )

    def decide(x: pl.DataFrame) -> pl.DataFrame:
        plateaus = (
            x.filter("still")
            .group_by("block", maintain_order=True)
            .agg(pl.col("ts_utc").first(), pl.col("smooth").first(), pl.col("energy_j").sum())
        )
        return plateaus.select(
            "ts_utc",
            decision=pl.lit(f"lower the power cap to {share:.0%} of the mean power"),
            reason=pl.format("smoothed loss {} fell by less than {} in {} steps", pl.col("smooth").round(4),
                             pl.lit(f"{PLATEAU_SHARE:.1%}"), pl.lit(steps)),
            at_stake_j=(1 - share) * pl.col("energy_j"),
        )  # fmt: skip

    return Rule("plateau-cap", observe, decide)


def tighten_target(target: float, *, by: float = TIGHTEN) -> Rule:
    """Return the rule that tightens the target of the loss each time that it is met.

    Parameters
    ----------
    target
        First target.
    by
        How much tighter each time [1], 0.05 to 0.10.

    Returns
    -------
    Rule
        At stake is the energy spent since the first target was met.

    Raises
    ------
    ValueError
        The step is not between 0 and 1.

    Examples
    --------
    >>> tighten_target(2.5).name
    'tighten-target'
    """
    if not 0 < by < 1:
        raise ValueError(f"by is {by}: must lie between 0 and 1")

    def observe(x: pl.DataFrame) -> pl.DataFrame:
        smooth = pl.col("loss").ewm_mean(alpha=SMOOTHING, ignore_nulls=True)
        met = ((smooth / target).log() / math.log(1 - by)).floor() + 1
        return x.with_columns(smooth=smooth, level=met.clip(lower_bound=0).cum_max().fill_null(0)).with_columns(
            left=pl.col("energy_j").sum() - pl.col("energy_j").cum_sum()
        )

    def decide(x: pl.DataFrame) -> pl.DataFrame:
        rows = x.filter((pl.col("level") > pl.col("level").shift()).fill_null(pl.col("level") > 0))
        new = target * (1 - by) ** pl.col("level")
        return rows.select(
            "ts_utc",
            decision=pl.format("tighten the target to {}", new.round(4)),
            reason=pl.format("smoothed loss {} met the target before", pl.col("smooth").round(4)),
            at_stake_j="left",
        )

    return Rule("tighten-target", observe, decide)


def learning_rate_change(wanted_ratio: float) -> float:
    """Return the change of the learning rate that is allowed at once.

    Parameters
    ----------
    wanted_ratio
        New over old learning rate that is wanted [1], sqrt(N) for N-fold accumulation.

    Returns
    -------
    float
        At most 15 % away from 1.

    Raises
    ------
    ValueError
        The ratio is not positive.

    Examples
    --------
    >>> learning_rate_change(2 ** 0.5), learning_rate_change(0.9)
    (1.15, 0.9)
    """
    if wanted_ratio <= 0:
        raise ValueError(f"wanted_ratio is {wanted_ratio}: must be positive")
    return min(max(wanted_ratio, 1 - LR_LIMIT), 1 + LR_LIMIT)


@njit(cache=True)
def _spaced(ready: NDArray[np.bool_], step: NDArray[np.int64], apart: int) -> NDArray[np.bool_]:
    """Keep the first of each so many steps in which an action is ready."""
    out = np.zeros(len(ready), dtype=np.bool_)
    last = -apart - 1
    for i in range(len(ready)):
        if ready[i] and (last < 0 or step[i] - last >= apart):
            out[i] = True
            last = step[i]
    return out
