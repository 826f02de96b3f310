"""Methods in plain words: the store names them in short."""

from __future__ import annotations

import re

WORDS = {
    "logged phase": "the log says when",
    "regression": "fitted: power of each phase from all of its times",
    "integration": "integrated over its time",
    "remainder": "what the other phases leave",
    "two levels with a dead band": "time at the lower of two levels of power; readings between them change nothing",
    "evenness of gaps": "how even the times between stalls are",
    "trapezoid": "straight lines between readings",
    "means over spans": "mean over each span times its length",
    "steady state": "start of the steady state",
    "steady state from change points and exponential approach": "start of the steady state, from steps and the slow rise of power",
    "sd about the trend without outliers / mean": "spread about the trend, without outliers, over the mean",
    "within a stable segment": "spread within one steady stretch over its mean",
    "counter: difference of a counter": "difference of the device's own energy counter",
}
"""What is put in place of a method's name, or of each part of it between semicolons and commas."""


def told(method: str | None) -> str:
    """Return how a number was made in plain words; what has none is shown as the store has it.

    Examples
    --------
    >>> told("trapezoid; meter-csv (meter.csv)")
    'straight lines between readings; meter-csv (meter.csv)'
    >>> told("logged phase; regression")
    'the log says when; fitted: power of each phase from all of its times'
    """
    text = method or ""
    return WORDS.get(text) or "".join(WORDS.get(part, part) for part in re.split(r"([;,] )", text))
