"""Spans of readings that a tool makes once an interval, where a reading before them is missing."""

from __future__ import annotations

import polars as pl

PACE = 11
"""Readings whose median step is the interval at their middle: it may change where a tool was started again."""

FEW_QUANTILE = 0.25
"""The usual one of a few values: steps are longer than the interval where a reading was lost, never shorter."""

LOST = 1.5
"""A step of more intervals than this lacks a reading."""


def spans(span_s: pl.Series, energy_j: pl.Series | None = None) -> pl.Series:
    """Return the spans of a device's readings: behind a reading that was lost they are still those of one interval.

    An energy may as well be that of the whole step, where the tool had stalled and then told of all of it: it is, if it
    is nearer to that many intervals' than to one's.

    Parameters
    ----------
    span_s
        Steps from the reading before [s], in order of the lines.
    energy_j
        Energies of the readings [J]; ``None`` for powers, which say nothing of how long they are means.

    Examples
    --------
    >>> spans(pl.Series([1.0, 1.0, 1.0, 60.0, 1.0])).to_list()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    >>> spans(pl.Series([1.0, 1.0, 1.0, 60.0, 1.0]), pl.Series([50.0, 50.0, 50.0, 2900.0, 50.0])).to_list()
    [1.0, 1.0, 1.0, 60.0, 1.0]
    """
    if span_s.null_count() == len(span_s):
        return span_s
    step, usual = pl.lit(span_s), pl.lit(_usual(span_s))
    lost = step > LOST * usual
    if energy_j is not None and energy_j.null_count() < len(energy_j):
        intervals = step / usual
        lost &= (pl.lit(energy_j) <= intervals.sqrt() * pl.lit(_usual(energy_j))).fill_null(value=True)
    return pl.select(pl.when(lost).then(usual).otherwise(step).alias(span_s.name)).to_series()


def by_device(readings: pl.DataFrame) -> pl.DataFrame:
    """Return energies of several devices with the spans that they are of, in order of lines.

    Parameters
    ----------
    readings
        ``line``, ``device``, ``span_s`` [s] and ``energy_j`` [J].
    """
    each = readings.partition_by("device", maintain_order=True)
    spanned = [own.with_columns(spans(own["span_s"], own["energy_j"])) for own in each]
    return pl.concat([readings.clear(), *spanned]).sort("line", maintain_order=True)


def _usual(values: pl.Series) -> pl.Series:
    """Return the median of the values around each; of few, where one that was lost counts for much, a low one of all."""
    return values.rolling_median(PACE, min_samples=PACE // 2 + 1, center=True).fill_null(values.quantile(FEW_QUANTILE))
