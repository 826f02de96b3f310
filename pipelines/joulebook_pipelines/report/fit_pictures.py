"""Pictures of what was fitted: clocks and calibrations."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from joulebook import plots
from joulebook_pipelines import metrics, shown
from joulebook_pipelines.report.blocks import Picture
from joulebook_pipelines.report.pictures import Budget, draw, slug
from joulebook_pipelines.report.source import Source

CLOCKS_DRAWN = 4
"""Clocks that get a picture; the table has all."""
POINTS_DRAWN = 300
"""Points of a calibration that are drawn; the store has all."""
_WIDEST = timedelta(hours=2)
"""Time around the middle of the overlap in which an edge is looked for."""


def alignments(source: Source, budget: Budget) -> list[Picture]:
    """Return a picture per aligned clock: its readings against those of its reference."""
    made = []
    aligned = source.rows("alignments").filter(pl.col("status") == "aligned").head(CLOCKS_DRAWN)
    for row in aligned.iter_slices(1):
        picture = _alignment(source, budget, row)
        made += [picture] if picture else []
    return made


def _alignment(source: Source, budget: Budget, row: pl.DataFrame) -> Picture | None:
    anchor, clock = row["anchor_utc"][0], row["clock"][0]
    still, moving = (_readings(source, row[c][0], anchor) for c in ("reference_clock", "clock"))
    if still.is_empty() or moving.is_empty():
        return None
    offset = shown.number(row["offset_s"][0], row["offset_lo"][0], row["offset_hi"][0], unit=metrics.Unit("s"))
    words = (
        f"Clock {clock} before and after alignment",
        "The steepest edge by both clocks, each scaled to its own range: as stamped, aligned, and what is left. In the "
        "title the 95 % interval.",
        f"Two step curves, apart by {offset.plain} as stamped and together after alignment.",
    )
    return draw(budget, lambda ax: plots.alignment(still, moving, row, ax=ax), slug("clock", clock), words, (8.2, 4.2))


def _readings(source: Source, clock: str, anchor: datetime | None) -> pl.DataFrame:
    """Return the power that a clock's instruments read about the middle of the overlap, at the densest scope."""
    clocks = source.rows("sources").select("source_id", "clock")
    of = source.rows("channels").join(clocks, on="source_id").filter(pl.col("clock") == clock)
    of = of.sort("period_s", "scope", nulls_last=True)  # what has no period, such as one energy a run, has no edge
    own = of.filter(pl.col("scope") == pl.col("scope").first()).select("source_id", "device")
    start, end = (None, None) if anchor is None else (anchor - _WIDEST / 2, anchor + _WIDEST / 2)
    return source.store.measured_power(own, start_utc=start, end_utc=end).drop_nulls("power_w")


def calibrations(source: Source, budget: Budget) -> list[Picture]:
    """Return a picture per calibration that was fitted, with its points."""
    made = []
    for row in source.rows("calibrations").drop_nulls("offset_w").head(4).iter_slices(1):
        scope, reference = row["scope"][0], row["reference_scope"][0]
        keys = ("host", "scope", "reference_scope")
        seen = source.rows("calibration_points").join(row.select(keys), on=keys, how="semi", nulls_equal=True)
        points = seen.gather_every(max(1, -(-seen.height // POINTS_DRAWN)))
        some = f" Drawn are {points.height} of {seen.height} points." if points.height < seen.height else ""
        left_out = " A hollow point was left out." if not points["kept"].all() else ""
        words = (
            f"{scope} against {reference}",
            f"The line from {scope} to {reference} with its band, and the range in which it holds; below, what it leaves. "
            f"Points are means of stretches that both instruments saw, with their 95 % intervals.{left_out}{some}",
            f"A line, {points.height} points.",
        )
        anchor = slug("calibration", row["host"][0], scope, reference)
        picture = draw(budget, lambda ax, p=points, r=row: plots.calibration(p, r, ax=ax), anchor, words, (6.2, 3.4))
        made += [picture] if picture else []
    return made
