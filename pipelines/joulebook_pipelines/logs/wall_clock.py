"""The times of training logs: whether they are moments at all, how they are written, and their clock."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from joulebook_pipelines.logs import local_time, stamps
from joulebook_pipelines.logs.contract import Log, LogRefusedError

_NUMBER = re.compile(r"^\d+(\.\d+)?$")

FALLS_OF_DURATIONS = 0.05
"""Share of lines before which a clock is not ahead: a restart sets it back once, durations are now longer, now shorter."""


def form(log: Log, samples: Sequence[str]) -> stamps.StampForm:
    """Return the form of a log's stamps.

    Raises
    ------
    LogRefusedError
        There are none, or their form or zone is not known.
    """
    numbers = [s for s in samples if _NUMBER.match(s.strip())]
    # One damaged stamp among numbers must not hide what the others are.
    found = local_time.form(log, numbers if 2 * len(numbers) > len(samples) else samples)
    if found.pattern == "relative":
        raise LogRefusedError(
            f"{log.name}: the times ({samples[0]!r}) are seconds since an unknown start; log wall-clock time, or Unix time"
        )
    if not found.aware and log.options.timezone is None and log.options.utc_offset_s is None:
        raise LogRefusedError(
            f'{log.name}: the stamps ({samples[0]!r}) carry no zone; add timezone = "Area/City" to [study] or to this [[source]], or '
            "utc_offset_s"
        )
    return found


def are_durations(samples: Sequence[str]) -> bool:
    """Tell whether what is called a time is how long each step took: small numbers that do not grow.

    Examples
    --------
    >>> are_durations(["0.52", "0.51", "0.52"]), are_durations(["0.5", "1.0", "1.5"]), are_durations(["1793610010", "1793610009"])
    (True, False, False)
    """
    if len(samples) < 2 or not all(_NUMBER.match(s.strip()) for s in samples):
        return False
    values = [float(s) for s in samples]
    falls = sum(b <= a for a, b in itertools.pairwise(values))
    return max(values) < stamps.EPOCH_2000_S and falls > FALLS_OF_DURATIONS * (len(values) - 1)


def of(log: Log, form: stamps.StampForm) -> local_time.Localiser:
    """Return what turns stamps of that form into UTC."""
    return (
        local_time.Localiser(None)
        if form.aware
        else local_time.Localiser(log.options.timezone, log.options.utc_offset_s)
    )
