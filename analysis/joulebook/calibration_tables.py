"""A calibration as rows of the store."""

from __future__ import annotations

import polars as pl

from joulebook import schema
from joulebook.calibration import Z95, Calibration, half_width


def row(calibration: Calibration, *, host: str, scope: str, reference_scope: str) -> pl.DataFrame:
    """Return the row of the store's table ``calibrations``.

    Parameters
    ----------
    calibration
        Calibration.
    host, scope, reference_scope
        What it is about.

    Returns
    -------
    pl.DataFrame
        One row.

    Examples
    --------
    >>> from joulebook.calibration import refused
    >>> row(refused("no points"), host="node", scope="board", reference_scope="node")["status"].item()
    'refused'
    """
    names = ("gain", "gain_lo", "gain_hi", "offset_w", "offset_lo", "offset_hi", "range_lo_w", "range_hi_w", "points")
    numbers = {n: [getattr(calibration, n)] for n in names}
    keys = {"host": [host], "scope": [scope], "reference_scope": [reference_scope]}
    return schema.conform(
        pl.DataFrame({**keys, **numbers, "status": [calibration.status], "reason": [calibration.reason]}),
        "calibrations",
    )


def points(calibration: Calibration, *, host: str, scope: str, reference_scope: str) -> pl.DataFrame:
    """Return the rows of the store's table ``calibration_points``: the points with their intervals, and the line at each.

    Parameters
    ----------
    calibration
        Calibration.
    host, scope, reference_scope
        What it is about.

    Returns
    -------
    pl.DataFrame
        One row a point, in order of the reading; empty where there are none.

    Examples
    --------
    >>> from joulebook.calibration import refused
    >>> points(refused("no points"), host="node", scope="board", reference_scope="node").height
    0
    """
    if calibration.frame is None:
        return schema.table("calibration_points").empty()
    seen = calibration.frame.sort("reading_w", "reference_w")
    ends = [
        (pl.col(f"{side}_w") + sign * Z95 * pl.col(f"{side}_se_w")).alias(f"{side}_{end}")
        for side in ("reading", "reference")
        for sign, end in ((-1.0, "lo"), (1.0, "hi"))
    ]
    if calibration.gain is None or "fitted_w" not in seen.columns:
        fitted = [pl.lit(None, pl.Float64).alias(f"fitted_{end}") for end in ("w", "lo", "hi")]
        kept = pl.lit(False).alias("kept")
    else:
        half = pl.Series(half_width(calibration, seen["reading_w"].to_numpy(), 0.0))
        fitted = [
            pl.col("fitted_w"),
            *((pl.col("fitted_w") + s * half).alias(f"fitted_{e}") for s, e in ((-1, "lo"), (1, "hi"))),
        ]
        kept = pl.col("kept")
    about = {"host": host, "scope": scope, "reference_scope": reference_scope}
    keys = [pl.lit(value).alias(name) for name, value in about.items()]
    return schema.conform(seen.select(*keys, "reading_w", "reference_w", *ends, *fitted, kept), "calibration_points")
