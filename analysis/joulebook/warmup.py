"""Where steady state begins in a run, why, and whether there is one at all."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import changepoints, states, stats, totals
from joulebook.findings import Estimate, Finding, Severity

Array = npt.NDArray[np.float64]

TOLERANCE_RATIO: Final = 0.01
"""Levels that differ by less are one level; leakage drift of a warming board is 1 to 4 %."""

BINS: Final = 200
"""Bins that a run is seen in: fine enough for a start within 1 % of the run, coarse enough to average step ripple."""

SMOOTHING_READINGS: Final = 21
"""Window of the rolling median against which spikes and short stalls are judged [readings]."""

OUTLIER_MADS: Final = 4.0
"""Distance from the rolling median beyond which a reading does not count [robust standard deviations]."""

PENALTY_FACTOR: Final = 4.0
"""Price of a change among the bins, in units of log(bins) times the noise variance."""

BRIEF_RATIO: Final = 0.03
"""Excursions shorter than this share of the run, back to the same level, do not end steady state."""

DRIFT_F: Final = 8.0
"""F value from which an exponential approach is believed."""

MIN_TAIL_S: Final = 30.0
"""Shortest steady state [s]."""

MIN_TAIL_N_EFF: Final = 20.0
"""Independent readings that steady state must hold."""

LATEST_START_RATIO: Final = 0.5
"""Steady state that begins later than this share of the run is a late change, not a warm-up."""

TIME_CONSTANTS: Final = 14
"""Time constants tried, evenly in their logarithm."""

TAIL_TIME_CONSTANTS: Final = 3.0
"""Time constants of the approach that steady state must outlast."""

DROPPED_STEPS: Final = 20
"""Optimizer steps at the start that are never steady: allocation, communicator set-up, pipeline fill."""

MIN_READINGS: Final = 60
"""Readings below which nothing is said."""


class Kind(StrEnum):
    """What the run does before steady state; the last three have none."""

    STEADY = "steady"
    STEP = "step"
    THERMAL = "thermal"
    DRIFT = "drift"
    LATE_CHANGE = "late change"
    NONE = "none"


ANSWERED: Final = (Kind.STEADY, Kind.STEP, Kind.THERMAL)
"""Kinds with a steady state."""


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


@dataclass(frozen=True)
class _Verdict:
    kind: Kind
    first_bin: int
    reason: str


def _robust(watts: Array) -> Array:
    """Replace readings far from the rolling median by it: short stalls and spikes say nothing about the level."""
    center = pl.Series(watts).rolling_median(SMOOTHING_READINGS, min_samples=1, center=True).to_numpy()
    residual = watts - center
    scale = stats.mad(residual)
    return np.where(np.abs(residual) > OUTLIER_MADS * scale, center, watts) if scale > 0.0 else watts


def _without_dips(series: pl.DataFrame) -> pl.DataFrame:
    """Leave out stalls and idle dips inside the run: they are no level of the work."""
    if series.height < MIN_READINGS:
        return series
    stamps = series["ts_utc"]
    seconds = (stamps - stamps[0]).dt.total_microseconds().to_numpy() / 1e6
    load = series["utilization_ratio"].cast(pl.Float64).to_numpy()
    busy = states.split(seconds, series["power_w"].to_numpy(), load) == states.BUSY
    return series.filter(pl.Series(busy | (np.arange(busy.size) < np.argmax(busy))))


def _bin(values: Array, bins: int) -> Array:
    edges = np.linspace(0, values.size, bins + 1).astype(np.int64)
    return np.asarray(np.add.reduceat(values, edges[:-1]) / np.diff(edges))


def _walk_back(starts: npt.NDArray[np.int64], means: Array, bins: int) -> int:
    """Return the segment from which on all levels agree with the last one, brief excursions left out."""
    lengths = np.diff(np.append(starts, bins))
    brief = max(1, round(BRIEF_RATIO * bins))
    # A run that ends in the middle of an excursion (a last checkpoint, the shutdown) is judged by what came before.
    last = means.size - 1
    while last > 0 and lengths[last] <= brief:
        last -= 1
    weight, total = float(lengths[last]), float(means[last] * lengths[last])
    first, i = last, last - 1
    while i >= 0:
        level = total / weight
        if abs(means[i] - level) <= TOLERANCE_RATIO * abs(level):
            weight, total, first = weight + lengths[i], total + means[i] * lengths[i], i
        elif lengths[i] > brief or i == 0:
            break
        i -= 1
    return int(first)


def _approach(values: Array) -> tuple[float, float, float]:
    """Fit a + b exp(-t/T); return the F value against a constant, b (0 where nothing is gained) and T [bins]."""
    k = values.size
    if k < 8:
        return 0.0, 0.0, 1.0
    time = np.arange(k, dtype=np.float64)
    centered = values - values.mean()
    flat = float(centered @ centered)
    best, amplitude, constant = flat, 0.0, 1.0
    for candidate in np.geomspace(2.0, 2.0 * k, TIME_CONSTANTS):
        shape = np.exp(-time / candidate)
        shape -= shape.mean()
        slope = float(shape @ centered) / float(shape @ shape)
        left = flat - slope * slope * float(shape @ shape)
        if left < best:
            best, amplitude, constant = left, slope, float(candidate)
    # Neighbouring bins are alike, so a gain counts for less than among independent ones.
    alike = min(max(stats.lag1(np.diff(values)) + 0.5, 0.0), 0.45)
    deflation = (1.0 - alike) / (1.0 + alike)
    return (flat - best) / 2.0 / max(best / (k - 3), 1e-300) * deflation, amplitude, constant


def _slope(values: Array) -> tuple[float, float]:
    """Return slope and its standard error per bin, with the noise's long-run variance."""
    k = values.size
    time = np.arange(k, dtype=np.float64) - (k - 1) / 2.0
    spread = float(time @ time)
    slope = float(time @ values) / spread
    residual = values - values.mean() - slope * time
    return slope, math.sqrt(max(stats.long_run_variance(residual), float(np.var(residual))) / spread)


