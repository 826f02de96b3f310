"""A metric over a few weeks as a small SVG in the page's own colours.

A site of a year and twenty studies has thousands of these; written directly they take microseconds each, where a
plotting library would take minutes for all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH, HEIGHT = 260.0, 84.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 8.0, 252.0, 8.0, 66.0


@dataclass(frozen=True)
class Point:
    """A week: its name, its mean with interval, and how the mean is written."""

    week: str
    value: float | None = None
    lo: float | None = None
    hi: float | None = None
    text: str = "no run"


def draw(points: Sequence[Point], *, band: tuple[float, float] | None, state: str, title: str) -> Markup:
    """Return the picture: one dot a week, the last one large, before it the band in which nothing has changed.

    Parameters
    ----------
    points
        One a week, oldest first; the last is the week that is looked at.
    band
        Ends of the band, in the unit of the points.
    state
        Class of the last dot: ``good``, ``bad`` or ``none``.
    title
        What is drawn, for those who cannot see it.

    Returns
    -------
    Markup
        An ``<svg>`` element.
    """
    known = [p for p in points if p.value is not None]
    if not known:
        return Markup('<p class="more">no week has a value</p>')
    y = _scale(points, band)
    step = (_RIGHT - _LEFT - 16) / max(len(points) - 1, 1)
    at = [_LEFT + 8 + i * step for i in range(len(points))]
    parts = []
    if band is not None:
        top, bottom = y(band[1]), y(band[0])
        parts.append(
            f'<rect class="band" x="{_LEFT}" y="{top:.1f}" width="{_RIGHT - _LEFT}" height="{max(bottom - top, 1):.1f}"/>'
        )
    line = " ".join(f"{x:.1f},{y(p.value):.1f}" for x, p in zip(at, points, strict=True) if p.value is not None)
    parts.append(f'<polyline class="path" points="{line}"/>')
    parts += [
        _dot(x, p, p.value, y, state if p is points[-1] else "")
        for x, p in zip(at, points, strict=True)
        if p.value is not None
    ]
    ends = f'<text x="{_LEFT}" y="80">{escape(points[0].week[5:])}</text>'
    ends += f'<text x="{_RIGHT}" y="80" text-anchor="end">{escape(points[-1].week[5:])}</text>'
    told = "; ".join(f"{p.week}: {p.text}" for p in points)
    return Markup(
        f'<svg class="spark" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(f"{title}. {told}")}">'
        f"{''.join(parts)}{ends}</svg>"
    )


def _scale(points: Sequence[Point], band: tuple[float, float] | None) -> Callable[[float], float]:
    """Return the function from value to height; intervals far wider than the rest are cut off, not followed."""
    values = [p.value for p in points if p.value is not None]
    last = points[-1]
    values += [v for v in (*(band or ()), last.lo, last.hi) if v is not None and math.isfinite(v)]
    low, high = min(values), max(values)
    margin = (high - low) * 0.08 or abs(high) * 0.05 or 1.0
    low, high = low - margin, high + margin
    return lambda v: _BOTTOM - (min(max(v, low), high) - low) / (high - low) * (_BOTTOM - _TOP)


def _dot(x: float, point: Point, value: float, y: Callable[[float], float], state: str) -> str:
    tip = f"<title>{escape(f'{point.week}: {point.text}')}</title>"
    if not state:
        return f'<circle class="week" cx="{x:.1f}" cy="{y(value):.1f}" r="2.5">{tip}</circle>'
    bar = ""
    if point.lo is not None and point.hi is not None:
        bar = f'<line class="bar" x1="{x:.1f}" x2="{x:.1f}" y1="{y(point.lo):.1f}" y2="{y(point.hi):.1f}"/>'
    return f'{bar}<circle class="now {state}" cx="{x:.1f}" cy="{y(value):.1f}" r="4.5">{tip}</circle>'
