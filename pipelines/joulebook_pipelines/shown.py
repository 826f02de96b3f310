"""How a number is shown: its words, its unit, and as many digits as its interval deserves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

PUNCTUATION_SPACE, FIGURE_SPACE, THIN = "\u2008", "\u2007", "\u202f"


@dataclass(frozen=True)
class Unit:
    """A unit that people read: divide the stored number by ``size``."""

    name: str
    size: float = 1.0


ENERGY = (Unit("J"), Unit("Wh", 3.6e3), Unit("kWh", 3.6e6), Unit("MWh", 3.6e9))
POWER = (Unit("W"), Unit("kW", 1e3), Unit("MW", 1e6))
DURATION = (Unit("s"), Unit("min", 60.0), Unit("h", 3600.0), Unit("d", 86400.0))
PER_MILLION = (Unit("Wh", 3.6e-3), Unit("kWh", 3.6))
"""Energy per million tokens, from joules per token."""
COUNT = (Unit(""), Unit("million", 1e6), Unit("billion", 1e9))
_FIT = {
    "energy": (ENERGY, (0.0, 360.0, 3.6e5, 3.6e10)),
    "power": (POWER, (0.0, 1e4, 1e7)),
    "duration": (DURATION, (0.0, 300.0, 36000.0, 864000.0)),
    "per_million": (PER_MILLION, (0.0, 0.36)),
    "count": (COUNT, (0.0, 1e6, 1e9)),
}
"""Units per kind, and from which stored value on each is used."""


@dataclass(frozen=True)
class Metric:
    """Words and unit of a metric of ``results``."""

    label: str
    kind: str = ""
    unit: Unit = Unit("")


METRICS = {
    "energy_j": Metric("energy", "energy"),
    "marginal_energy_j": Metric("energy above idle", "energy"),
    "facility_energy_j": Metric("energy with the site's overhead", "energy"),
    "mean_power_w": Metric("mean power", "power"),
    "stable_power_w": Metric("power when steady", "power"),
    "idle_power_w": Metric("idle power", "power"),
    "peak_power_w": Metric("peak power", "power"),
    "residual_power_w": Metric("power outside the measured parts", "power"),
    "duration_s": Metric("duration", "duration"),
    "warmup_s": Metric("warm-up", "duration"),
    "cv_ratio": Metric("CV (spread / mean)"),
    "tdp_ratio": Metric("mean power / nameplate"),
    "mfu_ratio": Metric("MFU (share of peak arithmetic used)", unit=Unit("%", 0.01)),
    "energy_per_token_j": Metric("energy per million tokens", "per_million"),
    "tokens_per_j": Metric("tokens per joule", unit=Unit("1/J")),
    "tokens_per_s": Metric("tokens per second", unit=Unit("1/s")),
    "step_time_s": Metric("step time", unit=Unit("s")),
    "tokens_to_target": Metric("tokens to the target", "count"),
    "time_per_token_s": Metric("time per million tokens", unit=Unit("s", 1e-6)),
    "time_to_target_s": Metric("time to the target", "duration"),
    "energy_to_target_j": Metric("energy to the target", "energy"),
    "carbon_kg": Metric("emissions", unit=Unit("kg CO2e")),
    "cost": Metric("cost"),
    "phase_energy_j": Metric("energy", "energy"),
    "phase_share_ratio": Metric("share", unit=Unit("%", 0.01)),
    "phase_power_w": Metric("mean power", "power"),
    "stall_energy_j": Metric("stalls", "energy"),
    "gap_idle_energy_j": Metric("idle between runs", "energy"),
    "checkpoint_energy_j": Metric("checkpoints", "energy"),
    "rework_energy_j": Metric("work that was repeated", "energy"),
}
WASTE = ("stall_energy_j", "gap_idle_energy_j", "checkpoint_energy_j", "rework_energy_j")
_SUFFIXES = (("_j", "energy"), ("_w", "power"), ("_s", "duration"))


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


def metric(name: str) -> Metric:
    """Return words and unit of a metric; those of an unknown one are told from its name."""
    if name in METRICS:
        return METRICS[name]
    kind = next((kind for end, kind in _SUFFIXES if name.endswith(end)), "")
    return Metric((name[:-2] if kind else name).replace("_", " "), kind)


def unit_for(name: str, values: Sequence[float | None], *, currency: str = "") -> Unit:
    """Return the one unit in which these values of a metric are best read.

    Examples
    --------
    >>> unit_for("energy_j", [3.4e6, None]).name
    'kWh'
    """
    about = metric(name)
    if name == "cost":
        return Unit(currency)
    if not about.kind:
        return about.unit
    units, starts = _FIT[about.kind]
    largest = max((abs(v) for v in values if v is not None and math.isfinite(v)), default=0.0)
    return [u for u, start in zip(units, starts, strict=True) if largest >= start][-1]


def unit_of(name: str, rows: Sequence[dict[str, Any] | None], *, currency: str = "") -> Unit:
    """Return the one unit for rows of ``results``."""
    return unit_for(name, [row["value"] for row in rows if row is not None], currency=currency)


def number(
    value: float | None,
    lo: float | None = None,
    hi: float | None = None,
    *,
    unit: Unit = Unit(""),
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
    known = len(ends) == 2 and written != [text, text]
    if len(ends) == 1:  # the other end is open
        sign = "≥" if lo is not None and math.isfinite(lo) else "≤"
        return Number(
            text, f"{_plain(scaled, digits)} {unit.name}".strip(), f"{sign} {written[0]}", unit.name, reason, marks
        )
    if not known:  # an interval that no digit shows is noise on the page
        digits = _digits(scaled, 0.0)
        text = _write(scaled, digits)
    even = known and abs(ends[0] + ends[1] - 2 * scaled) <= _SKEW * width
    return Number(
        text, f"{_plain(scaled, digits)} {unit.name}".strip(), f"[{', '.join(written)}]" if known else "", unit.name,
        reason, marks, _write(width, digits) if even else "",
    )  # fmt: skip


def width(value: float | None, *, unit: Unit = Unit(""), reason: str = "") -> Number:
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
    digits = _two(abs(scaled)) if scaled else 0
    text = _write(scaled, max(min(digits, 9), -9))
    return Number(text, f"{_plain(scaled, max(min(digits, 9), -9))} {unit.name}".strip(), unit=unit.name)


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
        finest = _MOST - 1 - size if value else 9
        return max(min(_two(half), finest, 9), -9)
    return max(min(3 - size, 9), -9) if value else 0


def _two(half: float) -> int:
    """Return the decimals that show two digits of a number as it is written: 0.0999 is 0.10."""
    return 1 - math.floor(math.log10(float(f"{half:.1e}")))


def _plain(value: float, digits: int) -> str:
    rounded = round(value, digits)
    return f"{rounded + 0.0:.{max(digits, 0)}f}"


def _write(value: float, digits: int) -> str:
    return _grouped(_plain(value, digits))


def _grouped(plain: str) -> str:
    """Return digits in threes from five on, with a true minus."""
    whole, point, rest = plain.partition(".")
    grouped = f"{int(whole):,}".replace(",", THIN) if len(whole.lstrip("-")) > 4 else whole
    return (grouped + point + rest).replace("-", "−")
