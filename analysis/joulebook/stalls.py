"""Stretches in which a job waits: power falls to a lower level, and whether that comes back like a clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from joulebook import stall_edges, totals
from joulebook.findings import Estimate, Finding, Severity
from joulebook.phase_timeline import Floats
from joulebook.stall_levels import MIN_EVENTS, levels, regular
from joulebook.wording import lasting

MIN_SEPARATION = 3.0
"""Distance of two levels over their pooled standard deviation that makes them two [1]."""

STALL_RATIO = 0.6
"""A dip to less than this share of the busy level is a stall [1]; stalled boards draw 30 to 50 % of their peak."""

STALL_ABOVE_IDLE = 0.5
"""... or to less than this share of what the busy level is above idle [1]: a node's fans, disks and supplies never stall."""

HYSTERESIS = 0.05
"""Dead band around the threshold as a share of the distance of the levels [1]."""

MIN_READINGS = 2
"""A dip has at least so many readings [1]."""

MANY_SINGLES = 4
"""From so many deep dips of a single reading on they are stalls that are too short to be measured [1]."""

SINGLE_SHARE = 0.25
"""Share of the dips that may be of a single reading before the energy of all is refused [1]."""

BUSY_UTILIZATION = 0.5
"""A dip at a higher utilisation than this is no stall [1]: the power fell for another reason."""

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "start_utc": pl.Datetime("us", "UTC"), "end_utc": pl.Datetime("us", "UTC"), "seconds": pl.Float64, "n": pl.Int64,
    "mean_w": pl.Float64, "utilization_ratio": pl.Float64, "kind": pl.String,
}  # fmt: skip


@dataclass(frozen=True)
class Stalls:
    """Dips of a job's power.

    Parameters
    ----------
    frame
        One row a dip: ``start_utc``, ``end_utc``, ``seconds``, ``n``, ``mean_w``, ``utilization_ratio``, ``kind``
        (``stall`` below 60 % of the busy level or half-way to idle, ``idle`` where it is as deep but lies before or after the work, else
        ``dip``).
    busy_w, stall_w
        Mean of the two levels, summed over devices [W]; refused where there is one level only.
    energy
        Drawn during stalls [J]: ``stall_energy_j``.
    above_idle
        The part of it above idle power [J]; refused without an idle level.
    lost
        Stalled time at busy power [J]: what the same time would have cost at work.
    seconds
        Stalled time [s].
    period
        Mean time between starts [s]; refused where dips come at random or are few.
    findings
        Starvation, idle time at the edges and the like.
    """

    frame: pl.DataFrame
    busy_w: Estimate
    stall_w: Estimate
    energy: Estimate
    above_idle: Estimate
    lost: Estimate
    seconds: Estimate
    period: Estimate
    findings: tuple[Finding, ...]


def find(
    power: pl.DataFrame,
    *,
    idle_w: float | None = None,
    min_stall_s: float | None = None,
    marks: pl.DataFrame | None = None,
) -> Stalls:
    """Find stalls in the power of one running job.

    Parameters
    ----------
    power
        Columns ``device``, ``ts_utc``, ``power_w``, optionally ``utilization_ratio``; one scope, one run, warm-up
        left out. Devices are summed tick by tick.
    idle_w
        Power of the idle machine, summed over devices [W].
    min_stall_s
        Shortest stall of interest [s]; refused where sampling is slower than half of it.
    marks
        Known intervals, e.g. checkpoints: ``phase``, ``start_utc``, ``end_utc``. A dip whose middle lies in one has the
        phase as its kind and is no stall.

    Returns
    -------
    Stalls
        Dips, energies, period.

    References
    ----------
    Mohan et al. 2021, arXiv:2007.06775. Otsu 1979, doi:10.1109/TSMC.1979.4310076.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=s) for s in range(600)]
    >>> watts = [120.0 if s % 60 < 5 else 400.0 for s in range(600)]
    >>> found = find(pl.DataFrame({"device": "gpu:0", "ts_utc": t, "power_w": watts}))
    >>> found.frame.height, round(found.period.value)
    (10, 60)
    """
    ticks, period = _ticks(power)
    if ticks.height < 20:
        return none(f"too few readings ({ticks.height}) to find two levels")
    if min_stall_s is not None and period > min_stall_s / 2:
        return none(f"readings are {period:.3g} s apart: stalls of {min_stall_s:.3g} s may fall between them")
    watts = ticks["power_w"].to_numpy()
    low, high, threshold, separation = levels(watts)
    if separation < MIN_SEPARATION:
        return none(f"one level of power: the best two are {separation:.2g} standard deviations apart")
    below = _below(watts, threshold - HYSTERESIS * (high - low) / 2, threshold + HYSTERESIS * (high - low) / 2)
    limit_w = max(STALL_RATIO * high, 0.0 if idle_w is None else idle_w + STALL_ABOVE_IDLE * (high - idle_w))
    frame = stall_edges.told_apart(_events(ticks, below, (low + high) / 2, limit_w), *_ends(ticks))
    if marks is not None and not marks.is_empty():
        frame = _marked(frame, marks)
    priced = _priced(frame, high, idle_w=idle_w, n=ticks.height, period=_period(frame.filter(pl.col("kind") != "idle")))
    priced = replace(priced, findings=priced.findings + stall_edges.findings(frame, *_ends(ticks), busy_w=high))
    short = _too_short(watts, below, high, period)
    if not short:
        return priced
    joules = Estimate.refused(short, unit="J", n=frame.height)
    seconds = Estimate.refused(short, unit="s", n=frame.height)
    return replace(priced, energy=joules, above_idle=joules, lost=joules, seconds=seconds)


