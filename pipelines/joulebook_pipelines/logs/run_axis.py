"""Seconds that count on from row to row: the time axis of a log, where a table of runs has the length of each run."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from joulebook_pipelines.logs import dialect, run_spent
from joulebook_pipelines.logs.contract import Head, Log, LogRefusedError
from joulebook_pipelines.logs.run_titles import Columns

_BARE = (["time"], ["seconds"], ["sec"], ["secs"], ["t"])

FEWEST = 4
"""Rows from which an axis is known."""

LATEST_START, ALIKE, FACTOR = 2.0, 0.8, 2.0
"""An axis begins within so many of its steps from zero; this share of its steps is the usual one within this factor."""


def column(titles: Sequence[str]) -> int | None:
    """Return the place of the title that says how long it has been, or how long it took; ``None`` where none does.

    Examples
    --------
    >>> column(["run", "elapsed_s", "energy_j"]), column(["Time (s)", "power_w"]), column(["run", "duration_s"])
    (1, 0, None)
    """
    for at, title in enumerate(titles):
        words = run_spent.plain(run_spent.unit_apart(title, run_spent.TIME_UNITS)[0]).split("_")
        if "elapsed" in words or words in _BARE:
            return at
    return None


def counts_on(cells: pl.Series) -> bool:
    """Tell whether texts are the axis of a log: they grow from about zero, by steps of about one size.

    Examples
    --------
    >>> counts_on(pl.Series(["0.0", "0.5", "1.01", "1.5"])), counts_on(pl.Series(["10.0", "10.2", "14", "31"]))
    (True, False)
    """
    seconds = (
        cells.str.strip_chars(' "').str.replace(",", ".", literal=True).cast(pl.Float64, strict=False).drop_nulls()
    )
    steps = seconds.diff().drop_nulls()
    usual = steps.median()
    if len(seconds) < FEWEST or not isinstance(usual, float) or usual <= 0:
        return False
    alike = steps.is_between(usual / FACTOR, usual * FACTOR).sum() >= ALIKE * len(steps)
    return alike and float(seconds[0]) <= LATEST_START * usual and bool((steps > 0).all())


def of_head(head: Head, separator: str, titles: Sequence[str]) -> bool:
    """Tell whether the rows below a header stand along a time axis."""
    at = column(titles)
    if at is None:
        return False
    lines = [line for line in head.lines[head.top[0] :] if line.strip()]
    rows = [dialect.split_line(line, separator) for line in (lines if head.complete else lines[:-1])[:200]]
    return counts_on(pl.Series([row[at] for row in rows if len(row) == len(titles)], dtype=pl.String))


def settle(log: Log, found: Columns, raw: pl.DataFrame) -> None:
    """Take the seconds that passed for the length of each run, where nothing else tells it.

    Raises
    ------
    LogRefusedError
        They count on from row to row: the rows are no runs.
    """
    at = column(found.titles)
    if at is None or found.roles.keys() & {"start", "end", "stamp", "done"} or found.roles.get("duration", at) != at:
        return
    if counts_on(raw[f"c{at}"]):
        raise LogRefusedError(
            f"{log.name}: {found.titles[at]!r} counts on from row to row, so the rows are readings of one log and no runs; write them as a "
            "CSV with the titles time,power_w"
        )
    if "duration" not in found.roles:
        found.roles["duration"] = at
        found.duration_unit = run_spent.unit_apart(found.titles[at], run_spent.TIME_UNITS)[1]
