"""The page's pictures, drawn from rows of the store until the page is full."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import polars as pl
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from joulebook import clock_maps, plots
from joulebook.plots import style as look
from joulebook_pipelines.report import svg
from joulebook_pipelines.report.blocks import Picture
from joulebook_pipelines.report.source import Source

PAGE_BYTES = 2_200_000
"""Bytes of pictures on a page; with text and tables it stays below 3 MB."""
RUNS_DRAWN = 4
"""Runs that get their own time line beside that of the study."""
POINTS = 700
"""Bins of a drawn time line: about one a pixel."""
_TIMED = ("board", "package", "components", "node", "rack", "facility")


@dataclass
class Budget:
    """Bytes that pictures may still take."""

    left: int = PAGE_BYTES

    def take(self, drawn: Markup) -> bool:
        """Take a picture's bytes; ``False`` where the page is full."""
        if len(drawn) > self.left:
            return False
        self.left -= len(drawn)
        return True


def slug(*parts: str) -> str:
    """Return an anchor from names.

    Examples
    --------
    >>> slug("bar", "bs 128/r1")
    'bar-bs-128-r1'
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", "-".join(parts)).strip("-")


def draw(
    budget: Budget, drawn: Callable[[Axes], Any], anchor: str, words: tuple[str, str, str], size: tuple[float, float]
) -> Picture | None:
    """Return a picture; ``words`` are its title, caption and text alternative, ``size`` its inches."""
    with look.settings():
        figure = Figure(figsize=size, facecolor="none")
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    drawn(ax)
    title, caption, alternative = words
    made = svg.of_figure(figure, anchor=anchor, title=title, alternative=alternative)
    return Picture(made, caption, anchor) if budget.take(made) else None


def timelines(source: Source, budget: Budget) -> list[Picture | None]:
    """Return the time line of the study and those of the first runs."""
    runs = source.aligned_runs
    scopes = [s for s in _TIMED if s in set(source.rows("channels")["scope"])]
    if not scopes:
        return []
    made = [_timeline(source, budget, scopes, None)] if runs.height != 1 else []
    return made + [_timeline(source, budget, scopes, r) for r in runs.head(RUNS_DRAWN).iter_rows(named=True)]


def _timeline(source: Source, budget: Budget, scopes: list[str], run: dict[str, Any] | None) -> Picture | None:
    start: datetime | None = None
    end: datetime | None = None
    if run:
        margin = max((run["end_utc"] - run["start_utc"]) * 0.08, timedelta(seconds=30))
        start, end = run["start_utc"] - margin, run["end_utc"] + margin
    bands = [
        rows.with_columns(pl.lit(s).alias("scope"))
        for s in scopes
        if not (rows := source.store.timeline(s, POINTS, start, end)).is_empty()
    ]
    if not bands:
        return None
    power = pl.concat(bands, how="diagonal_relaxed")
    name = run["run_id"] if run else ""
    segments = _whole_segments(source, name, [s for s in scopes if any(b["scope"][0] == s for b in bands)])
    phases = _phases(source, run) if run else None
    idle = source.result(name, source.widest(name) or "", "idle_power_w") if run else None
    events = None if run else _starts(source)
    gaps = _gaps(power)
    what = f"run {name}" if run else "the study"
    words = (
        f"Power of {what} over time",
        f"Power of {what}. Lines are means, the band around them reaches from the least to the greatest reading. "
        + ("Hatched is time without readings. " if gaps is not None else "")
        + (_strips(segments, phases) if run else "Marks are starts of runs. ")
        + (_neighbours(source, name, scopes) if run else "")
        + f"Time of {source.timezone}.",
        "; ".join(_described(b) for b in bands),
    )
    return draw(
        budget,
        lambda ax: plots.timeline(
            power, segments=segments, phases=phases, idle_w=idle["value"] if idle else None, gaps=gaps,
            events=events, timezone=source.timezone, ax=ax,
        ),
        slug("time", name or "study"), words, (8.2, 3.0),
    )  # fmt: skip


def _strips(segments: pl.DataFrame, phases: pl.DataFrame | None) -> str:
    """Return what the strips above a time line are."""
    found, told = not segments.is_empty(), phases is not None and not phases.is_empty()
    if found and told:
        return "The strips above show the stretches that were found in the power, and the phases that were logged. "
    if found or told:
        which = "stretches that were found in the power" if found else "phases that were logged"
        return f"The strip above shows the {which}. "
    return ""


def _neighbours(source: Source, run: str, scopes: list[str]) -> str:
    """Return which devices a run had where the picture also has those of its neighbours."""
    chosen = source.rows("instruments").filter(pl.col("chosen"), pl.col("scope").is_in(scopes))
    every = chosen.group_by("scope").agg(pl.col("device").unique())
    mine = chosen.filter(pl.col("run_id") == run).group_by("scope").agg(mine=pl.col("device").unique().sort())
    fewer = mine.join(every, on="scope").filter(pl.col("mine").list.len() < pl.col("device").list.len()).sort("scope")
    return "".join(
        f"The {scope} is that of the whole machine, of which this run had {', '.join(devices)}. "
        for scope, devices in fewer.select("scope", "mine").iter_rows()
    )


def _phases(source: Source, run: dict[str, Any]) -> pl.DataFrame:
    """Return the phases of a run, moved from its host's clock to that of the readings."""
    rows = source.rows("phases").filter(pl.col("run_id") == run["run_id"])
    return clock_maps.spans(rows, source.rows("alignments"), clock=run["host"] or "")


def _described(band: pl.DataFrame) -> str:
    low, high = band.select(pl.col("lo_w").min(), pl.col("hi_w").max()).row(0)
    return f"{band['scope'][0]} between {low:.4g} W and {high:.4g} W"


def _gaps(power: pl.DataFrame) -> pl.DataFrame | None:
    """Return stretches without readings that are wide enough to be seen, at the scope that has them."""
    step = pl.col("ts_utc").diff().over("scope")
    rows = power.sort("scope", "ts_utc").with_columns(step.alias("step"), (pl.col("ts_utc") - step).alias("start_utc"))
    limit = pl.max_horizontal(pl.col("step").median().over("scope") * 3, pl.lit(timedelta(seconds=3)))
    found = rows.filter(pl.col("step") > limit).select("start_utc", pl.col("ts_utc").alias("end_utc"))
    return None if found.is_empty() else found.unique().sort("start_utc")


def _whole_segments(source: Source, run: str, scopes: list[str]) -> pl.DataFrame:
    rows = source.rows("segments").filter(pl.col("run_id") == run)
    for scope in ("board", *reversed(scopes)):
        for device in ("", *rows.filter(pl.col("scope") == scope)["device"].unique().sort()):
            found = rows.filter((pl.col("scope") == scope) & (pl.col("device") == device))
            if not found.is_empty():
                return found
    return rows.clear()


def _starts(source: Source) -> pl.DataFrame:
    # runs that start together would write their names over each other
    starts = source.aligned_runs.group_by(ts_utc="start_utc", maintain_order=True)
    return starts.agg(label=pl.col("run_id").str.join(", "))
