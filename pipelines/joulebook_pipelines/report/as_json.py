"""The numbers of a study for machines: ``report.json``."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from joulebook_pipelines.report.source import Source, StoreView

SCHEMA_VERSION = 1
"""Version of the layout of ``report.json``: rises when a key changes its meaning or goes."""
TABLES = ("results", "changes", "sweet_spots", "findings")


def to_json(store: StoreView) -> dict[str, Any]:
    """Return all rows of results, changes, sweet spots and findings as plain values.

    Parameters
    ----------
    store
        An open store.

    Returns
    -------
    dict
        ``schema_version``, ``study`` (its name) and one list of rows per table. What is not a number is ``None``.
    """
    rows = {t: [{k: _plain(v) for k, v in r.items()} for r in store.table(t).iter_rows(named=True)] for t in TABLES}
    return {"schema_version": SCHEMA_VERSION, "study": Source(store).name, **rows}


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.isoformat() if isinstance(value, datetime) else value
