"""Runs that ended long before others of their kind: start-up is a large part of them, so they do not speak for their kind."""

from __future__ import annotations

import polars as pl

from joulebook.findings import Finding, Severity

LEAST_SHARE = 0.5
"""A run that lasts less than this share of what is usual for its kind was cut short."""


def without(runs: pl.DataFrame, *, kind: str, name: str = "") -> tuple[pl.DataFrame, tuple[Finding, ...]]:
    """Return the runs without those that were cut short, and a finding that names these.

    Parameters
    ----------
    runs
        One row a run: ``run_id``, ``duration_s`` [s] and the column ``kind``.
    kind
        Column whose equal values make runs comparable: the setting of a sweep, the variant of a campaign.
    name
        What that column is called in words; by default its own name.

    Returns
    -------
    polars.DataFrame
        The rows that stay, in their order.
    tuple of Finding
        Empty where none was cut short.

    Examples
    --------
    >>> runs = pl.DataFrame({"run_id": list("abcd"), "x": [8, 8, 8, 16], "duration_s": [300.0, 299.0, 40.0, 40.0]})
    >>> kept, (found,) = without(runs, kind="x")
    >>> kept["run_id"].to_list(), found.evidence
    (['a', 'b', 'd'], {'runs': ['c']})
    """
    usual = pl.col("duration_s").median().over(kind)
    short = (pl.col("duration_s") < LEAST_SHARE * usual).fill_null(value=False)
    left = runs.filter(short).unique("run_id", maintain_order=True)
    if left.is_empty():
        return runs, ()
    named = [f"{run_id} ({seconds:.4g} s)" for run_id, seconds in left.select("run_id", "duration_s").iter_rows()]
    message = (
        f"{', '.join(named[:8])}{' …' if len(named) > 8 else ''} lasted less than half as long as runs of the same "
        f"{name or kind} do: cut short, so start-up is a larger part of them. They were set aside."
    )
    finding = Finding("runs-cut-short", Severity.WARNING, name or kind, message, {"runs": left["run_id"].to_list()})
    return runs.filter(~short), (finding,)
