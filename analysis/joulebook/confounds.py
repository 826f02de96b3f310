"""What else changed with a change of a campaign: the effect is of all of it together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import polars as pl

from joulebook.findings import Finding, Severity


def find(runs: pl.DataFrame, *, order: Sequence[str], columns: Sequence[str]) -> tuple[Finding, ...]:
    """Return what differs, besides the variant, between all runs before a change and all runs after it.

    Parameters
    ----------
    runs
        One row a run: ``variant`` and the columns.
    order
        Variants in the order in which the changes were made.
    columns
        What should not change with the variant: host, driver, or any other label. Where runs of one variant differ in it,
        or have none, it does not go with the variant and is no confound.

    Returns
    -------
    tuple of Finding
        One a change that came with others.

    Examples
    --------
    >>> runs = pl.DataFrame({"variant": ["a", "a", "b", "b"], "driver": ["550", "550", "560", "560"]})
    >>> find(runs, order=["a", "b"], columns=["driver"])[0].evidence
    {'driver': ['550', '560']}
    """
    values = {
        (variant, column): kept.to_list()
        for variant in order
        for column in columns
        if len(kept := runs.filter(pl.col("variant") == variant)[column].unique()) == 1 and kept.null_count() == 0
    }
    return tuple(_findings(values, order, columns))


def _findings(
    values: dict[tuple[str, str], list[object]], order: Sequence[str], columns: Sequence[str]
) -> Iterator[Finding]:
    for before, change in pairwise(order):
        other: dict[str, object] = {}
        for column in columns:
            sides = values.get((before, column)), values.get((change, column))
            if sides[0] and sides[1] and sides[0] != sides[1]:
                other[column] = [sides[0][0], sides[1][0]]
        if not other:
            continue
        told = ", ".join(
            f"{column} ({ends[0]} → {ends[1]})" for column, ends in other.items() if isinstance(ends, list)
        )
        message = (
            f"With {change!r} came a change of {told}: its effect is that of all of it together. If that is not the change "
            f"itself, repeat runs of {before!r} or {change!r} under the conditions of the other."
        )
        yield Finding("campaign-confounded", Severity.WARNING, change, message, other)
