"""Two scrapers of one target: their samples fall between each other and say the same thing twice."""

from __future__ import annotations

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import entries, table

NEAR_STEPS = 1.5
"""Where the main series has a sample on both sides within this many of its steps, another series has nothing to add."""


def set_aside(found: pl.DataFrame, name: str) -> tuple[pl.DataFrame, pl.DataFrame, list[Finding]]:
    """Take out samples of further series of a device that lie between neighbouring samples of its longest series.

    A series that begins where another ends (a card that is given to a pod, a restarted exporter) stays.

    Parameters
    ----------
    found
        Samples: ``series, device, quantity, ts_utc, raw`` and what rejects need, each device and time once.
    name
        Of the file.
    """
    keys = ["device", "quantity"]
    counts = found.group_by(*keys, "series", maintain_order=True).agg(n=pl.len())
    several = counts.filter(pl.len().over(keys) > 1)
    if several.is_empty():
        return found, table.no_rejects(), []
    longest = several.sort("n", descending=True, maintain_order=True).unique(keys, keep="first", maintain_order=True)
    rows = found.with_row_index("at")
    gone = []
    for device, quantity, series, _ in longest.iter_rows():  # devices with several series, not samples
        mine = rows.filter(
            (pl.col("device") == device) & (pl.col("quantity") == quantity) & pl.col("ts_utc").is_not_null()
        )
        main = mine.filter(pl.col("series") == series).select("ts_utc", seen="ts_utc").sort("ts_utc")
        step = main["seen"].diff().median()
        if step is None:
            continue
        others = mine.filter(pl.col("series") != series).select("at", "ts_utc").sort("ts_utc")
        between = others.join_asof(main.rename({"seen": "before"}), on="ts_utc", strategy="backward").join_asof(
            main.rename({"seen": "after"}), on="ts_utc", strategy="forward"
        )
        gone.append(between.filter(pl.col("after") - pl.col("before") <= NEAR_STEPS * pl.lit(step))["at"])
    places = pl.concat(gone) if gone else pl.Series("at", [], dtype=pl.UInt32)
    if places.is_empty():
        return found, table.no_rejects(), []
    again = pl.col("at").is_in(places.implode())
    twice = rows.filter(again)
    finding = Finding(
        "two-scrapers", Severity.NOTE, name,
        f"{twice.height} samples of further series of {', '.join(twice['device'].unique().sort().head(5))} fall between those of the "
        "longest (two Prometheus servers that scrape one target): they tell the same again and are set aside.",
        {"samples": twice.height},
    )  # fmt: skip
    return rows.filter(~again).drop("at"), entries.rejected(twice, "repeated-series"), [finding]
