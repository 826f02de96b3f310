"""Sets of half-open intervals ``[start_utc, end_utc)``: union, intersection, difference, gaps, length."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from joulebook.schema import UTC

INTERVALS_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {"start_utc": UTC, "end_utc": UTC}


def of(*pairs: tuple[datetime, datetime]) -> pl.DataFrame:
    """Return the set of the given intervals, merged and in order.

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> t = [datetime(2026, 1, 1, h, tzinfo=timezone.utc) for h in range(4)]
    >>> of((t[2], t[3]), (t[0], t[1]), (t[1], t[2])).height
    1
    """
    return union(pl.DataFrame(list(pairs), schema=INTERVALS_SCHEMA, orient="row"))


def _checked(intervals: pl.DataFrame) -> pl.DataFrame:
    missing = [c for c in INTERVALS_SCHEMA if c not in intervals.columns]
    if missing:
        raise ValueError(f"intervals: no column {', '.join(missing)}; it has {', '.join(intervals.columns)}")
    frame = intervals.select(pl.col(c).cast(UTC) for c in INTERVALS_SCHEMA).drop_nulls()
    return frame.filter(pl.col("end_utc") > pl.col("start_utc"))


def union(*several: pl.DataFrame) -> pl.DataFrame:
    """Return what lies in any of the sets: merged, in order; empty intervals vanish and touching ones become one.

    Parameters
    ----------
    several
        Frames with ``start_utc`` and ``end_utc``.

    Returns
    -------
    pl.DataFrame
        ``start_utc``, ``end_utc``.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> t = [datetime(2026, 1, 1, h, tzinfo=timezone.utc) for h in range(4)]
    >>> union(of((t[0], t[2])), of((t[1], t[3])))["end_utc"].to_list() == [t[3]]
    True
    """
    if not several:
        return pl.DataFrame(schema=INTERVALS_SCHEMA)
    frame = pl.concat([_checked(s) for s in several]).sort("start_utc")
    reached = pl.col("end_utc").cum_max().shift(1)
    island = (pl.col("start_utc") > reached).fill_null(value=True).cum_sum()
    merged = frame.group_by(island.alias("island"), maintain_order=True)
    return merged.agg(pl.col("start_utc").first(), pl.col("end_utc").max()).drop("island")


def _combined(a: pl.DataFrame, b: pl.DataFrame, *, in_b: int) -> pl.DataFrame:
    """Return what lies in ``a`` and, as ``in_b`` says (1 or 0), in ``b`` or not."""
    events = []
    for frame, column in ((union(a), "a"), (union(b), "b")):
        for at, change in (("start_utc", 1), ("end_utc", -1)):
            zero = {c: pl.lit(0, dtype=pl.Int64) for c in ("a", "b")} | {column: pl.lit(change, dtype=pl.Int64)}
            events.append(frame.select(pl.col(at).alias("start_utc"), *(e.alias(c) for c, e in zero.items())))
    inside = (
        pl.concat(events)
        .group_by("start_utc").agg(pl.col("a").sum(), pl.col("b").sum()).sort("start_utc")
        .with_columns(pl.col("a").cum_sum(), pl.col("b").cum_sum(), pl.col("start_utc").shift(-1).alias("end_utc"))
        .filter((pl.col("a") == 1) & (pl.col("b") == in_b))
    )  # fmt: skip
    return union(inside)


def intersect(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """Return what lies in both sets.

    Parameters
    ----------
    a, b
        Frames with ``start_utc`` and ``end_utc``.

    Returns
    -------
    pl.DataFrame
        ``start_utc``, ``end_utc``.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> t = [datetime(2026, 1, 1, h, tzinfo=timezone.utc) for h in range(4)]
    >>> seconds(intersect(of((t[0], t[2])), of((t[1], t[3]))))
    3600.0
    """
    return _combined(a, b, in_b=1)


def subtract(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """Return what lies in ``a`` and not in ``b``.

    Parameters
    ----------
    a, b
        Frames with ``start_utc`` and ``end_utc``.

    Returns
    -------
    pl.DataFrame
        ``start_utc``, ``end_utc``.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> t = [datetime(2026, 1, 1, h, tzinfo=timezone.utc) for h in range(4)]
    >>> subtract(of((t[0], t[3])), of((t[1], t[2]))).height
    2
    """
    return _combined(a, b, in_b=0)


def clip(intervals: pl.DataFrame, *, start_utc: datetime, end_utc: datetime) -> pl.DataFrame:
    """Return the part of a set inside a window.

    Parameters
    ----------
    intervals
        Frame with ``start_utc`` and ``end_utc``.
    start_utc, end_utc
        The window.

    Returns
    -------
    pl.DataFrame
        ``start_utc``, ``end_utc``.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> t = [datetime(2026, 1, 1, h, tzinfo=timezone.utc) for h in range(4)]
    >>> seconds(clip(of((t[0], t[3])), start_utc=t[1], end_utc=t[2]))
    3600.0
    """
    lo, hi = pl.lit(start_utc).cast(UTC), pl.lit(end_utc).cast(UTC)
    frame = _checked(intervals).select(pl.col("start_utc").clip(lower_bound=lo), pl.col("end_utc").clip(upper_bound=hi))
    return union(frame)


def gaps(intervals: pl.DataFrame, *, start_utc: datetime, end_utc: datetime) -> pl.DataFrame:
    """Return what a set leaves open in a window.

    Parameters
    ----------
    intervals
        Frame with ``start_utc`` and ``end_utc``.
    start_utc, end_utc
        The window.

    Returns
    -------
    pl.DataFrame
        ``start_utc``, ``end_utc``.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> t = [datetime(2026, 1, 1, h, tzinfo=timezone.utc) for h in range(4)]
    >>> seconds(gaps(of((t[1], t[2])), start_utc=t[0], end_utc=t[3]))
    7200.0
    """
    return subtract(of((start_utc, end_utc)), intervals)


def seconds(intervals: pl.DataFrame) -> float:
    """Return the length of a set [s]; overlaps count once.

    Parameters
    ----------
    intervals
        Frame with ``start_utc`` and ``end_utc``.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> t = [datetime(2026, 1, 1, h, tzinfo=timezone.utc) for h in range(3)]
    >>> seconds(pl.DataFrame({"start_utc": [t[0], t[0]], "end_utc": [t[1], t[2]]}))
    7200.0
    """
    lengths = union(intervals).select((pl.col("end_utc") - pl.col("start_utc")).dt.total_microseconds().sum())
    return float(lengths.item() or 0) / 1e6
