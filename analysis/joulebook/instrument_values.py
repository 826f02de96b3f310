"""How an instrument tells its values: in which steps, and how large they usually are."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from joulebook import ranks, uncertainty


@dataclass(frozen=True)
class Values:
    """How a channel tells its values: the step of its powers [W] or of its counter [J], and the usual power [W]."""

    grain_w: float | None = None
    grain_j: float | None = None
    usual_w: float | None = None


def of(told: pl.DataFrame) -> Values:
    """Return how a channel tells its values.

    Parameters
    ----------
    told
        ``ts_utc, power_w, energy_j, energy_counter_j, span_s`` of some of its readings.

    Examples
    --------
    >>> nothing = pl.Series([None, None, None], dtype=pl.Float64)
    >>> told = pl.DataFrame({"power_w": [300.0, 301.0, 303.0], "energy_j": nothing, "energy_counter_j": nothing, "span_s": nothing})
    >>> found = of(told)
    >>> found.grain_w, found.usual_w
    (1.0, 301.0)
    """
    power = told["power_w"].drop_nulls().to_numpy()
    if power.size:
        return Values(uncertainty.grain_w(power), usual_w=ranks.median(power))
    spans = told.filter(pl.col("span_s") > 0).drop_nulls("energy_j")
    if spans.height:
        span_s, energy_j = ranks.median(spans["span_s"].to_numpy()), spans["energy_j"].to_numpy()
        return Values(uncertainty.grain_w(energy_j) / span_s, usual_w=ranks.median(energy_j) / span_s)
    counted = told.drop_nulls("energy_counter_j")
    if counted.height < 2:
        return Values()
    counter, stamp_us = counted["energy_counter_j"].to_numpy(), counted["ts_utc"].to_physical().to_numpy()
    lasted_s = float(stamp_us.max() - stamp_us.min()) / 1e6
    usual_w = float(counter.max() - counter.min()) / lasted_s if lasted_s else None
    return Values(grain_j=uncertainty.grain_w(counter), usual_w=usual_w)
