"""Lengths of runs as people and libraries spell them: ``1:05:00``, ``0 days 00:30:00.25``, ``1h 5m 0s``."""

from __future__ import annotations

import polars as pl

_CLOCK = r"^(?:(\d+) days?,? )?(\d+):([0-5]\d):([0-5]\d(?:[.,]\d+)?)$"
"""Hours, minutes and seconds; two parts alone may be hours and minutes or minutes and seconds."""

_SPELLED = (
    r"^(?:(\d+)\s*d(?:ays?)?[\s,]*)?(?:(\d+)\s*h(?:(?:ou)?rs?)?[\s,]*)?(?:(\d+)\s*m(?:in(?:ute)?s?)?[\s,]*)?"
    r"(?:(\d+(?:\.\d+)?)\s*s(?:ec(?:ond)?s?)?)?$"
)
_SECONDS = (86_400.0, 3_600.0, 60.0, 1.0)


def seconds(column: pl.Expr) -> pl.Expr:
    """Return the seconds of cells that spell a length, null where a cell does not.

    Examples
    --------
    >>> cells = pl.DataFrame({"c": ["1:05:00.5", "0 days 00:30:00", "1h 5m 0s", "45 min", "12.5s", "12.5", "45:12", ""]})
    >>> cells.select(seconds(pl.col("c"))).to_series().to_list()
    [3900.5, 1800.0, 3900.0, 2700.0, 12.5, None, None, None]
    """
    text = column.str.strip_chars(' "').str.to_lowercase()
    said = text.str.contains(r"\d\s*[dhms]") | text.str.contains(r":\d\d:")
    return pl.when(said).then(pl.coalesce(_of(text, _CLOCK), _of(text, _SPELLED)))


def _of(text: pl.Expr, pattern: str) -> pl.Expr:
    """Return the sum of the parts that a pattern finds, null where it does not fit."""
    groups = text.str.extract_groups(pattern)
    parts = [groups.struct.field(str(i + 1)).str.replace(",", ".", literal=True).cast(pl.Float64) for i in range(4)]
    total = pl.sum_horizontal([p.fill_null(0.0) * s for p, s in zip(parts, _SECONDS, strict=True)])
    return pl.when(text.str.contains(pattern)).then(total)


def are_spelled(cells: pl.Series) -> bool:
    """Tell whether all cells that say something spell a length, so that no unit is missing."""
    told = cells.str.strip_chars(' "').replace("", None).drop_nulls().to_frame("c")
    return told.height > 0 and told.select(seconds(pl.col("c")).is_not_null().all()).item() is True
