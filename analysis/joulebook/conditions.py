"""What must be equal before runs may be averaged or compared, and what differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import polars as pl

from joulebook.findings import Finding, Severity

MUST_BE_EQUAL: Final = (
    "device_model", "devices", "driver", "scope", "power_limit_w", "clock_limit_hz", "precision", "batch_size",
    "variant",
)  # fmt: skip
"""Conditions that must be equal before runs may be averaged."""


def differences(runs: pl.DataFrame, *, equal: Sequence[str] = MUST_BE_EQUAL) -> tuple[Finding, ...]:
    """Name the conditions in which runs differ.

    Parameters
    ----------
    runs
        One row a run: ``run_id`` and any of the conditions.
    equal
        Columns that must hold one value.

    Returns
    -------
    tuple of Finding
        One a condition that differs, with the runs of each value; columns that are absent are not judged.

    Examples
    --------
    >>> runs = pl.DataFrame({"run_id": ["a", "b"], "driver": ["550.1", "560.2"]})
    >>> differences(runs)[0].message
    'Runs differ in driver: 550.1 (a), 560.2 (b). Compare only runs of one driver.'
    """
    out = []
    for name in (c for c in equal if c in runs.columns):
        values = runs.group_by(name, maintain_order=True).agg("run_id")
        if values.height > 1:
            text = ", ".join(f"{value} ({', '.join(ids)})" for value, ids in values.iter_rows())
            message = f"Runs differ in {name}: {text}. Compare only runs of one {name}."
            out.append(Finding("conditions-differ", Severity.ERROR, name, message, {"condition": name}))
    return tuple(out)
