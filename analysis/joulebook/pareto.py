"""Which settings are worth having: no other one is better in energy and in time."""

from __future__ import annotations

import polars as pl


def front(table: pl.DataFrame, *, energy: str = "energy_to_target_j", time: str = "time_to_target_s") -> pl.DataFrame:
    """Return the table with the flag of its energy-time front.

    A setting is on the front where no other needs less of the one without needing more of the other.

    Parameters
    ----------
    table
        One row a setting.
    energy, time
        Columns to make small together.

    Returns
    -------
    pl.DataFrame
        The table in its order with ``on_front`` (null where energy or time is null).

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> t = pl.DataFrame({"e": [3.0, 2.0, 4.0], "t": [1.0, 2.0, 3.0]})
    >>> front(t, energy="e", time="t")["on_front"].to_list()
    [True, True, False]
    """
    missing = [c for c in (energy, time) if c not in table.columns]
    if missing:
        raise ValueError(f"table has no column {', '.join(missing)}; it has {', '.join(table.columns)}")
    known = pl.col(energy).is_finite() & pl.col(time).is_finite()
    marked = (
        table.with_row_index("__row")
        .with_columns(
            pl.when(known).then(pl.col(energy)).alias("__energy"), pl.when(known).then(pl.col(time)).alias("__time")
        )
        .sort("__energy", "__time", nulls_last=True)
    )
    # In order of energy, a setting is beaten when an earlier one (less energy) already had as little time; equal
    # points do not beat each other.
    first_of_energy = pl.col("__time").min().over("__energy")
    least_before = (
        marked.group_by("__energy", maintain_order=True)
        .agg(pl.col("__time").min())
        .with_columns(pl.col("__time").cum_min().shift(1).alias("__before"))
        .select("__energy", "__before")
    )
    return (
        marked.join(least_before, on="__energy", how="left", nulls_equal=True)
        .with_columns(
            pl.when(pl.col("__energy").is_not_null())
            .then(
                (pl.col("__time") == first_of_energy)
                & (pl.col("__before").is_null() | (pl.col("__time") < pl.col("__before")))
            )
            .alias("on_front")
        )
        .sort("__row")
        .drop("__row", "__energy", "__time", "__before")
    )
