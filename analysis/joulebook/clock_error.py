"""What an uncertain clock does to an energy: the window slides over the log, and power at its two ends differs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import polars as pl

from joulebook import totals
from joulebook.energy_sum import Energy, floored


def shift_j(power: pl.DataFrame, *, start_utc: datetime, end_utc: datetime, half_s: float) -> float:
    """Return by how much the energy of a window changes when its clock is off by ``half_s``.

    To first order a shift trades time at the start for time at the end, so the change is the shift times the difference
    of the mean powers within it at both ends.

    Parameters
    ----------
    power
        ``device, ts_utc, power_w`` [W], reaching beyond the window where the log does.
    start_utc, end_utc
        The window.
    half_s
        Half width of the offset's interval [s].

    Returns
    -------
    float
        Half width of the energy's interval for this reason [J]; 0 where the log ends at the window.

    Examples
    --------
    >>> from datetime import timezone
    >>> t0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> t = [t0 + timedelta(seconds=s) for s in range(101)]
    >>> ramp = pl.DataFrame({"device": "node", "ts_utc": t, "power_w": [100.0 + s for s in range(101)]})
    >>> round(shift_j(ramp, start_utc=t[20], end_utc=t[80], half_s=2.0))
    120
    """
    if half_s <= 0:
        return 0.0
    ends = [_mean_near(power, at, max(half_s, 1.0)) for at in (start_utc, end_utc)]
    if ends[0] is None or ends[1] is None:
        return 0.0
    return half_s * abs(ends[1] - ends[0])


def _mean_near(power: pl.DataFrame, at: datetime, reach_s: float) -> float | None:
    """Return the summed mean power of the devices around an instant [W], ``None`` where nothing was read there."""
    reach = timedelta(seconds=reach_s)
    near = power.filter(pl.col("ts_utc").is_between(at - reach, at + reach) & pl.col("power_w").is_not_null())
    if near.is_empty():
        return None
    return float(near.group_by("device").agg(pl.col("power_w").mean())["power_w"].sum())


def anywhere_j(power: pl.DataFrame, *, length_s: float) -> tuple[float, float] | None:
    """Return the least and the most energy of windows of one length, wherever in a log they lie.

    Where the clock of a log could not be found, the time of a run in it is not known: any of these windows may be it.

    Parameters
    ----------
    power
        ``device, ts_utc, power_w`` [W] of the whole log; several devices are added.
    length_s
        Length of the window [s].

    Returns
    -------
    tuple of float, or None
        Energies [J]; ``None`` where the log is no longer than the window.

    Examples
    --------
    >>> from datetime import timezone
    >>> t0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> t = [t0 + timedelta(seconds=s) for s in range(101)]
    >>> step = pl.DataFrame({"device": "node", "ts_utc": t, "power_w": [100.0] * 51 + [300.0] * 50})
    >>> anywhere_j(step, length_s=40.0)
    (4000.0, 12000.0)
    """
    whole = totals.series(power)
    at_s = whole["ts_utc"].dt.epoch("us").to_numpy() / 1e6
    if at_s.size < 2 or at_s[-1] - at_s[0] <= length_s:
        return None
    at_s, watts = at_s - at_s[0], whole["power_w"].to_numpy()
    total_j = np.concatenate([[0.0], np.cumsum((watts[1:] + watts[:-1]) / 2 * np.diff(at_s))])
    starts = np.concatenate([at_s[at_s <= at_s[-1] - length_s], [at_s[-1] - length_s]])
    energy_j = np.interp(starts + length_s, at_s, total_j) - np.interp(starts, at_s, total_j)
    return float(energy_j.min()), float(energy_j.max())


def lost_j(
    power: pl.DataFrame, *, length_s: float, energy_j: float | None, lo: float | None, hi: float | None
) -> tuple[float, float]:
    """Return by how much an energy may be less and more [J] where nobody knows which window of a log it is of.

    Least and most of all windows are no better known than the energy itself: that adds to them, and what is returned is a
    part that adds in squares.

    Parameters
    ----------
    power, length_s
        As for :func:`anywhere_j`.
    energy_j, lo, hi
        The energy of the window where it is taken to lie, with its interval [J].

    Examples
    --------
    >>> from datetime import timezone
    >>> t0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> t = [t0 + timedelta(seconds=s) for s in range(101)]
    >>> step = pl.DataFrame({"device": "node", "ts_utc": t, "power_w": [100.0] * 51 + [300.0] * 50})
    >>> lost_j(step, length_s=40.0, energy_j=9000.0, lo=9000.0, hi=9000.0)
    (5000.0, 3000.0)
    """
    reach = None if energy_j is None else anywhere_j(power, length_s=length_s)
    if reach is None or energy_j is None:
        return 0.0, 0.0
    known = [abs(energy_j - (energy_j if end is None else end)) for end in (lo, hi)]
    most = [max(energy_j - reach[0], 0.0), max(reach[1] - energy_j, 0.0)]
    below, above = (math.sqrt(m * m + 2 * m * u) for m, u in zip(most, known, strict=True))
    return below, above


def widened(found: Energy, moved_j: Sequence[tuple[float, float]], *, length_s: float) -> Energy:
    """Return an energy whose intervals hold what its clock leaves open, as a part named ``alignment``.

    Parameters
    ----------
    found
        The energy.
    moved_j
        By how much each row of its frame may be less and more [J]; adds in squares.
    length_s
        Length of the window [s].
    """
    if not any(below or above for below, above in moved_j):
        return found
    below, above = (pl.Series(n, [m[k] for m in moved_j], dtype=pl.Float64) for k, n in enumerate(("below", "above")))
    covered_s = pl.col("covered_s") / pl.max_horizontal("covered_s", pl.lit(1e-9)) * length_s

    def end(value: str, side: str, more: pl.Expr, sign: int) -> pl.Expr:
        return pl.col(value) + sign * ((pl.col(side) - pl.col(value)) ** 2 + more**2).sqrt()

    frame = found.frame.with_columns(below, above).with_columns(
        lo=end("energy_j", "lo", pl.col("below"), -1),
        hi=end("energy_j", "hi", pl.col("above"), 1),
        mean_lo=end("mean_power_w", "mean_lo", pl.col("below") / covered_s, -1),
        mean_hi=end("mean_power_w", "mean_hi", pl.col("above") / covered_s, 1),
    )
    part = pl.DataFrame({"device": found.frame["device"], "part": "alignment", "lo": below, "hi": above})
    return floored(replace(found, frame=frame.drop("below", "above"), parts=pl.concat([found.parts, part])))
