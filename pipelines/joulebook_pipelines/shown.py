"""How a number is shown: with its unit, and as many digits as its interval deserves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from joulebook_pipelines.metrics import NO_UNIT, Unit, unit_for

PUNCTUATION_SPACE, FIGURE_SPACE, THIN = "\u2008", "\u2007", "\u202f"

_MOST = 5
"""Digits of a value at most: no meter is better than a part in a hundred thousand."""
_LEAST_WIDTH = 1e-6
"""Parts of an uncertainty below this, in the unit shown, are only said to be below it: zeros are not read."""
_SKEW = 0.15
"""Ends that are so much of their mean distance from the same distance to the value still read as ±."""


@dataclass(frozen=True)
class Mark:
    """A footnote mark beside a number."""

    text: str
    href: str


@dataclass(frozen=True)
class Number:
    """A number as it stands on the page; ``text`` is an en dash where it was refused, with the reason."""

    text: str
    plain: str = ""
    interval: str = ""
    unit: str = ""
    reason: str = ""
    marks: tuple[Mark, ...] = ()
    half: str = ""
    pad: str = ""

    @property
    def refused(self) -> bool:
        """Whether there is no value."""
        return not self.plain

    @property
    def inline(self) -> str:
        """Value and unit as running text."""
        return f"{self.text} {self.unit}".strip()

    @property
    def spread(self) -> str:
        """What stands beside the value: ± where the interval is as wide on both sides, else its ends."""
        return f"± {self.half}" if self.half else self.interval

    @property
    def sentence(self) -> str:
        """Value, half interval and unit where the interval is symmetric; else value and unit."""
        return f"{self.text} ± {self.half} {self.unit}".strip() if self.half else self.inline

    @property
    def full(self) -> str:
        """Value, interval and unit, whether or not the interval is symmetric."""
        return " ".join(part for part in (self.text, self.spread, self.unit) if part)


def number(
    value: float | None,
    lo: float | None = None,
    hi: float | None = None,
    *,
    unit: Unit = NO_UNIT,
    reason: str = "",
    marks: tuple[Mark, ...] = (),
) -> Number:
    """Return a stored value in a unit, with two digits of its half interval, or its refusal.

    Examples
    --------
    >>> n = number(3.361e6, 3.358e6, 3.364e6, unit=Unit("kWh", 3.6e6))
    >>> n.text, n.interval, n.plain
    ('0.93361', '[0.93278, 0.93444]', '0.93361 kWh')
    >>> number(None, reason="no tokens known").text
    '–'
    """
    if value is None or not math.isfinite(value):
        return Number("–", reason=reason or "no value", marks=marks)
    ends = [e / unit.size for e in (lo, hi) if e is not None and math.isfinite(e)]
    scaled = value / unit.size
    width = (ends[1] - ends[0]) / 2 if len(ends) == 2 else abs(scaled - ends[0]) if ends else 0.0
    digits = _digits(scaled, width)
    text, written = _write(scaled, digits), [_write(e, digits) for e in ends]
    half = _write(width, digits)
    known = len(ends) == 2 and written != [text, text] and any(c in half for c in "123456789")
    if len(ends) == 1:  # the other end is open
        sign = "≥" if lo is not None and math.isfinite(lo) else "≤"
        return Number(text, _with_unit(scaled, digits, unit), f"{sign} {written[0]}", unit.name, reason, marks)
    if not known:  # an interval that no digit shows is noise on the page
        digits = _digits(scaled, 0.0)
        text = _write(scaled, digits)
    even = known and abs(ends[0] + ends[1] - 2 * scaled) <= _SKEW * width
    return Number(
        text, _with_unit(scaled, digits, unit), f"[{', '.join(written)}]" if known else "", unit.name, reason, marks,
        half if even else "",
    )  # fmt: skip


def width(value: float | None, *, unit: Unit = NO_UNIT, reason: str = "") -> Number:
    """Return a part of an uncertainty in two digits: more would say that doubt is known exactly.

    Examples
    --------
    >>> width(2669.7, unit=Unit("Wh", 3600.0)).text
    '0.74'
    >>> width(8e-7, unit=Unit("Wh", 3600.0)).text
    '< 0.000001'
    """
    if value is None or not math.isfinite(value):
        return Number("–", reason=reason or "no value")
    scaled = value / unit.size
    if 0.0 < abs(scaled) < _LEAST_WIDTH:
        return Number(f"< {_LEAST_WIDTH:f}", f"{scaled:.2g} {unit.name}".strip(), unit=unit.name)
    digits = _within(_two(abs(scaled))) if scaled else 0
    return Number(_write(scaled, digits), _with_unit(scaled, digits, unit), unit=unit.name)


def exact(value: float | None, *, reason: str = "–") -> Number:
    """Return a count or a setting with all its digits.

    Examples
    --------
    >>> exact(1234567).plain, exact(0.5).text
    ('1234567', '0.5')
    """
    if value is None:
        return Number("–", reason=reason)
    plain = str(int(value)) if float(value).is_integer() else repr(float(value))
    return Number(_grouped(plain), plain)


def of_row(row: dict[str, Any] | None, *, unit: Unit | None = None, marks: tuple[Mark, ...] = ()) -> Number:
    """Return the number of a row of ``results``; without a row, that it is not known."""
    if row is None:
        return Number("–", reason="not worked out: the data at this boundary do not allow it")
    one = unit or unit_for(row["metric"], [row["value"]])
    return number(row["value"], row["lo"], row["hi"], unit=one, reason=row["reason"] or "", marks=marks)


def aligned(numbers: Sequence[Number]) -> list[Number]:
    """Return the numbers of a column with the spaces that follow them, so that their decimal points stand in one line.

    Examples
    --------
    >>> [len(n.pad) for n in aligned([Number("1.25", "1.25"), Number("10", "10")])]
    [0, 3]
    """
    most = max((_decimals(n.text) for n in numbers if not n.refused), default=0)
    return [n if n.refused else replace(n, pad=_pad(_decimals(n.text), most)) for n in numbers]


def ratio(value: float | None, lo: float | None = None, hi: float | None = None, *, reason: str = "") -> Number:
    """Return a change as signed per cent."""
    shown = number(value, lo, hi, unit=Unit("%", 0.01), reason=reason)
    return shown if shown.refused or (value or 0) <= 0 else replace(shown, text=f"+{shown.text}")


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])


def _pad(have: int, want: int) -> str:
    return "" if want == 0 else FIGURE_SPACE * (want - have) + (PUNCTUATION_SPACE if have == 0 else "")


def _digits(value: float, half: float) -> int:
    """Return the decimals to show: two digits of the half interval but five of the value at most; else four."""
    size = math.floor(math.log10(abs(value))) if value else 0
    if half > 0:
        return _within(min(_two(half), _MOST - 1 - size) if value else _two(half))
    return _within(3 - size) if value else 0


def _within(digits: int) -> int:
    """Return decimals that a number has: no more than nine, no less than billions."""
    return max(min(digits, 9), -9)


def _two(half: float) -> int:
    """Return the decimals that show two digits of a number as it is written: 0.0999 is 0.10."""
    return 1 - math.floor(math.log10(float(f"{half:.1e}")))


def _plain(value: float, digits: int) -> str:
    rounded = round(value, digits)
    return f"{rounded + 0.0:.{max(digits, 0)}f}"


def _with_unit(value: float, digits: int, unit: Unit) -> str:
    return f"{_plain(value, digits)} {unit.name}".strip()


def _write(value: float, digits: int) -> str:
    return _grouped(_plain(value, digits))


def _grouped(plain: str) -> str:
    """Return digits in threes from five on, with a true minus."""
    whole, point, rest = plain.partition(".")
    grouped = f"{int(whole):,}".replace(",", THIN) if len(whole.lstrip("-")) > 4 else whole
    return (grouped + point + rest).replace("-", "−")
