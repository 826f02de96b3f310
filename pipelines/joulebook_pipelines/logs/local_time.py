"""The stamps of a file as UTC, without ever guessing a zone.

Local hours that come twice are told apart by the order of the lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from zoneinfo import ZoneInfo

import polars as pl

from joulebook_pipelines.logs import stamps
from joulebook_pipelines.logs.contract import Log, LogRefusedError
from joulebook_pipelines.logs.stamps import StampForm


def form(log: Log, samples: Sequence[str]) -> StampForm:
    """Return the form of the stamps of a file, from some of them.

    Raises
    ------
    LogRefusedError
        Day and month cannot be told apart, or the stamps have no known form.
    """
    try:
        return stamps.detect(samples, day_first=log.options.day_first)
    except stamps.StampError as error:
        raise LogRefusedError(f"{log.name}: {error}") from None


def localiser(log: Log, form: StampForm, line: int, sample: str) -> Localiser:
    """Return what turns the stamps of a file into UTC.

    Parameters
    ----------
    log
        The file; study.toml may say its zone, or its offset from UTC.
    form
        How the stamps are written.
    line, sample
        The physical line of the first stamp, and that stamp, for the message.

    Raises
    ------
    LogRefusedError
        The stamps carry no offset and nobody says their zone.
    """
    if form.aware:
        return Localiser(None)
    zone, offset_s = log.options.timezone, log.options.utc_offset_s
    if zone is None and offset_s is None:
        raise LogRefusedError(
            f'{log.name}:{line}: the stamps ({sample.strip()!r}) carry no zone; add timezone = "Area/City" to [study] or to this '
            "[[source]], or utc_offset_s"
        )
    return Localiser(zone, offset_s)


class Localiser:
    """Turns the naive stamps of one file into UTC, in file order; keeps what it needs between blocks.

    Parameters
    ----------
    zone
        Zone of the stamps; ``None`` where they are UTC already.
    offset_s
        The stamps' time minus UTC [s], in place of a zone.
    """

    def __init__(self, zone: str | None, offset_s: float | None = None) -> None:
        self._zone = zone if offset_s is None and zone not in {None, "UTC", "Etc/UTC"} else None
        self._offset_us = round((offset_s or 0.0) * 1e6)
        if self._zone:
            ZoneInfo(self._zone)
        self._previous: pl.Series | None = None
        self._second_pass_us: int | None = None
        self.unresolved_hours = 0

    def utc(self, frame: pl.DataFrame, naive: pl.Expr) -> pl.Series:
        """Return the UTC stamps of the rows of a frame as ``ts_utc``."""
        return self.to_utc(frame.select(naive.alias("ts_utc")).to_series())

    def to_utc(self, naive: pl.Series) -> pl.Series:
        """Return UTC stamps; null for a local hour that never was."""
        if self._zone is None:
            utc = naive.dt.replace_time_zone("UTC")
            return utc - timedelta(microseconds=self._offset_us) if self._offset_us else utc
        local = naive.dt.replace_time_zone(self._zone, ambiguous="null", non_existent="null")
        doubtful = local.is_null() & naive.is_not_null()
        utc = local.dt.convert_time_zone("UTC")
        if doubtful.any():
            utc = self._resolve(naive, utc, doubtful)
        known = naive.drop_nulls()
        if len(known):
            self._previous = known.tail(1)
        return utc

    def _resolve(self, naive: pl.Series, utc: pl.Series, doubtful: pl.Series) -> pl.Series:
        """Tell the two passes of a repeated hour apart: the second one begins where local time falls back."""
        early, late = (
            naive.dt.replace_time_zone(self._zone, ambiguous=which, non_existent="null").dt.convert_time_zone("UTC")
            for which in ("earliest", "latest")
        )
        repeated = doubtful & early.is_not_null()
        if not repeated.any():
            return utc
        us = naive.to_physical().cast(pl.Int64)
        first_us = int(self._previous.to_physical()[0]) if self._previous is not None else None
        behind = pl.concat([pl.Series(us.name, [first_us], dtype=pl.Int64), us.head(len(us) - 1)])
        fell_back = ((us - behind) < -1_200_000_000).fill_null(value=False)
        day = naive.dt.truncate("1d").to_physical().cast(pl.Int64)
        second = fell_back.cast(pl.Int32).cum_sum() > 0
        if self._second_pass_us is not None:
            second = second | (day == self._second_pass_us)
        if (fell_back & repeated).any():
            self._second_pass_us = int(day.filter(fell_back & repeated)[-1])
        if not second.any():
            self.unresolved_hours += int(repeated.sum())
        frame = pl.DataFrame({"utc": utc, "early": early, "late": late, "repeated": repeated, "second": second})
        chosen = pl.when(~pl.col("repeated")).then("utc").when("second").then("late").otherwise("early")
        return frame.select(chosen.alias(naive.name)).to_series()
