"""Whether a column of energies counts on or gives each interval its own, and how long an interval is."""

from __future__ import annotations

import re

import polars as pl

CLOCK_GRID_S = 300
"""Interval data of utilities stand on whole five minutes of the clock; free-running loggers do not."""

LEAST_STEPS = 3
"""One lost line doubles a step; fewer steps do not show what is usual."""

SAME_STEP_SHARE = 0.8
"""From this share of equal steps on, the step is the interval and a longer one is a hole."""


NEAR_ZERO_SHARE = 0.05
"""A register that starts again falls to less than this share of what it read before."""

SMALL_STEPS = 4.0
"""A register reads at least so many of its steps before it is taken for one by its fall alone."""

MOST_RISES = 51
"""No load rises so often without a fall."""

FEWEST_RISES = 10
"""Rises without a fall that may be a register's where their size is one's as well."""

REGISTER, RAMP = 3.0, 10.0
"""A register that ran before shows so many times what it adds; one that began at nothing ends at so many times its first reading."""

FAR_MORE = 100.0
"""An energy of so many times what the power beside it draws in a step is no interval's."""

ABOUT = 2.0
"""Within this factor of it, it is."""

_BARE = re.compile(r"(?:energy)?[\s_,]*[\[(]?(?:k?wh)?[\])]?")
"""A title that says no more than that the column is an energy, and in which unit."""


def is_bare(title: str) -> bool:
    """Tell whether the title of an energy is nothing but the word for it and a unit.

    Examples
    --------
    >>> is_bare("Energy (kWh)"), is_bare("kWh"), is_bare("Total energy (kWh)")
    (True, True, False)
    """
    return bool(title.strip()) and _BARE.fullmatch(title.strip().casefold()) is not None


def counting(values: pl.Series, stamps: pl.Series, title_says: str, *, beside_power: bool, bare_title: bool) -> str:
    """Return ``counter``, ``interval`` or ``""`` where nothing decides.

    Parameters
    ----------
    values
        Energies in order of lines.
    stamps
        Their times, UTC.
    title_says
        ``counter`` or ``interval`` where the title says so.
    beside_power
        The table has a power as well.
    bare_title
        The title is nothing but a unit or the word for energy.
    """
    if not stamps.drop_nulls().is_sorted():  # lines out of order are no falls of a register
        in_time = stamps.arg_sort(nulls_last=True)
        values, stamps = values.gather(in_time), stamps.gather(in_time)
    known = values.drop_nulls()
    steps = known.diff().drop_nulls()
    falls = int((steps < 0).sum())
    if falls > max(1, len(steps) // 20):
        return "interval"
    if title_says:
        # "Energy used" and "consumption" head registers as well as intervals: numbers that climb and climb decide.
        return "counter" if title_says == "interval" and _climbs(known, stamps) else title_says
    if len(known) < 3:
        return ""
    rises = int((steps > 0).sum())
    if (beside_power and rises) or (falls and _starts_again(known)):
        return "counter"
    first, climbed = float(known[0]), float(known[-1]) - float(known[0])
    if rises >= MOST_RISES or (rises and climbed > 0 and first > REGISTER * climbed):
        return "counter" if not (_on_grid(stamps) and bare_title and rises < MOST_RISES) else _of_utility(known)
    return "interval" if _on_grid(stamps) and bare_title else ""


def beside_power(energy_j: pl.Series, power_w: pl.Series, stamps: pl.Series) -> str:
    """Return ``counter``, ``interval`` or ``""`` from the power that the same rows tell.

    Energies of intervals are about power times step. A register of coarse steps that did not move in a short log shows far
    more; one that stands at next to nothing shows nothing.

    Parameters
    ----------
    energy_j, power_w
        Energies [J] and powers [W] in order of lines.
    stamps
        Their times, UTC.

    Examples
    --------
    >>> from datetime import datetime
    >>> stamps = pl.Series([datetime(2026, 3, 1, 0, 0, s) for s in range(5)])
    >>> beside_power(pl.Series([1234 * 3.6e6] * 5), pl.Series([400.0] * 5), stamps)
    'counter'
    >>> beside_power(pl.Series([400.0] * 5), pl.Series([400.0] * 5), stamps)
    'interval'
    """
    step_s = stamps.diff().drop_nulls().dt.total_microseconds().median()
    shown, watts = energy_j.median(), power_w.median()
    if not (isinstance(step_s, float) and isinstance(shown, float) and isinstance(watts, float)):
        return ""
    drawn = watts * step_s / 1e6
    if not (drawn > 0 and shown > 0):
        return ""
    if shown > FAR_MORE * drawn:
        return "counter"
    return "interval" if 1 / ABOUT < shown / drawn < ABOUT else ""


def _climbs(known: pl.Series, stamps: pl.Series) -> bool:
    """Tell whether energies only climb: fifty times, or at every line by far more, or far less, than a load would."""
    steps = known.diff().drop_nulls()
    rises = int((steps > 0).sum())
    if bool((steps < 0).any()):
        return False
    if rises >= MOST_RISES:
        return True
    if rises < FEWEST_RISES or rises < len(steps) or _on_grid(stamps):
        return False
    first, last = float(known[0]), float(known[-1])
    return first > REGISTER * (last - first) or last > RAMP * first


def _starts_again(known: pl.Series) -> bool:
    """Tell whether energies climb in small steps, fall to next to nothing and climb on: a register that was reset or wrapped."""
    steps = known.diff()
    falls = [int(i) for i in (steps < 0).fill_null(value=False).arg_true()]
    before, after = known.gather([i - 1 for i in falls]), known.gather(falls)
    climbs = steps.filter(steps > 0)
    if falls[0] < LEAST_STEPS or climbs.is_empty() or not bool((after <= NEAR_ZERO_SHARE * before).all()):
        return False
    # Energies of intervals that happen to climb do so by shares of themselves.
    return float(known[0]) > SMALL_STEPS * float(climbs.max())  # pyrefly: ignore[bad-argument-type]


def _of_utility(known: pl.Series) -> str:
    """Tell a register from intervals in a table on the clock's grid: a register shows a hundred times what it adds."""
    step = float(known.diff().drop_nulls().abs().mean() or 0.0)  # pyrefly: ignore[bad-argument-type]
    return "counter" if float(known[0]) > 100.0 * step else "interval"


def _on_grid(stamps: pl.Series) -> bool:
    us = stamps.drop_nulls().to_physical().cast(pl.Int64)
    return bool(len(us)) and bool((us % (CLOCK_GRID_S * 1_000_000) == 0).all())


def interval_s(stamps: pl.Series) -> float | None:
    """Return the length of an interval [s]: the step that most stamps keep; ``None`` where none does.

    Examples
    --------
    >>> from datetime import datetime
    >>> interval_s(pl.Series([datetime(2026, 3, 1, h) for h in (0, 1, 2, 4, 5, 6, 7, 8)]))
    3600.0
    """
    us = stamps.drop_nulls().to_physical().cast(pl.Int64).unique().sort()
    steps = us.diff().drop_nulls()
    if len(steps) < LEAST_STEPS:
        return None
    usual = int(str(steps.mode().min()))
    return usual / 1e6 if float((steps == usual).mean() or 0.0) >= SAME_STEP_SHARE else None  # pyrefly: ignore[bad-argument-type]
