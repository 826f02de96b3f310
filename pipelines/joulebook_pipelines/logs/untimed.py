"""Readings without times: laid one after the other where study.toml says how far apart they are, else refused."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import local_time, relative
from joulebook_pipelines.logs.contract import Log, LogRefusedError
from joulebook_pipelines.logs.local_time import Localiser
from joulebook_pipelines.logs.stamps import StampForm

_ZERO = datetime(1970, 1, 1)


def _start(log: Log) -> tuple[datetime, Localiser]:
    """Return when a file without times is taken to begin, local, and its clock: the date that study.toml gives, else 1970."""
    date = log.options.date
    if date is None:
        return _ZERO, Localiser(None)
    form = StampForm("%Y-%m-%d", aware=False)
    return datetime.fromisoformat(date), local_time.localiser(log, form, 1, date)


class Steps:
    """Stamps of readings that follow each other at a known distance: each is the mean over the step that ends there.

    Parameters
    ----------
    log
        The file; ``period_s`` of study.toml is the distance, ``date`` the day of the first reading.

    Raises
    ------
    LogRefusedError
        Nobody says the distance, or the zone of the date.
    """

    def __init__(self, log: Log) -> None:
        if log.options.distance_s is None:
            raise LogRefusedError(
                f"{log.name}: holds powers without times, and without times there is no energy. If they were taken at a fixed distance, "
                "say it: period_s = (seconds from one line to the next; check it against the length of the run) in this [[source]]; "
                "or log again with a timestamp"
            )
        self.step_s = log.options.distance_s
        self._log, self._passed = log, 0
        self._card: int | None = None
        self._start, self._clock = _start(log)

    def next(self, count: int) -> pl.Series:
        """Return the ends of the next steps, UTC."""
        return self.at(pl.int_range(self._passed + 1, self._passed + count + 1, eager=True, dtype=pl.Int64))

    def of_rounds(self, cards: pl.Series) -> pl.Series:
        """Return the steps of lines about cards in turn: a new round begins where the number of the card does not rise.

        Parameters
        ----------
        cards
            Text that ends with the number of the card, in the order of the file.
        """
        card = cards.str.extract(r"(\d+)$").cast(pl.Int64, strict=False)
        before = card.shift(1, fill_value=self._card).forward_fill()
        fresh = ((card <= before) | before.is_null()).fill_null(value=False).cast(pl.Int64)
        if card.count():
            self._card = card.drop_nulls()[-1]
        return self.at(fresh.cum_sum() + self._passed)

    def at(self, numbers: pl.Series) -> pl.Series:
        """Return the ends of the steps of these numbers, from 1, UTC."""
        self._passed = max(self._passed, int(str(numbers.max() or 0)))
        passed = (numbers.cast(pl.Int64) * round(self.step_s * 1e6)).cast(pl.Duration("us"))
        return self._clock.to_utc((passed + pl.Series([self._start])).alias("ts_utc"))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is not known of the times."""
        assumed = Finding(
            "times-assumed", Severity.WARNING, self._log.name,
            f"The file holds no times. Its {self._passed} samples were laid {self.step_s:g} s apart, as study.toml says, which makes "
            f"{timedelta(seconds=self._passed * self.step_s)} in all: energies are right as far as that is.",
            {"samples": self._passed, "step_s": self.step_s},
        )  # fmt: skip
        return (assumed,) if self._log.options.date else (assumed, relative.unknown_start(self._log))


class Moment:
    """The stamp of readings that were all taken at one moment, of which nobody knows when: the first of 1970, or of ``date``."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._start, self._clock = _start(log)

    def at(self, numbers: pl.Series) -> pl.Series:
        """Return the moment for each of the numbers, UTC."""
        return self._clock.to_utc(pl.Series("ts_utc", [self._start] * len(numbers), dtype=pl.Datetime("us")))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is not known of the time."""
        when = self._log.options.date or "1970-01-01"
        return (Finding(
            "one-moment", Severity.WARNING, self._log.name,
            f"The file holds one moment and no time: its powers are read, laid on {when}, but give no energy. To get one, log again "
            "and again with a time.", {},
        ),)  # fmt: skip


def of_dumps(log: Log, dumps: int, cure: str) -> Steps | Moment:
    """Return the stamps of dumps without times: one is a moment, several follow each other as study.toml says.

    Parameters
    ----------
    log
        The file.
    dumps
        How many there are.
    cure
        What to log so that dumps have a time.

    Raises
    ------
    LogRefusedError
        There are several, and nobody says how far apart.
    """
    if log.options.distance_s is not None:
        return Steps(log)
    if dumps == 1:
        return Moment(log)
    raise LogRefusedError(
        f"{log.name}: nothing in the file tells when its {dumps} dumps were taken; {cure}; or, where they were taken at a fixed "
        "distance, add period_s = (seconds from dump to dump) to this [[source]]"
    )
