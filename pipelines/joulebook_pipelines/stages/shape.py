"""Readings that show how power goes within a run, where those of its energy are too few for that."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import polars as pl

from joulebook import totals
from joulebook.findings import Finding, Severity
from joulebook_pipelines.stages.context import MARGIN_S, Context, Run

LEAST_READINGS = 60
"""With fewer readings there is no shape to look for: an equal minute of one-second readings."""


def moments(power: pl.DataFrame) -> int:
    """Return how many moments the device with the most readings tells of."""
    stamps = [rows["ts_utc"].to_physical().to_numpy() for _, rows in totals.by_device(power)]
    return max((int(np.count_nonzero(np.diff(s))) + 1 for s in stamps), default=0)


def seen(context: Context, run: Run, scope: str, *, margin: bool = False) -> tuple[pl.DataFrame, tuple[Finding, ...]]:
    """Return power readings fine enough to see warm-up, phases and stalls.

    An instrument that covers all of a run gives its energy, even where it speaks once a run; how power goes within the
    run is then seen by a denser one with gaps, if there is one.

    Parameters
    ----------
    context, run, scope
        Which readings.
    margin
        With those shortly before and after the run.

    Returns
    -------
    polars.DataFrame, tuple of Finding
        Readings with a power, and a note where they are not those of the run's energy.
    """
    power = context.spoken(run, scope, margin=margin)
    if not context.store.passes_over(run.run_id, scope):
        return power, ()
    if moments(power) >= LEAST_READINGS and power["span_s"].null_count():
        return power, ()
    around = timedelta(seconds=MARGIN_S if margin else 0.0)
    others = context.store.passed_over(run.run_id, scope, run.start_utc - around, run.end_utc + around)
    count = others.group_by("adapter").agg(n=pl.col("ts_utc").n_unique(), covers=pl.col("coverage_ratio").min())
    best = count.filter(pl.col("n") >= LEAST_READINGS).sort("n", "adapter", descending=[True, False]).head(1)
    if best.is_empty():
        return power, ()
    adapter, n, covers = best.row(0)
    note = Finding(
        "shape-from-second-instrument", Severity.NOTE, f"{run.run_id} at {scope}",
        f"Warm-up, segments, phases and stalls are seen by {adapter}, which covers {covers:.0%} of the run; the energy is "
        "that of an instrument with fewer readings that covers more.", {"readings": n, "coverage_ratio": covers},
    )  # fmt: skip
    return others.filter(pl.col("adapter") == adapter).drop("adapter", "coverage_ratio"), (note,)
