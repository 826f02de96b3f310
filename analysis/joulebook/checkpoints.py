"""How often to save: the interval that wastes least, from the measured cost of a save and the failure rate."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import polars as pl

from joulebook.findings import Estimate, Finding, Severity

FLAT_SHARE = 0.3
"""Deviation from the best interval for which the extra waste is stated [1]."""

CURVE_POINTS = 61
"""Points of the waste curve, evenly spaced in log from an eighth to eight times the best interval."""


@dataclass(frozen=True)
class Interval:
    """Best time between saves.

    Parameters
    ----------
    frame
        Waste curve: ``interval_s``, ``waste_ratio`` (saving and repeating over useful time).
    young_s, daly_s
        Best interval by Young and with Daly's refinement [s]; refused where a save takes more than half of the mean
        time between failures.
    waste
        Least waste [1].
    flat_ratio
        Extra waste at an interval 30 % off the best, over the least waste [1].
    statement
        The same in words.
    findings
        Whether the interval in use is far from the best.
    """

    frame: pl.DataFrame
    young_s: Estimate
    daly_s: Estimate
    waste: Estimate
    flat_ratio: float | None
    statement: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Observed:
    """Saves of a run: mean time of one, mean time between starts, and how many.

    Parameters
    ----------
    frame
        ``start_utc``, ``end_utc``, ``seconds``.
    save_s
        Mean time of a save [s].
    interval_s
        Mean time from start to start [s].
    """

    frame: pl.DataFrame
    save_s: Estimate
    interval_s: Estimate


def best_interval(save_s: float, mtbf_s: float, *, in_use_s: float | None = None) -> Interval:
    """Return the checkpoint interval that wastes least.

    Parameters
    ----------
    save_s
        Time that one save keeps the accelerators from work [s].
    mtbf_s
        Mean time between failures of the whole job [s].
    in_use_s
        Interval in use [s], to be compared.

    Returns
    -------
    Interval
        Young's and Daly's interval, waste curve, how flat it is.

    Raises
    ------
    ValueError
        A time is not positive.

    References
    ----------
    Young 1974, doi:10.1145/361147.361115. Daly 2006, doi:10.1016/j.future.2004.11.016.

    Examples
    --------
    >>> best = best_interval(60, 24 * 3600)
    >>> round(best.young_s.value), round(best.daly_s.value)
    (3220, 3180)
    """
    for name, value in (("save_s", save_s), ("mtbf_s", mtbf_s), ("in_use_s", 1.0 if in_use_s is None else in_use_s)):
        if not (value > 0 and math.isfinite(value)):
            raise ValueError(f"{name} is {value}: must be positive and finite")
    if save_s > mtbf_s / 2:
        why = f"one save ({save_s:g} s) takes more than half of the mean time between failures ({mtbf_s:g} s)"
        no = Estimate.refused(why, unit="s")
        finding = Finding("checkpoint-too-slow", Severity.ERROR, "checkpoints",
                          f"No interval works: {why}. Save less, faster, or asynchronously.", {})  # fmt: skip
        empty = pl.DataFrame(schema={"interval_s": pl.Float64, "waste_ratio": pl.Float64})
        return Interval(empty, no, no, Estimate.refused(why), None, why, (finding,))
    young = math.sqrt(2 * save_s * mtbf_s)
    part = math.sqrt(save_s / (2 * mtbf_s))
    daly = young * (1 + part / 3 + part**2 / 9) - save_s
    grid = young * np.geomspace(1 / 8, 8, CURVE_POINTS)
    curve = pl.DataFrame({"interval_s": grid, "waste_ratio": waste_ratio(grid, save_s=save_s, mtbf_s=mtbf_s)})
    least = save_s / young + young / (2 * mtbf_s)
    off = max(_excess(1 - FLAT_SHARE), _excess(1 + FLAT_SHARE))
    words = f"flat: +-{FLAT_SHARE:.0%} of the interval costs less than {off * least:.2%} of the run's time"
    return Interval(
        curve, Estimate(young, unit="s", method="Young"), Estimate(daly, unit="s", method="Daly"),
        Estimate(least, method="d/tau + tau/2M"), off, words, _compared(in_use_s, young, least),
    )  # fmt: skip


def waste_ratio(interval_s: np.ndarray, *, save_s: float, mtbf_s: float) -> np.ndarray:
    """Return the time for saves and for work lost to failures over useful time: d/τ + τ/2M.

    Parameters
    ----------
    interval_s
        Intervals [s].
    save_s, mtbf_s
        Time of a save and mean time between failures [s].

    Returns
    -------
    ndarray
        Waste [1].

    Examples
    --------
    >>> waste_ratio(np.array([3600.0]), save_s=60, mtbf_s=86400).round(4).tolist()
    [0.0375]
    """
    return save_s / interval_s + interval_s / (2 * mtbf_s)


def observed(phases: pl.DataFrame, *, phase: str = "checkpoint") -> Observed:
    """Measure saves in a phase log.

    Parameters
    ----------
    phases
        Columns ``phase``, ``start_utc``, ``end_utc`` of one run.
    phase
        Name of the phase that saves.

    Returns
    -------
    Observed
        Time of a save and time between saves, refused with fewer than two saves.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(minutes=m) for m in (0, 10, 20)]
    >>> marks = pl.DataFrame({"phase": "checkpoint", "start_utc": t, "end_utc": [x + timedelta(seconds=15) for x in t]})
    >>> observed(marks).interval_s.value
    600.0
    """
    saves = (
        phases.filter(pl.col("phase") == phase)
        .sort("start_utc")
        .select("start_utc", "end_utc", seconds=(pl.col("end_utc") - pl.col("start_utc")).dt.total_microseconds() / 1e6)
    )
    between = saves.select(pl.col("start_utc").diff().dt.total_microseconds() / 1e6).to_series().drop_nulls()
    return Observed(saves, _mean(saves["seconds"]), _mean(between))


def _mean(values: pl.Series) -> Estimate:
    """Return a mean with its interval."""
    n = len(values)
    if n == 0:
        return Estimate.refused("too few saves", unit="s", n=n)
    mean = float(values.to_numpy().mean())
    half = 1.96 * float(values.to_numpy().std(ddof=1)) / math.sqrt(n) if n > 1 else None
    return Estimate(mean, None if half is None else mean - half, None if half is None else mean + half,
                    unit="s", n=n, method="mean")  # fmt: skip


def _excess(ratio: float) -> float:
    """Return the extra waste at a multiple of the best interval, over the least waste."""
    return (ratio + 1 / ratio) / 2 - 1


def _compared(in_use_s: float | None, best_s: float, least: float) -> tuple[Finding, ...]:
    if in_use_s is None or abs(in_use_s / best_s - 1) <= FLAT_SHARE:
        return ()
    extra = _excess(in_use_s / best_s) * least
    more = "longer" if in_use_s < best_s else "shorter"
    return (Finding(
        "checkpoint-interval", Severity.NOTE, "checkpoints",
        f"Saves come every {in_use_s:.0f} s, {best_s:.0f} s would waste least: a {more} interval gives back "
        f"{extra:.1%} of the run's time, and so of its energy.",
        {"in_use_s": in_use_s, "best_s": best_s, "extra_ratio": extra},
    ),)  # fmt: skip