def _too_short(watts: Floats, below: NDArray[np.bool_], busy_w: float, period: float) -> str:
    """Return why the length of the dips is unknown: many are of a single reading, so that others fall between two."""
    edge = np.diff(np.concatenate([[False], below, [False]]).astype(np.int8))
    a, b = np.flatnonzero(edge == 1), np.flatnonzero(edge == -1)
    single = int(np.count_nonzero((b - a < MIN_READINGS) & (watts[a] < STALL_RATIO * busy_w)))
    if single < max(MANY_SINGLES, SINGLE_SHARE * len(a)):
        return ""
    return f"{single} of {len(a)} dips are a single reading: stalls may be too short for readings {period:.3g} s apart"


def _ticks(power: pl.DataFrame) -> tuple[pl.DataFrame, float]:
    """Sum devices tick by tick; ticks that lack a device are left out."""
    load = pl.col("utilization_ratio") if "utilization_ratio" in power.columns else pl.lit(None, pl.Float64)
    power = power.select("device", "ts_utc", "power_w", load.alias("utilization_ratio"))
    finite = power["power_w"].is_finite()
    # A filter would write out the name of a device for every reading.
    kept = power if finite.null_count() == 0 and finite.all() else power.filter(finite)
    devices = totals.in_time([rows for _, rows in totals.by_device(kept)])
    period = totals.median_step_s(devices)
    if period <= 0:
        return kept.head(0), 0.0
    first = min(int(d["ts_utc"].dt.timestamp("us")[0]) for d in devices)
    slots = [np.floor((d["ts_utc"].dt.timestamp("us").to_numpy() - first) / (1e6 * period) + 0.25) for d in devices]
    return totals.by_tick(devices, [slot.astype(np.int64) for slot in slots]), period


@njit(cache=True, nogil=True)
def _below(watts: Floats, enter: float, leave: float) -> NDArray[np.bool_]:
    """Return which readings are in the lower state, with a dead band."""
    out = np.zeros(len(watts), dtype=np.bool_)
    state = watts[0] < enter
    for i in range(len(watts)):
        if state and watts[i] > leave:
            state = False
        elif not state and watts[i] < enter:
            state = True
        out[i] = state
    return out


def _events(ticks: pl.DataFrame, below: NDArray[np.bool_], half_w: float, limit_w: float) -> pl.DataFrame:
    """Return the dips, with edges where power crosses the middle between the levels."""
    t = ((ticks["ts_utc"] - ticks["ts_utc"][0]).dt.total_microseconds() / 1e6).to_numpy()
    y, use = ticks["power_w"].to_numpy(), ticks["utilization_ratio"].cast(pl.Float64).to_numpy()
    edge = np.diff(np.concatenate([[False], below, [False]]).astype(np.int8))
    a, b = np.flatnonzero(edge == 1), np.flatnonzero(edge == -1) - 1
    keep = b - a + 1 >= MIN_READINGS
    a, b = a[keep], b[keep]
    start = _crossing(t, y, np.maximum(a - 1, 0), a, half_w)
    end = _crossing(t, y, b, np.minimum(b + 1, len(t) - 1), half_w)
    deep = np.concatenate([[0.0], np.cumsum(y)])
    inner = b - a >= 2
    lo, hi = np.where(inner, a + 1, a), np.where(inner, b - 1, b)
    mean = (deep[hi + 1] - deep[lo]) / (hi - lo + 1)
    mean = np.where(inner, mean, np.minimum(y[a], y[b]))  # of two readings both may be mixed: the lower one less so
    used = np.concatenate([[0.0], np.cumsum(np.nan_to_num(use, nan=0.0))])
    ratio = np.where(np.isfinite(use[a]), (used[b + 1] - used[a]) / (b - a + 1), np.nan)
    idle = ~(ratio > BUSY_UTILIZATION)
    frame = pl.DataFrame({
        "a": start, "b": end, "seconds": np.maximum(end - start, 0.0), "n": b - a + 1, "mean_w": mean,
        "utilization_ratio": pl.Series(ratio, dtype=pl.Float64).fill_nan(None),
        "kind": np.where((mean < limit_w) & idle, "stall", "dip").astype(object),
    }, schema_overrides={"kind": pl.String, "n": pl.Int64})  # fmt: skip
    first = ticks["ts_utc"][0]
    return frame.with_columns(
        start_utc=(pl.lit(first) + pl.duration(microseconds=(pl.col("a") * 1e6).round())).cast(SCHEMA["start_utc"]),
        end_utc=(pl.lit(first) + pl.duration(microseconds=(pl.col("b") * 1e6).round())).cast(SCHEMA["start_utc"]),
    ).select(pl.col(c).cast(t) for c, t in SCHEMA.items())


