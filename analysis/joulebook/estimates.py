"""Arithmetic with estimates: the interval of a number that is made from others."""

from __future__ import annotations

import math
from collections.abc import Callable

from joulebook.findings import Estimate


def exactly(value: float, unit: str = "") -> Estimate:
    """Return a number that adds no uncertainty: a count, a nameplate, a factor taken as given.

    Examples
    --------
    >>> exactly(1.3).lo is None
    True
    """
    return Estimate(value, unit=unit)


def combine(function: Callable[..., float], *inputs: Estimate, unit: str = "", method: str = "") -> Estimate:
    """Return a function of estimates, with an interval from theirs, taken as independent.

    Each input in turn is put at its ends while the others stay, and what that does to the result is added in squares,
    up and down apart: exact for sums, and right to first order else, also where intervals are lopsided.

    Parameters
    ----------
    function
        Takes as many numbers as there are inputs.
    inputs
        Estimates; one without interval is taken as exact, a refused one refuses the result.
    unit, method
        Of the result.

    Returns
    -------
    Estimate
        ``n`` is the least of the inputs'. Without interval where an input is open on one side.

    Examples
    --------
    >>> half = combine(lambda a, b: a - b, Estimate(10.0, 7.0, 13.0), Estimate(2.0, -2.0, 6.0))
    >>> half.value, half.lo, half.hi
    (8.0, 3.0, 13.0)
    """
    for e in inputs:
        if e.value is None:
            return Estimate.refused(e.reason or "an input was refused", unit=unit, n=e.n, method=method)
    values = [e.value for e in inputs if e.value is not None]
    try:
        value = function(*values)
    except ZeroDivisionError:
        return Estimate.refused("division by zero", unit=unit, method=method)
    below, above, bounded, exact = 0.0, 0.0, True, True
    for i, e in enumerate(inputs):
        if e.lo is None and e.hi is None:
            continue
        exact = False
        if e.lo is None or e.hi is None:
            bounded = False
            continue
        try:
            moved = [function(*values[:i], end, *values[i + 1 :]) - value for end in (e.lo, e.hi)]
        except ZeroDivisionError:
            bounded = False
            continue
        below += min(0.0, *moved) ** 2
        above += max(0.0, *moved) ** 2
    counts = [e.n for e in inputs if e.n is not None]
    reasons = "; ".join(dict.fromkeys(e.reason for e in inputs if e.reason))
    lo, hi = (None, None) if exact or not bounded else (value - math.sqrt(below), value + math.sqrt(above))
    return Estimate(value, lo, hi, unit=unit, n=min(counts, default=None), method=method, reason=reasons)


def scaled(estimate: Estimate, factor: float, *, unit: str = "", method: str = "") -> Estimate:
    """Return an estimate times an exact factor.

    Examples
    --------
    >>> str(scaled(Estimate(3.6e6, 3.5e6, 3.7e6, unit="J"), 1 / 3.6e6, unit="kWh"))
    '1.000 [0.972, 1.028] kWh'
    """
    return combine(lambda v: v * factor, estimate, unit=unit or estimate.unit, method=method or estimate.method)
