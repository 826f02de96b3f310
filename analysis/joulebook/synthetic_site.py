"""What a made-up site tells: how much carbon its grid emits, hour by hour."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import numpy as np

MIDDAY_LOCAL_H, EVENING_LOCAL_H = 13.0, 19.0
"""Hours at which the sun feeds the grid most, and at which it is missed most."""
SUN_SHARE, EVENING_SHARE = 0.09, 0.03
"""How far the sun lowers and the evening raises the grid's emissions, relative."""


def grid_csv(
    start_utc: datetime, hours: int, *, carbon_kg_per_kwh: float, at_utc: datetime, zone_h: float = 8.0
) -> str:
    """Return the carbon intensity of a grid by hour, as CSV.

    Parameters
    ----------
    start_utc
        Start of the first hour.
    hours
        How many hours.
    carbon_kg_per_kwh
        Intensity in the hour of ``at_utc`` [kg CO2e/kWh].
    at_utc
        Hour in which the intensity is known.
    zone_h
        Hours that the site's clock is ahead of UTC.

    Returns
    -------
    str
        Columns ``hour_utc`` (start of the hour) and ``carbon_kg_per_kwh``.

    Examples
    --------
    >>> from datetime import UTC
    >>> first = datetime(2026, 11, 2, 1, tzinfo=UTC)
    >>> print(grid_csv(first, 1, carbon_kg_per_kwh=0.581, at_utc=first), end="")
    hour_utc,carbon_kg_per_kwh
    2026-11-02T01:00Z,0.581
    """
    known = _shape(at_utc, zone_h)
    stamps = [start_utc + timedelta(hours=h) for h in range(hours)]
    rows = [f"{t:%Y-%m-%dT%H:%MZ},{carbon_kg_per_kwh * _shape(t, zone_h) / known:.3f}" for t in stamps]
    return "\n".join(["hour_utc,carbon_kg_per_kwh", *rows]) + "\n"


def _shape(at_utc: datetime, zone_h: float) -> float:
    """Return the intensity at an hour over its mean."""
    local = at_utc.astimezone(timezone(timedelta(hours=zone_h)))
    sun = np.cos(2.0 * np.pi * (local.hour - MIDDAY_LOCAL_H) / 24.0)
    evening = np.cos(4.0 * np.pi * (local.hour - EVENING_LOCAL_H) / 24.0)
    return float(1.0 - SUN_SHARE * sun + EVENING_SHARE * evening)
