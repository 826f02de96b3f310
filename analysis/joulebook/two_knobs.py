"""Sweeps over two knobs at once, e.g. batch size and power cap: the best pair, and what each knob alone would give."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from joulebook import sweet_spot
from joulebook.findings import Finding
from joulebook.objectives import ENERGY_TO_TARGET, Objective


@dataclass(frozen=True)
class TwoKnobs:
    """The best pair of settings.

    Parameters
    ----------
    rows
        ``knob`` (``x`` or ``x2``), then the columns of table ``sweet_spots`` without ``sweep``: the sweet spot along
        each knob with the other at its best.
    grid
        One row a pair: ``x``, ``x2``, and the columns of ``SweetSpot.settings``; ``p_best`` and the sets are over all
        pairs, ``on_front`` marks the energy-time front of all pairs.
    findings
        Doubts about either knob.
    """

    rows: pl.DataFrame
    grid: pl.DataFrame
    findings: tuple[Finding, ...] = ()


def find(runs: pl.DataFrame, *, objective: Objective | str = ENERGY_TO_TARGET, seed: int = 0) -> TwoKnobs:
    """Return the best pair of two knobs, and the sweet spot along each with the other at its best.

    Parameters
    ----------
    runs
        One row a run, as for ``sweep.curves``, with the second knob in ``x2``.
    objective
        What to make least.
    seed
        Of the draws.

    Returns
    -------
    TwoKnobs
        Without rows where no pair has what the objective needs.

    Raises
    ------
    ValueError
        ``x`` or ``x2`` is missing, or as for ``sweet_spot.find``.

    Examples
    --------
    >>> rows = [(b, c, b / 16 + 16 / b + c / 200 + 200 / c) for b in (4.0, 8, 16, 32) for c in (100.0, 200, 300)]
    >>> runs = pl.DataFrame(rows, schema=["x", "x2", "energy_per_token_j"], orient="row")
    >>> grid = find(runs, objective="energy_per_token_j").grid
    >>> grid.sort("value").select("x", "x2").row(0)
    (16.0, 200.0)
    """
    missing = [c for c in ("x", "x2") if c not in runs.columns]
    if missing:
        raise ValueError(f"runs has no column {', '.join(missing)} (the two knobs); it has {', '.join(runs.columns)}")
    pairs = runs.select(pl.col("x", "x2").cast(pl.Float64)).unique().sort("x", "x2").with_row_index("pair")
    known = runs.with_columns(pl.col("x", "x2").cast(pl.Float64)).join(pairs, on=["x", "x2"])
    # Pairs are settings of one knob here: the draws and sets do not mind what a setting is called.
    each = sweet_spot.find(known.drop("x", "x2").rename({"pair": "x"}), objective=objective, seed=seed)
    named = pairs.with_columns(pl.col("pair").cast(pl.Float64))
    grid = named.join(each.settings, left_on="pair", right_on="x").drop("pair")
    if not grid.height:
        return TwoKnobs(each.row.clear().insert_column(0, pl.Series("knob", [], pl.String)), grid, each.findings)
    best = grid.sort("value").row(0, named=True)
    rows: list[pl.DataFrame] = []
    found: list[Finding] = []
    for knob, other in (("x", "x2"), ("x2", "x")):
        along = known.filter(pl.col(other) == best[other]).drop("pair")
        along = along.drop("x2") if knob == "x" else along.drop("x").rename({"x2": "x"})
        spot = sweet_spot.find(along, objective=objective, seed=seed)
        rows.append(spot.row.insert_column(0, pl.Series("knob", [knob])))
        found += spot.findings
    return TwoKnobs(pl.concat(rows), grid, tuple(found))


def savings(grid: pl.DataFrame, *, x: float, x2: float) -> pl.DataFrame:
    """Return what the best pair, and each knob alone, would cost against a default pair.

    Parameters
    ----------
    grid
        ``x``, ``x2``, ``value``.
    x, x2
        The default pair.

    Returns
    -------
    pl.DataFrame
        ``which`` (``both``, ``x``, ``x2``), ``x``, ``x2``, ``value``, ``effect_ratio`` (value / default − 1).

    Raises
    ------
    ValueError
        The default is not in the grid.

    Examples
    --------
    >>> grid = pl.DataFrame({"x": [1.0, 1, 2, 2], "x2": [1.0, 2, 1, 2], "value": [4.0, 3, 5, 2]})
    >>> savings(grid, x=1, x2=1).select("which", "effect_ratio").rows()
    [('both', -0.5), ('x', 0.0), ('x2', -0.25)]
    """
    default = grid.filter((pl.col("x") == x) & (pl.col("x2") == x2))
    if not default.height:
        pairs = ", ".join(f"({a:g}, {b:g})" for a, b in grid.select("x", "x2").sort("x", "x2").head(8).iter_rows())
        raise ValueError(f"default ({x:g}, {x2:g}) is not in the grid; it has {pairs} …")
    choices = {"both": grid, "x": grid.filter(pl.col("x2") == x2), "x2": grid.filter(pl.col("x") == x)}
    least = [
        part.sort("value", nulls_last=True).head(1).select(pl.lit(which).alias("which"), "x", "x2", "value")
        for which, part in choices.items()
    ]
    return pl.concat(least).with_columns(effect_ratio=pl.col("value") / default["value"][0] - 1)
