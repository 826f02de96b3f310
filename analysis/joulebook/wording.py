"""Numbers in sentences."""

from __future__ import annotations


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural where it is not one.

    Parameters
    ----------
    n
        How many.
    noun
        A noun with a regular plural, in the singular.

    Examples
    --------
    >>> counted(1, "place"), counted(3, "place")
    ('1 place', '3 places')
    """
    return f"{n} {noun}{'' if n == 1 else 's'}"


def lasting(seconds: float, *, digits: int = 4) -> str:
    """Return a length of time in the unit in which people think of it.

    Parameters
    ----------
    seconds
        The length [s].
    digits
        Digits of what is told in seconds.

    Examples
    --------
    >>> lasting(0.0384), lasting(217.452), lasting(28998.0), lasting(9.21874e7)
    ('0.0384 s', '217.5 s', '8.05 h', '1067 days')
    """
    for limit, unit_s, unit in ((1e3, 1.0, "s"), (7200.0, 60.0, "min"), (172_800.0, 3600.0, "h")):
        if abs(seconds) < limit:
            return f"{seconds / unit_s:.{digits if unit == 's' else 3}g} {unit}"
    return f"{seconds / 86_400.0:.{1 if abs(seconds) < 864_000.0 else 0}f} days"


def energy(joules: float, *, beside: float | None = None) -> str:
    """Return an energy in the unit in which people read it, with the digits that a sentence needs.

    Parameters
    ----------
    joules
        The energy [J].
    beside
        Another one [J] that it is compared with: both have its unit.

    Examples
    --------
    >>> energy(5.546), energy(5616.0), energy(5.652e8), energy(41400.0, beside=2490.0)
    ('5.546 J', '1.56 Wh', '157 kWh', '41400 J')
    """
    size = abs(joules if beside is None else beside)
    unit_j, unit, digits = 3.6e6, "kWh", 4 if size >= 3.6e9 else 3
    if size < 3.6e6:
        unit_j, unit, digits = (1.0, "J", 4) if size < 3.6e3 else (3.6e3, "Wh", 3)
    value = joules / unit_j
    return f"{value:.{digits}g} {unit}" if abs(value) < 10.0**digits else f"{value:.0f} {unit}"
