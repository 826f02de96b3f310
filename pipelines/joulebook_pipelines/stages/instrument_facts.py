"""What tells the better one of two instruments: the grain of its values, and whether its times are its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from joulebook import instrument_order, instrument_values, uncertainty
from joulebook_pipelines.logs.clock_set import UNDATED
from joulebook_pipelines.store import Store

_NAMES = {"grain_w": pl.Float64, "usual_w": pl.Float64}


@dataclass(frozen=True)
class InstrumentFacts:
    """Facts of the channels of a store, each looked up once."""

    store: Store
    _seen: dict[tuple[int, str], instrument_values.Values] = field(default_factory=dict, repr=False)

    def of(self, channels: pl.DataFrame, length_s: float) -> pl.DataFrame:
        """Return channels with ``grain_w``, ``usual_w`` and ``made_up``; the first two only where a scope has several instruments.

        Parameters
        ----------
        channels
            Channels that saw a run, as ``channels_within`` returns them.
        length_s
            Length of the run [s]: the step of a counter counts once in it.
        """
        several = pl.struct("adapter", "clock").n_unique().over(*instrument_order.SCOPE) > 1
        rows = channels.select("source_id", "device", several.alias("asked")).iter_rows()
        told = [self._told(source_id, device, length_s) if asked else (None, None) for source_id, device, asked in rows]
        facts = pl.DataFrame(told, schema=_NAMES, orient="row")
        return channels.with_columns(*facts, made_up=pl.col("source_id").is_in(self.store.sources_with(UNDATED)))

    def _told(self, source_id: int, device: str, length_s: float) -> tuple[float | None, float | None]:
        place = (source_id, device)
        if place not in self._seen:
            self._seen[place] = instrument_values.of(self.store.first_told(source_id, device, uncertainty.GRAIN_SAMPLE))
        found = self._seen[place]
        grain_w = found.grain_w if found.grain_j is None else found.grain_j / length_s
        return grain_w, found.usual_w
