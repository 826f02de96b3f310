"""The boards of a node that jobs share: those of one job, and those beside them."""

from __future__ import annotations

import polars as pl

from joulebook_pipelines.stages.context import Context, Run


def of_host(context: Context, run: Run) -> pl.DataFrame:
    """Return ``source_id, device`` of the boards of a run's host that were read during the run."""
    seen = context.store.channels_within_runs().filter(run_id=run.run_id, scope="board")
    mine = seen.filter(host=run.host) if run.host in set(seen["host"]) else seen
    return mine.select("source_id", "device")


def beside(context: Context, run: Run) -> list[str]:
    """Return the boards that the logs of a run's own boards tell besides those; a run that names none has all of them."""
    if not run.devices:
        return []
    boards = of_host(context, run)
    own = boards.filter(pl.col("device").is_in(run.devices))
    told = boards.filter(pl.col("source_id").is_in(own["source_id"].implode()))
    return sorted(set(told["device"]) - set(run.devices))
