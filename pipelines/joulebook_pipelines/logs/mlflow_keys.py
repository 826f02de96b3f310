"""Histories of metrics as MLflow keeps them, a row a value: which of them are about training steps."""

from __future__ import annotations

import re

from joulebook_pipelines.logs import dialect, step_names
from joulebook_pipelines.logs.contract import Head

TITLES = frozenset({"key", "value", "timestamp", "step"})
"""Columns of a history (https://mlflow.org/docs/latest/ml/tracking: key, value, timestamp in ms, step)."""

_METERED = re.compile(r"power|watt|energy|joule|kwh", re.IGNORECASE)


def titles(line: str) -> list[str]:
    """Return the titles of a line of cells, in lower case."""
    return [c.strip().strip('"').lower() for c in line.split(",")]


def of_steps(head: Head) -> dict[str, str]:
    r"""Return the keys that are things of a training step; none where some key is of a power: such a file is of readings.

    Examples
    --------
    >>> of_steps(Head("m.csv", "key,value,timestamp,step\ntrain_loss,7.5,1793696410250,1\n", "utf-8", True))
    {'train_loss': 'loss'}
    """
    told = titles(head.lines[0])
    if not set(told) >= TITLES:
        return {}
    lines = head.lines[1:] if head.complete else head.lines[1:-1]
    rows = [dialect.split_line(line, ",") for line in lines]
    keys = tuple(dict.fromkeys(r[told.index("key")].strip() for r in rows if len(r) == len(told)))
    if any(map(_METERED.search, keys)):
        return {}
    return {k: q for q, k in step_names.known_names(keys).items() if q in step_names.VALUES}
