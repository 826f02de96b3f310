"""Rules by which a sweep's best setting is named, or refused: in the order in which they speak."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import optimum_place

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

LEAST_SETTINGS = 4
"""Fewer settings than this show no minimum: three points always have one."""
LEAST_REPEATS = 3
"""Runs at the best setting below which its spread is not known well enough (also the least for comparisons)."""
AS_GOOD_RATIO = 0.03
"""A setting that costs at most so much more than the best is as good: about the run-to-run difference of most nodes."""
FLAT_SHARE_RATIO = 0.5
"""Share of the settings that may be best before the curve counts as flat."""
EDGE_PROBABILITY = 0.05
"""Chance of a minimum at the end of the range from which a minimum inside it is no longer claimed."""


@dataclass(frozen=True)
class Verdict:
    """What can be said of a sweep's minimum.

    Parameters
    ----------
    x, lo, hi
        Best setting and the ends of its interval, in the knob's unit; null where not known.
    value
        The objective there.
    status
        ``found``, ``flat``, ``edge``, ``too-few`` or ``refused``.
    reason
        Why.
    """

    x: float | None
    lo: float | None
    hi: float | None
    value: float | None
    status: str
    reason: str


def judge(settings: pl.DataFrame, costs: Array, known: Mask, error: Array) -> Verdict:
    """Return place, interval and status of the best setting, or why there is none.

    Parameters
    ----------
    settings
        By rising ``x``: ``x``, ``repeats``, ``value``, ``p_best``, ``in_best_set``, ``as_good``.
    costs
        Draws of the objective, shape (draws, settings).
    known
        Whether the spread of each setting is known.
    error
        Relative standard error of each setting.

    Examples
    --------
    >>> settings = pl.DataFrame({"x": [1.0, 2.0], "value": [3.0, 2.0]})
    >>> judge(settings, np.empty((0, 2)), np.ones(2, dtype=bool), np.ones(2)).status
    'too-few'
    """
    x, mean = settings["x"].to_numpy(), settings["value"].to_numpy()
    best = int(np.argmin(mean))
    at, value, last = float(x[best]), float(mean[best]), x.size - 1
    if x.size < LEAST_SETTINGS:
        why = f"too few settings: {x.size}, at least {LEAST_SETTINGS} are needed to see a minimum"
        return Verdict(at, None, None, value, "too-few", f"{why}; {at:g} is the least of those tried")
    repeats = int(settings["repeats"][best])
    spread_known = repeats >= LEAST_REPEATS and bool(known.all())
    if best in (0, last):
        return _end(settings, low=best == 0, spread_known=spread_known)
    if not spread_known:
        why = f"too few repeats: {repeats} at {at:g}, at least {LEAST_REPEATS} are needed to know the spread"
        return Verdict(at, None, None, value, "too-few", f"{why}; {at:g} is the least of those tried")
    return _inside(settings, costs, error)


def _inside(settings: pl.DataFrame, costs: Array, error: Array) -> Verdict:
    """Return what can be said of a minimum inside the range whose spread is known."""
    x, mean = settings["x"].to_numpy(), settings["value"].to_numpy()
    best = int(np.argmin(mean))
    at, value = float(x[best]), float(mean[best])
    chosen = settings["in_best_set"].to_numpy()
    if chosen.mean() > FLAT_SHARE_RATIO:
        return _flat(x[chosen], at, value, "cannot be told apart by these runs")
    alike = settings["as_good"].to_numpy()
    if alike.mean() > FLAT_SHARE_RATIO:
        return _flat(x[alike], at, value, f"within {AS_GOOD_RATIO:.0%} of the least")
    p_best = settings["p_best"].to_numpy()
    if max(p_best[0], p_best[-1]) >= EDGE_PROBABILITY:
        low = bool(p_best[0] > p_best[-1])
        return _near_edge(x[chosen], at, value, low)
    return _found(x, mean, costs, error, chosen)


def _found(x: Array, mean: Array, costs: Array, error: Array, chosen: Mask) -> Verdict:
    """Return a minimum inside the range: between the settings where the curve is smooth, else among them."""
    best = int(np.argmin(mean))
    names = ", ".join(f"{v:g}" for v in x[chosen])
    place = optimum_place.fit(x, mean, costs, error)
    if place is None:
        why = (
            f"{_tried(f'{x[best]:g}', names)}; the curve is too uneven to say whether a setting between them is better"
        )
        ends = float(x[chosen].min()), float(x[chosen].max())
        return Verdict(float(x[best]), *ends, float(mean[best]), "found", why)
    why = _tried(f"{x[best]:g}", names)
    # A second valley that may be the best lies outside of the curve around the first.
    apart = x[chosen & (np.abs(np.arange(x.size) - best) > 1)]
    ends = min([place.lo, *apart]), max([place.hi, *apart])
    return Verdict(place.x, float(ends[0]), float(ends[1]), place.value, "found", why)


def _tried(best: str, names: str) -> str:
    """Return which of the settings tried is the best, and which others may be."""
    rest = "no other tried setting can be the best (95 %)" if names == best else f"one of {names} is the best (95 %)"
    return f"of the settings tried, {best} costs least; {rest}"


def _end(settings: pl.DataFrame, *, low: bool, spread_known: bool) -> Verdict:
    """Return what can be said of a least at the end of the range: only one side of its interval is known, if that."""
    row = settings.row(0 if low else -1, named=True)
    at, value = float(row["x"]), float(row["value"])
    chosen = (
        settings.filter(pl.col("in_best_set") | (pl.col("x") == at))["x"].to_numpy() if spread_known else np.array([at])
    )
    if chosen.size > FLAT_SHARE_RATIO * settings.height:
        return _flat(chosen, at, value, "cannot be told apart by these runs")
    side, bound = ("below", "at most") if low else ("above", "at least")
    inner = float(chosen.max() if low else chosen.min())
    alike = "" if inner == at else f"; {inner:g} may be as low, these runs cannot tell"
    why = f"minimum at the edge: the best is {bound} {inner:g}; extend the sweep {side} {at:g}{alike}"
    return Verdict(at, None if low else inner, inner if low else None, value, "edge", why)


def _near_edge(chosen: Array, at: float, value: float, low: bool) -> Verdict:
    """Return a minimum inside the range that cannot be told from the range's end."""
    end, side = (chosen[0], "below") if low else (chosen[-1], "above")
    lo, hi = (None, float(chosen[-1])) if low else (float(chosen[0]), None)
    why = f"the least is at {at:g}, but {end:g} at the edge may be as low: extend the sweep {side} {end:g}"
    return Verdict(at, lo, hi, value, "edge", why)


def _flat(alike: Array, at: float, value: float, why: str) -> Verdict:
    lo, hi = float(alike.min()), float(alike.max())
    names = ", ".join(f"{v:g}" for v in alike)
    return Verdict(at, lo, hi, value, "flat", f"flat: any of {names} is as good ({why})")
