"""The end of a range query that Prometheus invents: for five minutes after a target is gone it repeats the last sample."""

from __future__ import annotations

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import entries

LOOK_BACK_S = 300.0
"""Prometheus' default look-back: how long a query goes on with the last sample of a target that is gone."""

OTHER_RUNS = 0.5
"""A sensor that stands still as often elsewhere (an idle board in whole watts) is not taken for a filled tail: the
longest other run of equal values must be shorter than this share of the tail."""


def set_aside(found: pl.DataFrame, name: str) -> tuple[pl.DataFrame, pl.DataFrame, list[Finding]]:
    """Take out the repeats at the end of each device's series.

    Parameters
    ----------
    found
        Entries in order of time: ``device, ts_utc, quantity, raw`` and what a reject needs.
    name
        The file, for findings.

    Returns
    -------
    tuple
        The entries that were measured, the rejects, and a finding per device with an invented tail.
    """
    cuts = _cuts(found)
    if cuts.is_empty():
        return found, entries.rejected(found.clear(), "stale-tail"), []
    last = pl.col("raw").last().over("device", "quantity", order_by="ts_utc")
    marked = found.join(cuts, on="device", how="left", maintain_order="left").with_columns(
        _gone=((pl.col("ts_utc") > pl.col("cut")) & (pl.col("raw") == last)).fill_null(value=False)
    )
    gone = marked.filter("_gone")
    findings = [
        Finding(
            "stale-tail", Severity.WARNING, name,
            f"{device}: the last {count} samples repeat one value over {seconds:g} s, as Prometheus does once a target is gone; they are "
            "filled, not measured, and were set aside.", {"device": device, "samples": count, "seconds": seconds},
        )
        for device, count, seconds in cuts.select("device", "count", "seconds").iter_rows()
    ]  # fmt: skip
    return (
        marked.filter(~pl.col("_gone")).drop("_gone", "cut", "count", "seconds"),
        entries.rejected(gone, "stale-tail"),
        findings,
    )


def _cuts(found: pl.DataFrame) -> pl.DataFrame:
    """Return ``device, cut, count, seconds``: from when on the power or counter of a device only repeats itself."""
    told = found.filter(pl.col("quantity").is_in(["power_w", "energy_counter_j"]) & pl.col("ts_utc").is_not_null())
    told = told.sort("device", "quantity", "ts_utc", maintain_order=True).select("device", "quantity", "ts_utc", "raw")
    runs = (
        told.with_columns(run=pl.struct("device", "quantity", "raw").rle_id())
        .group_by("run", maintain_order=True)
        .agg(
            pl.col("device", "quantity", "raw").first(),
            n=pl.len(),
            begin=pl.col("ts_utc").first(),
            end=pl.col("ts_utc").last(),
        )
        .with_columns(seconds=(pl.col("end") - pl.col("begin")).dt.total_microseconds() / 1e6)
    )
    series = ["device", "quantity"]
    step = (told.group_by(series).agg(pl.col("ts_utc").diff().median().dt.total_microseconds() / 1e6)).rename(
        {"ts_utc": "step"}
    )
    ends = runs.with_columns(
        longest_other=pl.col("seconds").slice(0, pl.len() - 1).max().over(series), others=pl.len().over(series) - 1,
    ).group_by(series, maintain_order=True).last().join(step, on=series)  # fmt: skip
    stale = ends.filter(
        (pl.col("seconds") + pl.col("step") >= LOOK_BACK_S)
        & (pl.col("n") > 2)
        & (pl.col("others") > 1)
        & (pl.col("longest_other").fill_null(0.0) < OTHER_RUNS * pl.col("seconds"))
        & ~pl.col("raw").str.to_lowercase().is_in(["nan", "+inf", "-inf"])
    )
    best = stale.sort("begin").group_by("device", maintain_order=True).first()
    return best.select("device", cut="begin", count=pl.col("n") - 1, seconds="seconds")
