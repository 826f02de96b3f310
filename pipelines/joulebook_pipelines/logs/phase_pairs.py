"""Begins and ends of phases as they stand in a log, joined: an end belongs to the last begin of its name before it."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from joulebook_pipelines.logs import phase_log, table
from joulebook_pipelines.logs.contract import Log, Part


class Pairs:
    """Joins the events of each phase."""

    def __init__(self) -> None:
        self._phases: list[tuple[str, str, datetime, datetime]] = []
        self._open: dict[str, list[tuple[datetime, int, str]]] = {}
        self._odd: list[tuple[int, str, str]] = []

    def add(self, line: int, raw: str, event: tuple[str, bool] | None, at: datetime | None) -> None:
        """Take in a line.

        Parameters
        ----------
        event
            Name of the phase and whether it begins; ``None`` for a line that tells neither.
        at
            Its time, ``None`` where it cannot be read.
        """
        if at is None:
            self._odd.append((line, raw, "no-such-time"))
        elif event is None:
            self._odd.append((line, raw, "no-begin-or-end"))
        elif event[1]:
            self._open.setdefault(event[0], []).append((at, line, raw))
        elif self._open.get(event[0]) and self._open[event[0]][-1][0] < at:
            self._phases.append(("", phase_log.word(event[0]), self._open[event[0]].pop()[0], at))
        else:
            self._odd.append((line, raw, "end-without-begin"))

    def begun(self, name: str) -> str:
        """Return the name under which a phase began that ends under this one: words of a logger may stand before it."""
        opened = (n for n, begins in self._open.items() if begins)
        return next((n for n in opened if name == n or name.endswith(f" {n}")), name)

    def part(self, log: Log, origin: str) -> Part:
        """Return what is known at the end of a log: the phases, and as rejects the lines that belong to none."""
        left = [(line, raw, "begin-without-end") for opened in self._open.values() for _, line, raw in opened]
        odd = pl.DataFrame(
            sorted(self._odd + left), schema={"line": pl.Int64, "raw": pl.String, "rule": pl.String}, orient="row"
        )
        return Part(
            phases=phase_log.frame(self._phases, origin), rejects=table.whole_lines(odd, pl.col("rule")),
            findings=(phase_log.without_run(log),),
        )  # fmt: skip
