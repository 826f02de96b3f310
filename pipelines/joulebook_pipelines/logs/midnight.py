"""Times of day in the order of a file: each that falls back by half a day begins another day."""

from __future__ import annotations

from datetime import timedelta

import polars as pl

HALF_DAY_US = 43_200_000_000
"""A time of day that falls back by more has passed midnight; by less, the clock was set back."""


class Days:
    """Counts the days that times of day have passed, block by block.

    Examples
    --------
    >>> from datetime import datetime
    >>> days, day = Days(), datetime(2026, 3, 2)
    >>> days.over(pl.Series([day.replace(hour=23), None, day.replace(hour=1)], dtype=pl.Datetime("us")))[2]
    datetime.datetime(2026, 3, 3, 1, 0)
    >>> days.over(pl.Series([day.replace(hour=2)], dtype=pl.Datetime("us")))[0]
    datetime.datetime(2026, 3, 3, 2, 0)
    """

    def __init__(self) -> None:
        self._last_us: int | None = None
        self._passed = 0

    def over(self, naive: pl.Series) -> pl.Series:
        """Return moments that all lie on the day of the first, in the order of the file, on the days that they were on."""
        us = naive.to_physical().cast(pl.Int64).forward_fill()
        before = us.shift(1, fill_value=self._last_us).fill_null(pl.lit(self._last_us, pl.Int64))
        passed = ((us - before) < -HALF_DAY_US).fill_null(value=False).cast(pl.Int64).cum_sum() + self._passed
        if len(us) and us[-1] is not None:
            self._last_us, self._passed = int(us[-1]), int(passed[-1])
        return naive + passed * timedelta(days=1)
