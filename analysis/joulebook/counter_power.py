"""Power that cumulative counters tell: means over spans that are long enough for what the counter counts in."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import bridges, counters
from joulebook.stretches import Floats

READINGS_A_TICK = 50
"""Readings in the span of a counter that ticks more rarely than it is read: a tick is known to one reading, a fiftieth."""

STANDING = 0.01
"""Share of steps without any energy from which a counter is one that is asked more often than it counts."""

SPEAKING = ("difference", "wrap")
"""Kinds of steps whose energy is known."""

Bools = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]


def with_power(power: pl.DataFrame, *, range_j: Mapping[str, float] | None = None) -> pl.DataFrame:
    """Give devices that tell a counter and no power the means between its readings; others stay as they are.

    A mean stands at the end of its span, as readings of power do. The span is one step of the log where the counter counts
    finely, and as many as make its unit, or the time of a tick, a fiftieth of it, where it counts coarsely. Over gaps, and
    where a step is not known (a restart, a doubtful wrap), there is none.

    Parameters
    ----------
    power
        ``device, ts_utc, power_w`` [W] and, perhaps, ``energy_counter_j`` [J], in order of device and time.
    range_j
        Where counters start again from 0 [J], by device.

    Returns
    -------
    polars.DataFrame
        The same columns; of the devices that only count, the rows at which a mean ends.

    Examples
    --------
    >>> from datetime import UTC, datetime, timedelta
    >>> t = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=s) for s in range(4)]
    >>> rows = {"device": "cpu:0", "ts_utc": t, "power_w": None, "energy_counter_j": [5.0, 65.01, 125.0, 305.25]}
    >>> with_power(pl.DataFrame(rows, schema_overrides={"power_w": pl.Float64}))["power_w"].round(6).to_list()
    [60.01, 59.99, 180.25]
    """
    if "energy_counter_j" not in power.columns or power["energy_counter_j"].null_count() == power.height:
        return power
    told = power.group_by("device", maintain_order=True).agg(
        speaks=pl.col("power_w").is_not_null().any(), counts=pl.col("energy_counter_j").is_not_null().any()
    )
    only = told.filter(~pl.col("speaks") & pl.col("counts"))["device"].to_list()
    if not only:
        return power
    rows = power.filter(pl.col("device").is_in(only))
    steps = counters.deltas(rows, range_j=dict(range_j or {}))
    quanta = dict(steps.devices.select("device", "quantum_j").iter_rows())
    by_device = steps.frame.partition_by("device", maintain_order=True)
    means = [_means(own, quanta[own["device"][0]]) for own in by_device]
    known = rows.drop_nulls("energy_counter_j").unique(["device", "ts_utc"], keep="first", maintain_order=True)
    counted = known.drop("power_w").join(pl.concat(means), on=["device", "ts_utc"], how="inner", maintain_order="left")
    others = power.filter(~pl.col("device").is_in(only))
    return pl.concat([others, counted.select(power.columns)]).sort("device", "ts_utc", maintain_order=True)


def _means(steps: pl.DataFrame, quantum_j: float) -> pl.DataFrame:
    """Return ``device, ts_utc, power_w`` of one device from its steps."""
    # the next step counts from the reading before what was no news or wrong
    steps = steps.filter(~pl.col("kind").is_in(["duplicate", "glitch"]))
    stamp_s = steps["ts_utc"].dt.epoch("us").to_numpy() / 1e6
    energy_j = steps["energy_j"].fill_null(np.nan).to_numpy()
    length_s = steps["span_s"].fill_null(np.nan).to_numpy()
    known = steps["kind"].is_in(SPEAKING).to_numpy() & (length_s <= bridges.limit_s(bridges.median_step_s(stamp_s)))
    first, last = _spans(energy_j, known, _steps_a_span(energy_j[known], quantum_j))
    total_j = np.cumsum(np.where(known, energy_j, 0.0))
    watts = (total_j[last] - total_j[first]) / (stamp_s[last] - stamp_s[first])
    return steps[last].select("device", "ts_utc", power_w=pl.Series(watts, dtype=pl.Float64))


def _steps_a_span(energy_j: Floats, quantum_j: float) -> int:
    """Return how many steps make a span: so many that the unit of the counter is no matter even at the least power.

    A counter that stands still now and then is asked more often than it counts: then its ticks are what is known.
    """
    ticks = np.flatnonzero(energy_j)
    if ticks.size < 2:
        return 1
    own = energy_j[ticks[0] : ticks[-1] + 1]
    if 1 - ticks.size / own.size > STANDING:
        return READINGS_A_TICK
    blocks = np.add.reduceat(own, np.arange(0, own.size, READINGS_A_TICK))[: max(own.size // READINGS_A_TICK, 1)]
    least_j = float(blocks.min()) / min(READINGS_A_TICK, own.size)
    return max(int(np.ceil(READINGS_A_TICK * min(quantum_j / least_j, 1.0))), 1)


def _spans(energy_j: Floats, known: Bools, steps: int) -> tuple[Indices, Indices]:
    """Return the readings at which spans begin and end: neighbours, or ticks that lie some steps apart."""
    place = np.arange(energy_j.size)
    ticks = known & (np.nan_to_num(energy_j) > 0)
    # a fine counter is right wherever it begins; a coarse one only when it ticks
    ends = place[ticks | ~known] if steps == 1 else place[ticks]
    if steps > 1 and ends.size:
        ends = ends[np.append(np.diff(ends // steps) > 0, True)]
        ends = ends[np.diff(ends, prepend=-steps) >= steps / 2]
    broken = np.cumsum(~known)
    whole = broken[ends[:-1]] == broken[ends[1:]]
    return ends[:-1][whole], ends[1:][whole]