def _judge(values: Array) -> _Verdict:  # noqa: PLR0911
    """Return kind, first steady bin and reason for the binned power of one run."""
    bins = values.size
    if np.ptp(values) == 0.0:
        return _Verdict(Kind.NONE, 0, "all readings are equal: the sensor may be stuck")
    found = changepoints.find(values, penalty_factor=PENALTY_FACTOR)
    starts = found.frame["first"].to_numpy().astype(np.int64)
    means = found.frame["mean"].to_numpy()
    segment = _walk_back(starts, means, bins)
    first = int(starts[segment])
    latest = LATEST_START_RATIO * bins
    level = float(values[first:].mean())
    limit = TOLERANCE_RATIO * abs(level)
    staircase = segment >= 2 and bool(np.all(np.diff(means[: segment + 1]) * (means[segment] - means[0]) > 0.0))
    if first > latest:
        kind = Kind.DRIFT if staircase else Kind.LATE_CHANGE
        return _Verdict(kind, first, f"the level still changes after {first / bins:.0%} of the run")
    thermal = staircase
    f_value, amplitude, constant = _approach(values[first:])
    if f_value > DRIFT_F:
        end = amplitude * math.exp(-(bins - first) / constant)
        if abs(amplitude - end) > limit:
            thermal = True
            first += math.ceil(constant * math.log(abs(amplitude) / (limit + abs(end))))
            if first > latest:
                return _Verdict(Kind.DRIFT, first, "power is still approaching its final level at the end of the run")
            if bins - first < TAIL_TIME_CONSTANTS * constant and abs(end) > limit / 2.0:
                return _Verdict(Kind.DRIFT, first, "the run ends within three time constants of its warm-up")
    slope, error = _slope(values[first:])
    if abs(slope) > 3.0 * error and abs(slope) * (bins - first) > limit:
        return _Verdict(
            Kind.DRIFT, first, f"power drifts by {slope * (bins - first) / level:+.1%} to the end of the run"
        )
    if first == 0:
        return _Verdict(Kind.STEADY, 0, "level from the first reading on")
    kind = Kind.THERMAL if thermal else Kind.STEP
    cause = "slow approach" if thermal else "change of level"
    return _Verdict(kind, first, f"{cause} ends after {first / bins:.1%} of the run")


def _stepped_start(steps: pl.DataFrame, dropped_steps: int) -> datetime | None:
    done = steps.sort("end_utc").filter(pl.col("step").rank("ordinal") <= dropped_steps)
    last = done["end_utc"].max()
    return last if isinstance(last, datetime) else None


