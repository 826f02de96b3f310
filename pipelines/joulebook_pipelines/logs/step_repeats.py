"""Steps that were done again after a restart: what they cost is spent twice, what they made counts once."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def totals(told: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return ``run_id`` and the total of each name: a step that was done several times counts with the last one that tells it.

    Lines of one step that follow each other are of one time: micro-steps, or a line for each of its values.

    Parameters
    ----------
    told
        ``run_id, step`` and the names, of each line, in file order.
    names
        Columns; the total of one that no line tells is null.

    Examples
    --------
    >>> lines = pl.DataFrame({"run_id": "r", "step": [1, 2, 2, 3, 2, 3], "tokens": [10, 5, 5, 10, 20, None]})
    >>> totals(lines, ["tokens"])["tokens"].to_list()
    [40]
    """
    numbered = told.with_columns(_time=pl.struct("run_id", "step").rle_id())
    for name in names:
        time = pl.when(pl.col(name).is_not_null()).then("_time")
        counts = (pl.col("_time") == time.max().over("run_id", "step")) | pl.col("step").is_null()
        numbered = numbered.with_columns(pl.when(counts).then(name).alias(name))
    known = [pl.when(pl.col(n).is_not_null().any()).then(pl.col(n).sum()).alias(n) for n in names]
    return numbered.group_by("run_id", maintain_order=True).agg(known)
