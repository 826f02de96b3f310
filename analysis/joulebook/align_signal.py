"""A log as alignment sees it: sample times without the rounding of their stamps, values, and what a value covers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from joulebook import align_stamps
from joulebook.align_stamps import Times

Floats = NDArray[np.float64]

INSTANT, MEAN, COUNTER = "instant", "mean", "counter"

GAP_PERIODS = 2.5
"""A step longer than this many periods is a gap: nothing is predicted from inside it."""


@dataclass(frozen=True)
class Signal:
    """One log on its own clock.

    Parameters
    ----------
    time_s
        Sample times [s] after ``epoch_us``, the rounding of the stamps removed as far as it can be.
    value
        Power [W], or energy [J] for a counter.
    kind
        ``instant``, ``mean`` (over the window that ends at the sample) or ``counter``.
    period_s
        Median step [s].
    window_s
        Declared averaging window [s]; ``None`` where the log does not say.
    epoch_us
        Origin of ``time_s`` as Unix time [us].
    stamp_s
        Half width of what the stamps' resolution leaves open of the clock reading [s].
    stamp_rate
        Half width of what it leaves open of the clock's rate.
    early_s
        By how much the power may be of earlier times still: stamps rounded to the nearest rather than cut, or values
        that waited to be handed out [s].
    age_s
        How long a value may have waited of that [s]: above nothing for controllers that are asked.
    """

    time_s: Floats
    value: Floats
    kind: str
    period_s: float
    window_s: float | None
    epoch_us: int
    stamp_s: float = 0.0
    stamp_rate: float = 0.0
    early_s: float = 0.0
    age_s: float = 0.0

    def part(self, keep: NDArray[np.bool_] | slice) -> Signal:
        """Return the signal of some of the samples."""
        return replace(self, time_s=self.time_s[keep], value=self.value[keep])


Pair = tuple[Signal, Signal | None]
"""A log read in two ways."""


def build(log: pl.DataFrame, *, window_s: float | None = None, age_s: float = 0.0, epoch_us: int | None = None) -> Pair:
    """Make the signal of a log: power where it has any, otherwise its counter.

    Stamps cut to whole seconds that slip now and then can be read in two ways: a sample was lost, or the sampler runs
    free of the clock. The power of the other log can tell which, so both readings are returned.

    Parameters
    ----------
    log
        Frame with ``ts_utc`` and ``power_w`` [W] or ``energy_counter_j`` [J]; ``span_s`` [s] where known.
    window_s
        Averaging window of the sensor [s]; 0 = instantaneous. Default: the median of ``span_s``.
    age_s
        How old a value may be when it is stamped [s].
    epoch_us
        Origin of times, Unix time [us]. Default: the first stamp.

    Returns
    -------
    plain : Signal
        Every stamp taken as it stands.
    free : Signal or None
        The samples of a free sampler; ``None`` where the stamps do not look like one.

    Raises
    ------
    ValueError
        No usable column.
    """
    column = "power_w" if _share(log, "power_w") >= 0.5 or "energy_counter_j" not in log.columns else "energy_counter_j"
    if "ts_utc" not in log.columns or column not in log.columns:
        raise ValueError(f"log: needs ts_utc and power_w or energy_counter_j; it has {', '.join(log.columns)}")
    rows = log.filter(pl.col("ts_utc").is_not_null() & pl.col(column).is_finite())
    if not rows["ts_utc"].is_sorted():
        rows = rows.sort("ts_utc", maintain_order=True)
    once = rows.filter(pl.col("ts_utc").diff().cast(pl.Int64).fill_null(1) > 0)
    stamps = once["ts_utc"].dt.epoch("us").to_numpy()
    origin = epoch_us if epoch_us is not None else int(stamps[0]) if stamps.size else 0
    time = (stamps - origin) / 1e6
    period = float(np.median(np.diff(time))) if time.size > 1 else 0.0
    if window_s is None and "span_s" in rows.columns and rows["span_s"].null_count() < len(rows):
        window_s = float(rows["span_s"].median())  # pyrefly: ignore[bad-argument-type]
    kind = COUNTER if column == "energy_counter_j" else INSTANT if window_s == 0 else MEAN
    taken = align_stamps.plain(time, stamps, period)
    sensor = partial(Signal, kind=kind, window_s=window_s, epoch_us=origin)
    plain = _timed(sensor, once[column], taken, period, age_s)
    if kind == COUNTER:
        return plain, None
    stamps = rows["ts_utc"].dt.epoch("us").to_numpy()
    free = align_stamps.slipping((stamps - origin) / 1e6, stamps)
    if free is None or (len(rows) == len(once) and np.array_equal(free.time_s, taken.time_s)):
        return plain, None
    pace = float(np.median(np.diff(free.time_s)))
    return plain, _timed(sensor, rows[column], free, pace, age_s)


def _timed(sensor: Callable[..., Signal], values: pl.Series, taken: Times, period_s: float, age_s: float) -> Signal:
    """Return the signal of values and their times."""
    return sensor(
        time_s=taken.time_s,
        value=values.cast(pl.Float64).to_numpy(),
        period_s=period_s,
        stamp_s=taken.half_s,
        stamp_rate=taken.rate,
        early_s=taken.rounded_s + age_s,
        age_s=age_s,
    )


def _share(log: pl.DataFrame, column: str) -> float:
    """Return the share of rows that have a value."""
    return 1 - log[column].null_count() / max(len(log), 1) if column in log.columns else 0.0
