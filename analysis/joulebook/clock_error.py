"""What an uncertain clock does to an energy: the window slides over the log, and power at its two ends differs."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl


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
