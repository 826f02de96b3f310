"""What tells the better one of two instruments: the grain of its values, and whether its times are its own."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from joulebook import instrument_order, ranks, uncertainty
from joulebook_pipelines.logs.clock_set import UNDATED
from joulebook_pipelines.store import Store

_NAMES = {"grain_w": pl.Float64, "usual_w": pl.Float64}


@dataclass(frozen=True)
class _Values:
    """How a channel tells its values: the step of its powers [W] or of its counter [J], and the usual power [W]."""

    grain_w: float | None = None
    grain_j: float | None = None
    usual_w: float | None = None


@dataclass(frozen=True)
class InstrumentFacts:
    """Facts of the channels of a store, each looked up once."""

    store: Store
    _seen: dict[tuple[int, str], _Values] = field(default_factory=dict, repr=False)

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
            self._seen[place] = _values(self.store.first_told(source_id, device, uncertainty.GRAIN_SAMPLE))
        found = self._seen[place]
        grain_w = found.grain_w if found.grain_j is None else found.grain_j / length_s
        return grain_w, found.usual_w


def _values(told: pl.DataFrame) -> _Values:
    power = told["power_w"].drop_nulls().to_numpy()
    if power.size:
        return _Values(uncertainty.grain_w(power), usual_w=ranks.median(power))
    spans = told.filter(pl.col("span_s") > 0).drop_nulls("energy_j")
    if spans.height:
        span_s, energy_j = ranks.median(spans["span_s"].to_numpy()), spans["energy_j"].to_numpy()
        return _Values(uncertainty.grain_w(energy_j) / span_s, usual_w=ranks.median(energy_j) / span_s)
    counted = told.drop_nulls("energy_counter_j")
    if counted.height < 2:
        return _Values()
    counter, stamp_us = counted["energy_counter_j"].to_numpy(), counted["ts_utc"].to_physical().to_numpy()
    lasted_s = float(stamp_us.max() - stamp_us.min()) / 1e6
    usual_w = float(counter.max() - counter.min()) / lasted_s if lasted_s else None
    return _Values(grain_j=uncertainty.grain_w(counter), usual_w=usual_w)
