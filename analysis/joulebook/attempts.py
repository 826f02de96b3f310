"""When power was asked for and none was told: laid between the readings that succeeded."""

from __future__ import annotations

import numpy as np
import polars as pl

_OF_POWER = "power|watt|energy|joule|consumption"
"""Titles of columns that hold power or energy."""


def between(kept: pl.DataFrame, refused: pl.DataFrame) -> pl.Series:
    """Lay refused readings evenly between the kept ones around them, by line; by their number where lines tell no order.

    Parameters
    ----------
    kept
        ``line, ts_utc``, in order of lines.
    refused
        ``line, column_name``.

    Returns
    -------
    polars.Series
        When power was asked for, with or without success.

    Examples
    --------
    >>> kept = pl.DataFrame({"line": [2, 3, 6], "ts_utc": pl.Series([0, 1_000_000, 4_000_000]).cast(pl.Datetime("us", "UTC"))})
    >>> between(kept, pl.DataFrame({"line": [4, 5], "column_name": ["power", "power"]})).dt.second().to_list()
    [0, 1, 2, 3, 4]
    """
    us = kept["ts_utc"].cast(pl.Datetime("us", "UTC")).to_physical()
    stamps = us.to_numpy()
    if 2 * kept["line"].n_unique() <= kept.height:  # a document of few lines
        named = refused.filter(pl.col("column_name").str.to_lowercase().str.contains(_OF_POWER))
        asked = pl.Series(np.linspace(stamps.min(), stamps.max(), kept.height + named.height)).round().cast(pl.Int64)
    else:
        places = refused.select(pl.col("line").unique()).join(kept, on="line", how="anti")
        both = pl.concat(
            [kept.select("line", us=us), places.select("line", us=pl.lit(None, pl.Int64))], how="vertical_relaxed"
        )
        asked = both.sort("line", maintain_order=True)["us"].interpolate().drop_nulls().round().cast(pl.Int64)
    return asked.cast(pl.Datetime("us", "UTC"))
