"""A calibration as a plain record, so that it can be stored, dated, and applied to a later study."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from joulebook import schema
from joulebook.calibration import Calibration
from joulebook.findings import Finding, Severity

KIND = "joulebook-calibration"

VERSION = 1

OLD_DAYS = 365
"""Age from which a stored calibration is doubted [days]: the usual interval at which power meters are calibrated."""

_NUMBERS = (
    "gain", "gain_lo", "gain_hi", "offset_w", "offset_lo", "offset_hi", "range_lo_w", "range_hi_w", "between_w",
    "reduced_chi2",
)  # fmt: skip
"""Fields of a calibration that are a number or nothing."""

_NEEDED = ("gain", "offset_w", "range_lo_w", "range_hi_w")
"""Fields without which nothing can be applied."""


@dataclass(frozen=True)
class Record:
    """A calibration and what it is about.

    Parameters
    ----------
    calibration
        The relation, without its points.
    host
        Machine that it was made on.
    scope, reference_scope
        Boundary of the readings, and of the reference that they are turned into.
    meter
        Instrument that was the reference.
    made_on
        Day of the measurement.
    note
        Whatever the person who made it wants known.
    """

    calibration: Calibration
    host: str
    scope: str
    reference_scope: str
    meter: str
    made_on: datetime.date
    note: str = field(default="")


def to_dict(record: Record) -> dict[str, object]:
    """Return a record as plain values that JSON can hold.

    Parameters
    ----------
    record
        Calibration and what it is about.

    Returns
    -------
    dict
        Text, numbers, lists of numbers and ``None``. The points are not part of it.

    Raises
    ------
    ValueError
        The calibration was refused: there is nothing to store.

    Examples
    --------
    >>> from datetime import date
    >>> from joulebook import calibrate
    >>> import polars as pl
    >>> one = calibrate.fit(pl.DataFrame({"reading_w": [135.0], "reference_w": [125.0]}))
    >>> stored = to_dict(Record(one, "node7", "board", "node", "WT310E C3XA04010E", date(2026, 11, 1)))
    >>> stored["offset_w"], stored["made_on"]
    (-10.0, '2026-11-01')
    >>> from_dict(stored).calibration.offset_w
    -10.0
    """
    c = record.calibration
    if c.gain is None or c.offset_w is None:
        raise ValueError(f"calibration: a refused one cannot be stored ({c.reason})")
    return {
        "kind": KIND, "version": VERSION, "host": record.host, "scope": record.scope,
        "reference_scope": record.reference_scope, "meter": record.meter, "made_on": record.made_on.isoformat(),
        "note": record.note, "status": c.status, "reason": c.reason, "points": c.points,
        **{name: getattr(c, name) for name in _NUMBERS},
        "covariance": list(c.covariance), "quantile": c.quantile, "curvature_w": c.curvature_w,
    }  # fmt: skip


def from_dict(stored: Mapping[str, object]) -> Record:
    """Return the record that was stored.

    Parameters
    ----------
    stored
        What :func:`to_dict` returned, after a way through a file.

    Returns
    -------
    Record
        Its calibration can be given to ``calibrate.predict`` and ``calibrate.apply`` like a fresh one.

    Raises
    ------
    ValueError
        It is not a calibration, a key is missing, or a value is not what the key needs.

    Examples
    --------
    >>> from_dict({"kind": "shopping list"})
    Traceback (most recent call last):
        ...
    ValueError: calibration: kind = 'shopping list', must be 'joulebook-calibration'
    """
    if stored.get("kind") != KIND:
        raise ValueError(f"calibration: kind = {stored.get('kind')!r}, must be {KIND!r}")
    if stored.get("version") != VERSION:
        raise ValueError(f"calibration: version = {stored.get('version')!r}, must be {VERSION}")
    number: dict[str, Any] = {name: _number(stored, name, needed=name in _NEEDED) for name in _NUMBERS}
    for name in ("scope", "reference_scope"):
        if _text(stored, name) not in schema.SCOPES:
            raise ValueError(f"calibration: {name} = {stored[name]!r}, must be one of {', '.join(schema.SCOPES)}")
    status = _text(stored, "status")
    if status not in ("calibrated", "offset-only"):
        raise ValueError(f"calibration: status = {status!r}, must be 'calibrated' or 'offset-only'")
    calibration = Calibration(
        **number, points=int(_number(stored, "points") or 0), status=status, reason=_text(stored, "reason"),
        covariance=_covariance(stored), quantile=_number(stored, "quantile") or 0.0,
        curvature_w=_number(stored, "curvature_w") or 0.0,
    )  # fmt: skip
    return Record(
        calibration, _text(stored, "host"), _text(stored, "scope"), _text(stored, "reference_scope"),
        _text(stored, "meter"), _day(stored), _text(stored, "note", default=""),
    )  # fmt: skip


def doubts(
    record: Record, *, host: str, scope: str, reference_scope: str, used_on: datetime.date
) -> tuple[Finding, ...]:
    """Return what speaks against applying a stored calibration here.

    Parameters
    ----------
    record
        Stored calibration.
    host, scope, reference_scope
        What it is to be applied to.
    used_on
        Day of the readings.

    Returns
    -------
    tuple of Finding
        An error where the boundaries differ, a warning for another host, one for an old calibration; empty where
        nothing does.

    Examples
    --------
    >>> from datetime import date
    >>> from joulebook import calibrate
    >>> import polars as pl
    >>> one = calibrate.fit(pl.DataFrame({"reading_w": [135.0], "reference_w": [125.0]}))
    >>> kept = Record(one, "node7", "board", "node", "WT310E", date(2025, 1, 1))
    >>> found = doubts(kept, host="node8", scope="board", reference_scope="node", used_on=date(2026, 11, 1))
    >>> [f.code for f in found]
    ['calibration-other-host', 'calibration-old']
    """
    subject = f"{host}: {scope} against {reference_scope}"
    out: list[Finding] = []
    if (record.scope, record.reference_scope) != (scope, reference_scope):
        out.append(Finding(
            "calibration-other-scope", Severity.ERROR, subject,
            f"The stored calibration turns {record.scope} into {record.reference_scope}: it is not applied to {scope} "
            f"and {reference_scope}.", {"scope": record.scope, "reference_scope": record.reference_scope},
        ))  # fmt: skip
    if record.host != host:
        out.append(Finding(
            "calibration-other-host", Severity.WARNING, subject,
            f"The calibration was made on {record.host}; sensors of one model differ by several percent. "
            "Calibrate this host.", {"host": record.host},
        ))  # fmt: skip
    age = (used_on - record.made_on).days
    if not 0 <= age <= OLD_DAYS:
        what = f"{age} days before the readings" if age > 0 else f"{-age} days after them"
        out.append(Finding(
            "calibration-old", Severity.WARNING if age > 0 else Severity.NOTE, subject,
            f"The calibration was made {what} ({record.made_on.isoformat()}, {record.meter}).",
            {"made_on": record.made_on.isoformat(), "age_days": age, "limit_days": OLD_DAYS},
        ))  # fmt: skip
    return tuple(out)


def _number(stored: Mapping[str, object], name: str, *, needed: bool = True) -> float | None:
    """Return a finite number."""
    value = stored.get(name)
    if value is None and not needed:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"calibration: {name} = {value!r}, must be a finite number")
    return float(value)


def _text(stored: Mapping[str, object], name: str, *, default: str | None = None) -> str:
    """Return a text."""
    value = stored.get(name, default)
    if not isinstance(value, str):
        raise ValueError(f"calibration: {name} = {value!r}, must be a text")
    return value


def _covariance(stored: Mapping[str, object]) -> tuple[float, float, float]:
    """Return var(offset), cov and var(gain), which must be those of two numbers."""
    value = stored.get("covariance")
    parts = list(value) if isinstance(value, (list, tuple)) else []
    numbers = [float(v) for v in parts if isinstance(v, (int, float)) and math.isfinite(v)]
    if len(parts) != 3 or len(numbers) != 3 or min(numbers[0], numbers[2]) < 0:
        raise ValueError(f"calibration: covariance = {value!r}, must be var(offset), cov, var(gain)")
    return numbers[0], numbers[1], numbers[2]


def _day(stored: Mapping[str, object]) -> datetime.date:
    """Return the day of the measurement."""
    value = _text(stored, "made_on")
    try:
        return datetime.date.fromisoformat(value)
    except ValueError as error:
        raise ValueError(f"calibration: made_on = {value!r}, must be a day such as 2026-11-01") from error