def _ends(ticks: pl.DataFrame) -> tuple[datetime, datetime]:
    """Return the first and the last stamp."""
    return ticks["ts_utc"][0], ticks["ts_utc"][-1]


def _marked(frame: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Give dips inside of a known interval its name."""
    known = marks.select("phase", pl.col("start_utc").alias("middle"), pl.col("end_utc").alias("until")).sort("middle")
    return (
        frame.with_columns(middle=pl.col("start_utc") + (pl.col("end_utc") - pl.col("start_utc")) / 2)
        .sort("middle")
        .join_asof(known, on="middle")
        .with_columns(kind=pl.when(pl.col("middle") < pl.col("until")).then("phase").otherwise("kind"))
        .select(SCHEMA.keys())
    )


def _crossing(t: Floats, y: Floats, i: NDArray[np.int64], j: NDArray[np.int64], level: float) -> Floats:
    """Return when power passes a level between two readings."""
    rise = np.where(y[j] == y[i], 1.0, y[j] - y[i])
    return np.where(i == j, t[i], t[i] + np.clip((level - y[i]) / rise, 0, 1) * (t[j] - t[i]))


def _period(frame: pl.DataFrame) -> Estimate:
    """Return the mean time between dips, where they come like a clock."""
    n = frame.height
    if n < MIN_EVENTS:
        return Estimate.refused(f"too few dips ({n}) to speak of a period", unit="s", n=n)
    zero = frame["start_utc"][0]
    starts, ends = (((frame[c] - zero).dt.total_microseconds() / 1e6).to_numpy() for c in ("start_utc", "end_utc"))
    even, cv, mean = regular(starts, ends)
    if not even:
        return Estimate.refused(f"gaps vary by {cv:.2f} of their mean, as at random", unit="s", n=n)
    half = 1.96 * cv * mean / np.sqrt(n - 1)
    return Estimate(mean, mean - half, mean + half, unit="s", n=n, method="evenness of gaps")


def _priced(frame: pl.DataFrame, busy_w: float, *, idle_w: float | None, n: int, period: Estimate) -> Stalls:
    """Put joules to stalls."""
    stalls = frame.filter(pl.col("kind") == "stall")
    how, count = "two levels with a dead band", stalls.height
    seconds = float(stalls["seconds"].sum())
    watts_w = stalls["mean_w"].to_numpy()
    level = float(watts_w @ stalls["seconds"].to_numpy() / seconds) if seconds > 0 else 0.0
    spread = float(np.std(watts_w, ddof=1)) if count > 1 else 0.0
    part = 1.96 * (spread / max(level, 1e-9)) / np.sqrt(max(count, 1)) if level else 0.0
    edge = 1.96 * np.sqrt(count / 6) * (seconds / max(float(stalls["n"].sum() or 1), 1.0))

    def joules(watts: float) -> Estimate:
        value, half = seconds * watts, abs(watts) * edge + abs(seconds * watts) * part
        return Estimate(value, max(value - half, 0.0), value + half, unit="J", n=count, method=how)

    above = Estimate.refused("no idle level", unit="J", n=count) if idle_w is None else joules(level - idle_w)
    found: tuple[Finding, ...] = ()
    if count >= MIN_EVENTS and period.value is not None:
        found = (Finding(
            "periodic-stalls", Severity.WARNING, "stalls",
            f"Power falls to {level:.0f} W for {lasting(seconds / count, digits=3)} every {lasting(period.value, digits=3)}: look for "
            "a data loader that starves, or for checkpoints and evaluation at that interval.",
            {"period_s": period.value, "stalls": count, "stall_w": level, "busy_w": busy_w},
        ),)  # fmt: skip
    watts = Estimate(level, unit="W", n=count, method=how) if count else Estimate.refused("no stall", unit="W")
    return Stalls(
        frame, Estimate(busy_w, unit="W", n=n, method=how), watts, joules(level), above, joules(busy_w),
        Estimate(seconds, max(seconds - edge, 0), seconds + edge, unit="s", n=count, method=how), period, found,
    )  # fmt: skip


def none(reason: str) -> Stalls:
    """Return the answer where stalls are not to be seen, with why."""
    w, j, s = (Estimate.refused(reason, unit=u) for u in ("W", "J", "s"))
    return Stalls(pl.DataFrame(schema=SCHEMA), w, w, j, j, j, s, s, ())
