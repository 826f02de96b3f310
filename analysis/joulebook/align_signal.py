"""A log as alignment sees it: sample times without the rounding of their stamps, values, and what a value covers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]

INSTANT, MEAN, COUNTER = "instant", "mean", "counter"

STAMP_STEPS_S = (1.0, 0.1, 0.01, 0.001)
"""Resolutions that stamps are printed with [s]."""

SCHEDULE_S = 5.0
"""From this period on, stamps that are all whole multiples of the period are a schedule: a meter that writes at every
full minute writes at the full minute, so nothing was cut off."""

FINE_STAMP_SHARE = 0.02
"""Stamps finer than this share of the period need no repair: their rounding is far below any accuracy asked for."""

SLACK_SHARE = 0.25
"""A sampler counts as periodic when a straight line passes all stamps within this share of their resolution."""

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
    """

    time_s: Floats
    value: Floats
    kind: str
    period_s: float
    window_s: float | None
    epoch_us: int
    stamp_s: float = 0.0
    stamp_rate: float = 0.0

    def part(self, keep: NDArray[np.bool_] | slice) -> Signal:
        """Return the signal of some of the samples."""
        return replace(self, time_s=self.time_s[keep], value=self.value[keep])


def build(log: pl.DataFrame, *, window_s: float | None = None, epoch_us: int | None = None) -> Signal:
    """Make the signal of a log: power where it has any, otherwise its counter.

    Parameters
    ----------
    log
        Frame with ``ts_utc`` and ``power_w`` [W] or ``energy_counter_j`` [J]; ``span_s`` [s] where known.
    window_s
        Averaging window of the sensor [s]; 0 = instantaneous. Default: the median of ``span_s``.
    epoch_us
        Origin of times, Unix time [us]. Default: the first stamp.

    Returns
    -------
    Signal

    Raises
    ------
    ValueError
        No usable column.
    """
    column = "power_w" if _share(log, "power_w") >= 0.5 or "energy_counter_j" not in log.columns else "energy_counter_j"
    if "ts_utc" not in log.columns or column not in log.columns:
        raise ValueError(f"log: needs ts_utc and power_w or energy_counter_j; it has {', '.join(log.columns)}")
    rows = log.drop_nulls(["ts_utc", column]).filter(pl.col(column).is_finite()).sort("ts_utc")
    rows = rows.unique("ts_utc", keep="first", maintain_order=True)
    stamps = rows["ts_utc"].dt.epoch("us").to_numpy()
    value = rows[column].cast(pl.Float64).to_numpy()
    origin = epoch_us if epoch_us is not None else int(stamps[0]) if stamps.size else 0
    time = (stamps - origin) / 1e6
    period = float(np.median(np.diff(time))) if time.size > 1 else 0.0
    if window_s is None and "span_s" in rows.columns and rows["span_s"].null_count() < len(rows):
        window_s = float(rows["span_s"].median())  # type: ignore[arg-type]
    kind = COUNTER if column == "energy_counter_j" else INSTANT if window_s == 0 else MEAN
    time, half, rate = _unrounded(time, stamps, period)
    return Signal(time, value, kind, period, window_s, origin, half, rate)


def _share(log: pl.DataFrame, column: str) -> float:
    """Return the share of rows that have a value."""
    return 1 - log[column].null_count() / max(len(log), 1) if column in log.columns else 0.0


def _unrounded(time: Floats, stamps: NDArray[np.int64], period_s: float) -> tuple[Floats, float, float]:
    """Undo the cutting of stamps to a printed resolution, and say what stays open of time [s] and rate.

    A stamp cut to q says that the sample was taken in [stamp, stamp + q). For a periodic sampler all those intervals
    must hold one straight line; the lines that they admit give time and rate, with the width that is left.
    """
    step = next((q for q in STAMP_STEPS_S if stamps.size and not np.any(stamps % round(q * 1e6))), 0.0)
    if period_s >= SCHEDULE_S and not np.any(stamps % round(period_s * 1e6)):
        return time, 0.0, 0.0
    if step <= FINE_STAMP_SHARE * period_s or stamps.size < 8:
        return time + step / 2, step / 2, 0.0
    if not np.any(np.diff(stamps) % round(period_s * 1e6)):
        # a free sampler slips against its printed seconds sooner or later; one that never does is started by the clock
        return time, step, 0.0
    # a step of two periods is a lost sample, or a slow sampler whose cuts slipped by one: the better line decides
    counted = np.cumsum(np.concatenate([[0.0], np.rint(np.diff(time) / period_s)]))
    best = min((_line(time, index, step) for index in (np.arange(time.size, dtype=float), counted)), key=lambda b: b[3])
    taken, half, rate, slack = best
    if slack > SLACK_SHARE * step:
        # not periodic: the cuts fall everywhere, their mean is half a step with the error of a mean of uniforms
        return time + step / 2, step / 2 / min(np.sqrt(stamps.size / 10), 10.0), 0.0
    return taken, half + slack, rate


def _line(time: Floats, index: Floats, step: float) -> tuple[Floats, float, float, float]:
    """Return sample times on the line through all stamps, half widths of time [s] and rate, and the slack needed."""
    x = index - index.mean()
    slope = float(x @ time / (x @ x))
    centre, half, rates, slack = _lines_through(x, time - slope * x, step)
    taken = centre + (slope + (rates[0] + rates[1]) / 2) * x
    return taken, half, (rates[1] - rates[0]) / 2 / slope, slack


def _lines_through(x: Floats, low: Floats, step: float) -> tuple[float, float, tuple[float, float], float]:
    """Return centre and half width of the intercepts, the range of slopes, and the slack that was needed."""
    x, low = _extremes(x, low)
    slopes = np.linspace(-2, 2, 801) * step / max(np.ptp(x), 1.0)
    tilted = low[None, :] - slopes[:, None] * x[None, :]
    least, most = tilted.max(axis=1), tilted.min(axis=1) + step
    slack = max(0.0, float((least - most).min()) / 2) + 1e-9
    fits = least - slack <= most + slack
    lo, hi = float((least - slack)[fits].min()), float((most + slack)[fits].max())
    inside = slopes[fits]
    return (lo + hi) / 2, (hi - lo) / 2, (float(inside[0]), float(inside[-1])), slack


def _extremes(x: Floats, low: Floats, bins: int = 512) -> tuple[Floats, Floats]:
    """Keep the largest and smallest value of each of many stretches: only they can bound a line."""
    if x.size <= 2 * bins:
        return x, low
    cut = np.array_split(np.arange(x.size), bins)
    keep = np.array([[c[0] + np.argmax(low[c]), c[0] + np.argmin(low[c])] for c in cut]).ravel()
    return x[keep], low[keep]
