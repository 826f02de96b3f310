"""Readings without times: laid one after the other where study.toml says how far apart they are, else refused."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import relative, stamps
from joulebook_pipelines.logs.contract import Log, LogRefusedError
from joulebook_pipelines.logs.stamps import Localiser, StampForm

_ZERO = datetime(1970, 1, 1)


class Steps:
    """Stamps of readings that follow each other at a known distance: each is the mean over the step that ends there.

    Parameters
    ----------
    log
        The file; ``window_s`` of study.toml is the distance, ``date`` the day of the first reading.

    Raises
    ------
    LogRefusedError
        Nobody says the distance, or the zone of the date.
    """

    def __init__(self, log: Log) -> None:
        if log.options.window_s is None:
            raise LogRefusedError(
                f"{log.name}: holds powers without times, and without times there is no energy. If they were taken at a fixed distance, "
                "say it: window_s = (seconds from one line to the next; check it against the length of the run) in this [[source]]; "
                "or log again with a timestamp"
            )
        self.step_s = log.options.window_s
        self._log, self._passed = log, 0
        dated = log.options.date is not None
        self._start = datetime.fromisoformat(str(log.options.date)) if dated else _ZERO
        form = StampForm("%Y-%m-%d", aware=False)
        self._clock = (
            stamps.localiser(form, log.options, log.name, 1, str(log.options.date)) if dated else Localiser(None)
        )

    def next(self, count: int) -> pl.Series:
        """Return the ends of the next steps, UTC."""
        step_us = round(self.step_s * 1e6)
        at = pl.int_range(self._passed + 1, self._passed + count + 1, eager=True, dtype=pl.Int64) * step_us
        self._passed += count
        return self._clock.to_utc((at.cast(pl.Duration("us")) + pl.Series([self._start])).alias("ts_utc"))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is not known of the times."""
        assumed = Finding(
            "times-assumed", Severity.WARNING, self._log.name,
            f"The file holds no times. Its {self._passed} readings were laid {self.step_s:g} s apart, as study.toml says, which makes "
            f"{timedelta(seconds=self._passed * self.step_s)} in all: energies are right as far as that is.",
            {"readings": self._passed, "step_s": self.step_s},
        )  # fmt: skip
        return (assumed,) if self._log.options.date else (assumed, relative.unknown_start(self._log))
