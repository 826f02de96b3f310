"""Runs that ended long before others of their kind: start-up is a large part of them, so they do not speak for their kind."""

from __future__ import annotations

import polars as pl

from joulebook.findings import Finding, Severity

LEAST_SHARE = 0.5
"""A run that lasts less than this share of what is usual for its kind was cut short."""

LEAST_SETTING = {"duration_s": 0.25, "steps": 0.1, "tokens": 0.5}
"""A setting none of whose runs has these shares of what others usually have did not run. Of sweeps of equal time the times do
not differ so much, of equal steps the steps, of equal tokens the tokens."""


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


def without_failed(runs: pl.DataFrame, *, kind: str, name: str = "") -> tuple[pl.DataFrame, tuple[Finding, ...]]:
    """Return the runs without the settings at which every run ended at its beginning, and a finding that names these.

    Out of memory, say: the few steps that such runs log are start-up, and say nothing of the setting.

    Parameters
    ----------
    runs
        One row a run: ``run_id``, ``duration_s`` [s], ``steps`` and ``tokens`` (null where not known) and the column ``kind``.
    kind
        Column whose equal values are one setting.
    name
        What that column is called in words; by default its own name.

    Returns
    -------
    polars.DataFrame
        The rows that stay, in their order.
    tuple of Finding
        Empty where every setting ran.

    Examples
    --------
    >>> runs = pl.DataFrame({"run_id": list("abcd"), "x": [8, 16, 32, 64], "duration_s": [300.0, 299.0, 310.0, 6.0],
    ...     "steps": [600, 400, 250, 2], "tokens": [4800.0, 6400, 8000, 128]})
    >>> kept, (found,) = without_failed(runs, kind="x")
    >>> kept["run_id"].to_list(), found.evidence
    (['a', 'b', 'c'], {'runs': ['d']})
    """
    most = runs.group_by(kind, maintain_order=True).agg(pl.col(*LEAST_SETTING).max())
    short = (pl.col(c) < share * pl.col(c).median() for c, share in LEAST_SETTING.items())
    failed = most.filter(pl.all_horizontal(short).fill_null(value=False))
    if failed.is_empty():
        return runs, ()
    left = runs.filter(pl.col(kind).is_in(failed[kind].to_list()))
    named = ", ".join(f"{x:g} ({seconds:.3g} s, {steps} steps)" for x, seconds, steps, _ in failed.iter_rows())
    usual_s, usual = most.select(pl.col("duration_s", "steps").median()).row(0)
    message = (
        f"At {name or kind} {named} no run got beyond its beginning, while others usually last {usual_s:.0f} s and "
        f"{usual:.0f} steps: out of memory, perhaps. Start-up says nothing of the setting, so these runs were set aside."
    )
    finding = Finding("setting-failed", Severity.WARNING, name or kind, message, {"runs": left["run_id"].to_list()})
    return runs.filter(~pl.col(kind).is_in(failed[kind].to_list())), (finding,)
