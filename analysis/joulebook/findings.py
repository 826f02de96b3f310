"""What a method hands back beside its frame: estimates with their interval, and findings that travel with the data."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding matters to the reader of a number."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Finding:
    """Something the reader of a number should know.

    Parameters
    ----------
    code
        Stable kebab-case name, e.g. ``"gap-not-bridged"``.
    severity
        ``note`` informs, ``warning`` casts doubt on a number, ``error`` says that a number was not given.
    subject
        What it is about: a file, device, run, clock.
    message
        One or two sentences: what is the case, and what to do.
    evidence
        Plain values (JSON) that prove it.
    """

    code: str
    severity: Severity
    subject: str
    message: str
    evidence: Mapping[str, object] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        mark = {"note": "ℹ", "warning": "▲", "error": "✖"}[self.severity]
        text = (html.escape(part) for part in (self.code, self.subject, self.message))
        code, subject, message = text
        return f"<p>{mark} <b>{code}</b> ({self.severity}) — {subject}: {message}</p>"


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, or a refusal with its reason.

    Parameters
    ----------
    value, lo, hi
        Value and the ends of its 95 % interval, in ``unit``; ``None`` where refused.
    unit
        SI unit as text, ``""`` for a ratio.
    n
        Readings behind it.
    n_eff
        Independent readings behind it, after autocorrelation.
    method
        Name of the method, for the ``method`` column.
    reason
        Why it was refused or is doubtful; empty when it is neither.
    """

    value: float | None
    lo: float | None = None
    hi: float | None = None
    unit: str = ""
    n: int | None = None
    n_eff: float | None = None
    method: str = ""
    reason: str = ""

    @classmethod
    def refused(cls, reason: str, *, unit: str = "", n: int | None = None, method: str = "") -> Estimate:
        """Return the refusal of a number: no value, only the reason.

        Examples
        --------
        >>> Estimate.refused("no readings", unit="J").value is None
        True
        """
        return cls(None, unit=unit, n=n, method=method, reason=reason)

    @property
    def half_width(self) -> float | None:
        """Half of the interval, in ``unit``; ``None`` where there is none."""
        return None if self.lo is None or self.hi is None else (self.hi - self.lo) / 2

    def __str__(self) -> str:
        if self.value is None:
            return f"– ({self.reason})"
        if self.lo is None or self.hi is None:
            return f"{self.value:.6g} {self.unit}".strip()
        return f"{rounded(self.value, self.lo, self.hi)} {self.unit}".strip()

    def _repr_html_(self) -> str:
        return f"<span>{html.escape(str(self))}</span>"


def rounded(value: float, lo: float, hi: float) -> str:
    """Return ``value [lo, hi]`` with as many digits as the interval deserves (two of its half width).

    Examples
    --------
    >>> rounded(1743.21, 1731.0, 1755.4)
    '1743 [1731, 1755]'
    """
    half = (hi - lo) / 2
    if not (half > 0 and math.isfinite(half)):
        return f"{value:.6g} [{lo:.6g}, {hi:.6g}]"
    digits = max(1 - math.floor(math.log10(float(f"{half:.1e}"))), 0)  # two digits of what is written: 0.0999 is 0.10
    return f"{value:.{digits}f} [{lo:.{digits}f}, {hi:.{digits}f}]"
