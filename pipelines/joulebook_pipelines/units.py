"""Numbers for people: kWh and kW where they read better, as many digits as the interval deserves."""

from __future__ import annotations

import math

KWH_J = 3.6e6


def energy(value_j: float | None, lo_j: float | None = None, hi_j: float | None = None) -> str:
    """Return an energy in kWh, Wh or J with the half width of its interval, or its whole range where that is lopsided.

    Examples
    --------
    >>> energy(6_274_800.0, 6_231_600.0, 6_318_000.0)
    '1.743 ± 0.012 kWh'
    """
    if value_j is None:
        return "–"
    size = abs(value_j)
    scale, unit = (KWH_J, "kWh") if size >= 1e5 else (3.6e3, "Wh") if size >= 3.6e3 else (1.0, "J")
    return with_interval(
        value_j / scale, None if lo_j is None else lo_j / scale, None if hi_j is None else hi_j / scale, unit
    )


def with_interval(value: float, lo: float | None, hi: float | None, unit: str) -> str:
    """Return a number with its interval and unit; two digits of the half width decide how many are shown."""
    if lo is None or hi is None or not math.isfinite(hi - lo):
        return f"{value:.4g} {unit}".strip()
    half = (hi - lo) / 2
    digits = decimals(half, value)
    lopsided = half > 0 and abs((hi + lo) / 2 - value) > 0.2 * half
    if lopsided:
        return f"{value:.{digits}f} [{lo:.{digits}f}, {hi:.{digits}f}] {unit}".strip()
    return f"{value:.{digits}f} ± {half:.{digits}f} {unit}".strip()


def decimals(half: float, value: float) -> int:
    """Return how many decimals a number with that half width deserves."""
    if half > 0:
        return max(0, 1 - math.floor(math.log10(half)))
    return max(0, 4 - math.floor(math.log10(abs(value)))) if value else 0
