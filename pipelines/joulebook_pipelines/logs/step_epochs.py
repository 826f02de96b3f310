"""Logs whose steps begin anew in each epoch: one that comes again in a later epoch is another step, not one that was done twice."""

from __future__ import annotations

import polars as pl

from joulebook.findings import Finding, Severity

LEAST_SHARE = 0.5
"""Share of the beginnings of epochs at which the steps must begin anew as well: after a restart the steps fall within an epoch."""


def numbered(told: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return the lines with steps that are numbered through all epochs, and the steps of an epoch (0: they were already).

    Parameters
    ----------
    told
        ``run_id, epoch, step`` of each line, in file order, a line a step.

    Examples
    --------
    >>> lines = pl.DataFrame({"run_id": "r", "epoch": [0.0, 0.0, 1.0, 1.0], "step": [1.0, 2.0, 1.0, 2.0]})
    >>> numbered(lines)[0]["step"].to_list()
    [1.0, 2.0, 3.0, 4.0]
    """
    known = told.filter(pl.col("epoch").is_not_null() & pl.col("step").is_not_null())
    begins = (pl.col("epoch") - pl.col("epoch").shift(1)).over("run_id") > 0
    anew = (pl.col("step") - pl.col("step").shift(1)).over("run_id") <= 0
    whole = bool((known["epoch"] % 1 == 0).all())
    seen = known.select(begins=begins.sum(), both=(begins & anew).sum()).row(0)
    if not whole or not seen[1] or seen[1] < LEAST_SHARE * seen[0]:
        return told, 0
    first_step, first_epoch = known["step"].min(), known["epoch"].min()
    assert isinstance(first_step, float)
    assert isinstance(first_epoch, float)
    highest = known["step"].max()
    assert isinstance(highest, float)
    # Epochs whose steps count from 0 have one more than their highest number.
    steps = int(highest) + (1 if first_step == 0 else 0)
    through = pl.col("step") + (pl.col("epoch") - first_epoch) * steps
    return told.with_columns(step=pl.when(pl.col("epoch").is_not_null()).then(through).otherwise("step")), steps


def finding(name: str, steps: int) -> Finding:
    """Say that the numbers of the steps are not those of the log."""
    return Finding(
        "steps-begin-anew", Severity.NOTE, name,
        f"The steps begin anew in each epoch: they are numbered through all epochs, with {steps} steps an epoch, the most that "
        "the log has.",
        {"steps": steps},
    )  # fmt: skip
