"""Whether the column of a run table that names no device is the sum of those that do: then it covers what they cover, and no more."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

ADDS_UP = 1e-3
"""Part by which a sum of rounded energies may miss the total."""

_COMPONENTS = frozenset({"board", "package", "dram"})


def of(frames: Sequence[pl.DataFrame], scopes: Sequence[str]) -> int | None:
    """Return the place of the frame without a boundary whose energies are the sums of those with one; ``None`` where there is none.

    Parameters
    ----------
    frames
        ``line, energy_j`` of each device.
    scopes
        The boundary of each, ``""`` where none is known.

    Examples
    --------
    >>> cpu, dram, both = (pl.DataFrame({"line": [2, 3], "energy_j": e}) for e in ([4.0, 5.0], [1.0, 1.5], [5.0, 6.5]))
    >>> of([cpu, dram, both], ["package", "dram", ""]), of([cpu, both], ["package", ""])
    (2, None)
    """
    at = [i for i, s in enumerate(scopes) if s == ""]
    parts = [f for f, s in zip(frames, scopes, strict=True) if s in _COMPONENTS]
    if len(at) != 1 or len(parts) < 2 or any("energy_j" not in f.columns for f in (*parts, frames[at[0]])):
        return None
    told = pl.concat([p.select("line", "energy_j") for p in parts]).group_by("line").agg(
        pl.col("energy_j").sum().alias("parts"), pl.col("energy_j").count().alias("count")
    )  # fmt: skip
    both = (
        frames[at[0]]
        .select("line", "energy_j")
        .join(told, on="line")
        .drop_nulls()
        .filter(pl.col("count") == len(parts))
    )
    off = (both["energy_j"] - both["parts"]).abs() > ADDS_UP * both["energy_j"].abs()
    return at[0] if both.height and not off.any() else None