def _refusal(reason: str, kind: Kind, frame: pl.DataFrame, n: int) -> Warmup:
    def none(unit: str) -> Estimate:
        return Estimate.refused(reason, unit=unit, n=n, method="steady state")

    finding = Finding("no-steady-state", Severity.WARNING, "run", f"No steady state: {reason}.", {"kind": kind.value})
    return Warmup(kind, None, none("s"), none("W"), none("W/s"), reason, frame, (finding,))


def detect(power: pl.DataFrame, *, steps: pl.DataFrame | None = None, dropped_steps: int = DROPPED_STEPS) -> Warmup:
    """Find where steady state begins in a run.

    Parameters
    ----------
    power
        Power frame of one run: ``device``, ``ts_utc``, ``power_w`` [W]; several devices are summed first.
    steps
        Optimizer steps of the run (``step``, ``end_utc``); the first ``dropped_steps`` are never steady.
    dropped_steps
        Steps at the start that do not count.

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
    series = _without_dips(totals.series(power))
    watts = series["power_w"].to_numpy()
    stamps = series["ts_utc"]
    n = watts.size
    empty = pl.DataFrame(
        schema={"start_utc": stamps.dtype, "mean_w": pl.Float64, "level_w": pl.Float64, "steady": pl.Boolean}
    )
    if n < MIN_READINGS:
        return _refusal(f"{n} readings, at least {MIN_READINGS} are needed", Kind.NONE, empty, n)
    robust = _robust(watts)
    bins = min(BINS, n // 3)
    edges = np.linspace(0, n, bins + 1).astype(np.int64)
    values = _bin(robust, bins)
    verdict = _judge(values)
    first = int(edges[min(verdict.first_bin, bins - 1)])
    reason = verdict.reason
    kind = verdict.kind
    if steps is not None and steps.height and kind in ANSWERED:
        dropped_until = _stepped_start(steps, dropped_steps)
        later = int((stamps < dropped_until).sum()) if dropped_until else 0
        if later > first:
            first, reason = later, f"the first {dropped_steps} steps are left out"
            kind = Kind.STEP if kind is Kind.STEADY else kind
    return _answer(stamps, robust, edges, kind, first, reason)


def _answer(  # noqa: PLR0917
    stamps: pl.Series, robust: Array, edges: npt.NDArray[np.int64], kind: Kind, first: int, reason: str
) -> Warmup:
    tail = robust[first:]
    steady = kind in ANSWERED
    level = stats.mean_interval(tail)
    frame = pl.DataFrame(
        {
            "start_utc": stamps.gather(edges[:-1]),
            "mean_w": np.add.reduceat(robust, edges[:-1]) / np.diff(edges),
            "level_w": np.where(
                steady & (edges[:-1] >= first), float(tail.mean()) if tail.size else math.nan, math.nan
            ),
            "steady": steady & (edges[:-1] >= first),
        }
    ).with_columns(pl.col("level_w").fill_nan(None))
    n = int(robust.size)
    if not steady:
        return _refusal(reason, kind, frame, n)
    if first >= n:
        return _refusal("the run ends within the steps that are left out", Kind.NONE, frame, n)
    tail_s = (stamps[-1] - stamps[first]).total_seconds()
    n_eff = stats.effective_n(tail)
    if tail_s < MIN_TAIL_S or n_eff < MIN_TAIL_N_EFF:
        short = f"steady state would hold {tail_s:.0f} s and {n_eff:.0f} independent readings of {MIN_TAIL_N_EFF:.0f}"
        return _refusal(short, Kind.NONE, frame, n)
    step_s = tail_s / max(tail.size - 1, 1)
    slope, error = (x / step_s for x in _slope(tail))
    start = stamps[first]
    bin_s = (stamps[-1] - stamps[0]).total_seconds() / (edges.size - 1)
    spent = (start - stamps[0]).total_seconds()
    method = "steady state from change points and exponential approach"
    duration = Estimate(spent, max(spent - bin_s, 0.0), spent + bin_s, unit="s", n=n, n_eff=n_eff, method=method)
    drift = Estimate(slope, slope - 1.96 * error, slope + 1.96 * error, unit="W/s", n=tail.size, n_eff=n_eff)
    return Warmup(kind, start, duration, level, drift, reason, frame)
