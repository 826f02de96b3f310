"""What tells the better one of two instruments: the grain of its values, and whether its times are its own."""

from __future__ import annotations

import polars as pl

from joulebook import instrument_order, instrument_values, uncertainty
from joulebook_pipelines.logs.clock_set import UNDATED
from joulebook_pipelines.store import Store

_PLACE = ("source_id", "device")
_NAMES = {"grain_w": pl.Float64, "grain_j": pl.Float64, "usual_w": pl.Float64}


def of(store: Store, channels: pl.DataFrame) -> pl.DataFrame:
    """Return channels with ``grain_w``, ``usual_w`` and ``made_up``; the first two only where a scope has several instruments.

    Parameters
    ----------
    store
        Where their readings are.
    channels
        Channels that saw runs, as ``channels_within_runs`` returns them, with ``length_s`` of the run: the step of a counter
        counts once in it.
    """
    several = pl.struct("adapter", "clock").n_unique().over(*instrument_order.SCOPE) > 1
    asked = channels.filter(several).select(*_PLACE).unique(maintain_order=True)
    told = [_told(store, source_id, device) for source_id, device in asked.iter_rows()]
    facts = pl.concat([asked, pl.DataFrame(told, schema=_NAMES, orient="row")], how="horizontal")
    known = channels.with_columns(_asked=several).join(facts, on=list(_PLACE), how="left", maintain_order="left")
    grain_w = pl.coalesce("grain_w", pl.col("grain_j") / pl.col("length_s"))
    return known.with_columns(
        grain_w=pl.when("_asked").then(grain_w), usual_w=pl.when("_asked").then("usual_w"),
        made_up=pl.col("source_id").is_in(store.sources_with(UNDATED)),
    ).drop("_asked", "grain_j")  # fmt: skip


def _told(store: Store, source_id: int, device: str) -> tuple[float | None, float | None, float | None]:
    found = instrument_values.of(store.first_told(source_id, device, uncertainty.GRAIN_SAMPLE))
    return None if found.grain_j is not None else found.grain_w, found.grain_j, found.usual_w
