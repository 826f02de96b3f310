"""How many tokens each step took, whether a log tells it of the step, since the start, or by the second."""

from __future__ import annotations

import polars as pl

SURELY_CUMULATIVE = 5
"""Token counts that rise by about the same amount in this many steps in a row, from that amount on, count from the start."""

ALIKE = 2.0
"""Factor within which rises are about the first count: sequences of one training differ in length by less."""

SURELY_RISING = 20
"""Counts of single steps do not rise in every one of so many steps."""


def of_steps(told: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """Return the lines with ``tokens`` of each step and ``since_s``, and whether ``tokens`` of the log count from its start.

    A step that is done again after a restart makes what it made before.

    Parameters
    ----------
    told
        ``run_id, step, at, tokens, tokens_seen, tokens_per_s`` of each line, in file order.
    """
    seen = pl.col("tokens_seen")
    from_start = pl.when(pl.col("step") <= 1).then(seen)  # the first step is all that was seen
    before = seen.forward_fill().shift(1).over("run_id")
    of_step = pl.when(before.is_null()).then(from_start).when(seen >= before).then(seen - before)
    since_s = (pl.col("at") - pl.col("at").shift(1).over("run_id")).dt.total_microseconds() / 1e6
    told = told.with_columns(since_s=pl.when(since_s > 0).then(since_s), _of_step=of_step)
    told = told.with_columns(
        _of_step=pl.coalesce("_of_step", pl.when(seen.is_not_null()).then(_made_before("_of_step")))
    )
    told = told.with_columns(tokens=pl.coalesce("tokens", "_of_step", pl.col("tokens_per_s") * pl.col("since_s"))).drop(
        "_of_step"
    )
    told = told.with_row_index("_row")
    counted, cumulative = _from_start(told.filter(pl.col("tokens").is_not_null()))
    if not cumulative:
        return told.drop("_row"), False
    told = told.join(counted, on="_row", how="left", maintain_order="left").drop("_row")
    return told.with_columns(tokens=pl.when(pl.col("_counts")).then("_rise").otherwise("tokens")).drop(
        "_rise", "_counts"
    ), True


def _made_before(column: str) -> pl.Expr:
    return pl.col(column).drop_nulls().first().over("run_id", "step")


def _from_start(known: pl.DataFrame) -> tuple[pl.DataFrame, bool]:
    """Return ``_row, _rise, _counts`` of lines with tokens, and whether those of any run count from its start."""
    before = pl.col("tokens").shift(1).over("run_id")
    onwards = (pl.col("step") > pl.col("step").shift(1).over("run_id")).fill_null(value=True)
    first = pl.col("tokens").first().over("run_id")
    rises = known.with_columns(_rise=pl.when(onwards).then(pl.col("tokens") - before), _first=first)
    rise = pl.col("_rise").drop_nulls()
    alike = (rise >= pl.col("_first").first() / ALIKE).all() & (rise <= pl.col("_first").first() * ALIKE).all()
    judged = rises.group_by("run_id").agg(
        _counts=(rise > 0).all() & ((alike & (pl.len() >= SURELY_CUMULATIVE)) | (rise.len() >= SURELY_RISING)),
        _alike=alike,
    )
    rises = rises.join(judged, on="run_id", how="left", maintain_order="left")
    at_first = pl.int_range(pl.len()).over("run_id") == 0
    rises = rises.with_columns(_rise=pl.when(at_first & pl.col("_alike")).then("tokens").otherwise("_rise"))
    rises = rises.with_columns(_rise=pl.coalesce("_rise", _made_before("_rise")))
    return rises.select("_row", "_rise", "_counts"), bool(judged["_counts"].any())
