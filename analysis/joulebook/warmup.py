"""Where steady state begins in a run, why, and whether there is one at all."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import serial, states, totals, warmup_model, warmup_steps
from joulebook.findings import Estimate, Finding, Severity
from joulebook.warmup_model import ANSWERED, Kind

__all__ = ["ANSWERED", "Kind", "Warmup", "along", "detect"]

Array = npt.NDArray[np.float64]
Stamps = npt.NDArray[np.int64]

MIN_TAIL_S: Final = 30.0
"""Shortest steady state [s]."""

MIN_TAIL_N_EFF: Final = 20.0
"""Independent readings that steady state must hold."""

MIN_TREND_BINS: Final = 8
"""Steady bins from which a trend is given."""

NOT_TOLD: Final = pl.Series([None], dtype=pl.Float64)
"""Stands for a column that a frame does not have."""

LARGEST_SAMPLE: Final = 1_000_000
"""Readings up to which the level of steady state is estimated from single readings."""

MIN_READINGS: Final = 60
"""Readings below which nothing is said."""


@dataclass(frozen=True)
class Warmup:
    """Start of steady state in one run.

    Parameters
    ----------
    kind
        What the run does; ``drift``, ``late change`` and ``none`` are refusals.
    start_utc
        Where steady state begins, ``None`` where there is none.
    warmup_s
        Time from the first reading to that start [s], to within a bin.
    level_w
        Mean power of steady state [W].
    slope_w_per_s
        Trend that is left in it [W/s].
    reason
        Why there, or why not.
    frame
        The bins behind it: ``start_utc``, ``mean_w`` [W], ``level_w`` [W], ``steady``.
    findings
        Doubts.
    """

    kind: Kind
    start_utc: datetime | None
    warmup_s: Estimate
    level_w: Estimate
    slope_w_per_s: Estimate
    reason: str
    frame: pl.DataFrame
    findings: tuple[Finding, ...] = field(default=())

    @property
    def is_steady(self) -> bool:
        """Whether there is a steady state."""
        return self.kind in ANSWERED


def _is_one(power: pl.DataFrame) -> bool:
    """Return whether a frame is of one device already, in order and without holes."""
    device, watts, stamps = (power[name] for name in ("device", "power_w", "ts_utc"))
    alone = watts.len() == 0 or bool((device == device[0]).all())
    return alone and watts.null_count() == 0 and stamps.is_sorted()


def _steady_work(stamps_us: Stamps, watts: Array, load: Array | None) -> npt.NDArray[np.bool_] | slice:
    """Leave out stalls and idle dips inside the run: they are no level of the work."""
    if watts.size < MIN_READINGS:
        return slice(None)
    busy = states.split(stamps_us, watts, load, tick_s=1e-6) == states.BUSY
    busy[: np.argmax(busy)] = True
    return slice(None) if busy.all() else busy


def _trend(means: Array, lasts_s: float, n: int, n_eff: float) -> Estimate:
    """Return the trend over the steady bins [W/s]."""
    if means.size < MIN_TREND_BINS:
        return Estimate.refused(f"only {means.size} steady bins", unit="W/s", n=n, method="trend of bin means")
    bin_s = lasts_s / means.size
    slope, error = (x / bin_s for x in warmup_model.slope(means))
    return Estimate(slope, slope - 1.96 * error, slope + 1.96 * error, "W/s", n, n_eff, "trend of bin means")


def _left_out(steps: int) -> str:
    return f"the first {steps} steps are left out" if steps > 1 else "the first step is left out"


def _refusal(reason: str, kind: Kind, frame: pl.DataFrame, n: int) -> Warmup:
    def none(unit: str) -> Estimate:
        return Estimate.refused(reason, unit=unit, n=n, method="steady state")

    text = f"No steady state: {reason}. How long the warm-up lasts is not given; a longer run may show it."
    finding = Finding("no-steady-state", Severity.WARNING, "run", text, {"kind": kind.value})
    return Warmup(kind, None, none("s"), none("W"), none("W/s"), reason, frame, (finding,))


def detect(power: pl.DataFrame, *, steps: pl.DataFrame | None = None, dropped_steps: int | None = None) -> Warmup:
    """Find where steady state begins in a run.

    Parameters
    ----------
    power
        Power frame of one run: ``device``, ``ts_utc``, ``power_w`` [W]; several devices are summed first.
    steps
        Optimizer steps of the run (``step``, ``end_utc`` and perhaps ``start_utc``); the first ones are never steady.
    dropped_steps
        Steps at the start that do not count. Default: those that last longer or shorter than later ones, of at most 20.

    Returns
    -------
    Warmup
        A refusal (``start_utc`` is ``None``) where power drifts, changes late, or holds too little information.

    Raises
    ------
    ValueError
        Where ``power`` lacks a column.

    References
    ----------
    Barrett et al., OOPSLA 2017, arXiv:1602.00602; Traini et al., doi:10.1007/s10664-022-10247-x.

    Examples
    --------
    >>> import numpy as np
    >>> from datetime import UTC, datetime, timedelta
    >>> stamps = [datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=s) for s in range(1200)]
    >>> watts = np.r_[np.full(120, 200.0), np.full(1080, 300.0)] + np.random.default_rng(3).normal(0.0, 4.0, 1200)
    >>> found = detect(pl.DataFrame({"device": "gpu:0", "ts_utc": stamps, "power_w": watts}))
    >>> found.kind.value, 100.0 < found.warmup_s.value < 140.0
    ('step', True)
    """
    totals.check(power)
    series = power if _is_one(power) else totals.series(power)
    load = series.get_column("utilization_ratio", default=NOT_TOLD)
    dropped = None if steps is None else warmup_steps.end(steps, dropped_steps=dropped_steps)
    return along(
        series["ts_utc"],
        series["power_w"].to_numpy().astype(np.float64, copy=False),
        None if load.null_count() == load.len() else load.cast(pl.Float64).to_numpy(),
        dropped=dropped,
    )


def along(
    stamps: pl.Series,
    watts: Array,
    utilization_ratio: Array | None = None,
    *,
    dropped: tuple[datetime, int] | None = None,
    interval: bool = True,
) -> Warmup:
    """Find where steady state begins along one series, for callers that hold arrays: see ``detect``.

    Parameters
    ----------
    stamps
        Times in order (UTC).
    watts
        Finite readings [W].
    utilization_ratio
        Utilisation, not-a-number where unknown; ``None`` where all of it is.
    dropped
        End of the steps at the start that do not count, and their number.
    interval
        Whether the level gets its interval, which takes longer than the search for its start.

    Returns
    -------
    Warmup
        As from ``detect``.

    Examples
    --------
    >>> from datetime import UTC, datetime, timedelta
    >>> stamps = pl.Series([datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=s) for s in range(600)])
    >>> along(stamps, 300.0 + np.random.default_rng(3).normal(0.0, 4.0, 600)).kind.value
    'steady'
    """
    kept = _steady_work(stamps.dt.epoch("us").to_numpy(), watts, utilization_ratio)
    if not isinstance(kept, slice):
        stamps, watts = stamps.filter(pl.Series(kept)), watts[kept]
    n = watts.size
    empty = pl.DataFrame(
        schema={"start_utc": stamps.dtype, "mean_w": pl.Float64, "level_w": pl.Float64, "steady": pl.Boolean}
    )
    if n < MIN_READINGS:
        return _refusal(f"{n} readings, at least {MIN_READINGS} are needed", Kind.NONE, empty, n)
    robust = warmup_model.robust(watts)
    bins = min(warmup_model.BINS, n // 3)
    edges = np.linspace(0, n, bins + 1).astype(np.int64)
    verdict = warmup_model.judge(warmup_model.binned(robust, bins))
    first = int(edges[min(verdict.first_bin, bins - 1)])
    kind, reason = verdict.kind, verdict.reason
    if dropped is not None and kind in ANSWERED:
        later = int((stamps < dropped[0]).sum())
        if later > first:
            first, reason = later, _left_out(dropped[1])
            kind = Kind.STEP if kind is Kind.STEADY else kind
    return _answer(stamps, robust, edges, kind, first, reason, interval=interval)


def _level(tail: Array, *, interval: bool) -> Estimate:
    """Return the mean of steady state; that of a long one from block means, in which nothing slow is lost."""
    if not interval:
        return Estimate(float(tail.mean()), unit="W", n=int(tail.size), n_eff=serial.effective_n(tail))
    width = tail.size // LARGEST_SAMPLE + 1
    if width == 1:
        return serial.mean_interval(tail)
    blocks = np.add.reduceat(tail, np.arange(0, tail.size // width * width, width))
    if tail.size % width:
        blocks[-1] -= tail[-(tail.size % width) :].sum()
    level = serial.mean_interval(blocks / width)
    return replace(level, n=int(tail.size))


def _answer(
    stamps: pl.Series,
    robust: Array,
    edges: npt.NDArray[np.int64],
    kind: Kind,
    first: int,
    reason: str,
    *,
    interval: bool,
) -> Warmup:
    tail = robust[first:]
    steady = kind in ANSWERED
    level = _level(tail, interval=interval)
    steady_bins = steady & (edges[:-1] >= first)
    level_w = np.where(steady_bins, math.nan if level.value is None else level.value, math.nan)
    means = np.add.reduceat(robust, edges[:-1]) / np.diff(edges)
    columns = {"start_utc": stamps.gather(edges[:-1]), "mean_w": means, "level_w": level_w, "steady": steady_bins}
    frame = pl.DataFrame(columns, nan_to_null=True)
    n = int(robust.size)
    if not steady:
        return _refusal(reason, kind, frame, n)
    if first >= n:
        return _refusal("the run ends within the steps that are left out", Kind.NONE, frame, n)
    tail_s = (stamps[-1] - stamps[first]).total_seconds()
    n_eff = level.n_eff or 0.0
    if tail_s < MIN_TAIL_S or n_eff < MIN_TAIL_N_EFF:
        found = f"the steady part is {tail_s:.0f} s with {n_eff:.0f} independent readings"
        short = f"{found}; {MIN_TAIL_S:.0f} s and {MIN_TAIL_N_EFF:.0f} are needed"
        return _refusal(short, Kind.NONE, frame, n)
    step_s = tail_s / max(tail.size - 1, 1)
    drift = _trend(means[steady_bins], tail.size * step_s, tail.size, n_eff)
    start = stamps[first]
    bin_s = (stamps[-1] - stamps[0]).total_seconds() / (edges.size - 1)
    spent = (start - stamps[0]).total_seconds()
    method = "steady state from change points and exponential approach"
    duration = Estimate(spent, max(spent - bin_s, 0.0), spent + bin_s, unit="s", n=n, n_eff=n_eff, method=method)
    return Warmup(kind, start, duration, level, drift, reason, frame)
