"""What a machine draws beside its boards while a run lasts: steps that the boards do not share are somebody else's work.

The run's own share outside of the boards (host, fans, losses) follows them or stays; a job that starts or ends in between
does neither. Where it neither starts nor ends, nothing shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import polars as pl

from joulebook import occupancy, stats, wording
from joulebook.findings import Estimate, Finding, Severity
from joulebook.occupancy import Series
from joulebook.phase_timeline import Floats

CELL_S = 20.0
"""Least length of the means that are compared [s]: stalls and clock errors of a second average out."""

CELL_PERIODS = (8.0, 4.0)
"""Least length of the means that are compared [reading intervals of the machine, of its boards]."""

SIDE = 3
"""Means on either side of a step [1]."""

MIN_CELLS = 12
"""Fewer means than this show no step [1]."""

STEP_SIGMAS = 6.0
"""A step is larger than the noise of the means by so much [robust standard deviations]."""

STEP_CHANGES = 3.5
"""A step is larger than usual changes over as much time by so much [robust standard deviations]: slow wander is no step."""

STEP_SHARE = 0.05
"""A step is at least this share of the machine's mean power [1]."""

SETTLING_CELLS = 8
"""So long before, a change of the boards still moves fans [means]."""

SETTLING_SHARE = 0.25
"""By at most this share of such a change, other parts follow boards late [1]."""

GAIN_RANGE = (0.9, 1.6)
"""What a machine draws more for each watt of its boards [1]: losses of the supply, fans."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Draw beside the boards that came and went.

    Parameters
    ----------
    energy_j
        Energy above the lowest level between steps, at most [J]; 0 where there is no step.
    most_w
        Highest level above the lowest [W].
    steps
        Steps found.
    """

    energy_j: float
    most_w: float
    steps: int


NOTHING = Beside(0.0, 0.0, 0)


def find(machine: pl.DataFrame, boards: pl.DataFrame, *, start_utc: datetime, end_utc: datetime) -> Beside:
    """Look for steps in a machine's power that its boards do not share.

    Parameters
    ----------
    machine, boards
        Columns ``device``, ``ts_utc``, ``power_w``, of one scope each, on one clock.
    start_utc, end_utc
        The run.

    Returns
    -------
    Beside
        What was drawn above the lowest level; :data:`NOTHING` where readings are too few or too far apart.
    """
    length = (end_utc - start_utc).total_seconds()
    sides = [occupancy.series(p, start_utc=start_utc, end_utc=end_utc, margin_s=0.0) for p in (machine, boards)]
    if not all(sides):
        return NOTHING
    paces = (max(one.period_s for one in side) for side in sides)
    cell = max(CELL_S, *(n * pace for n, pace in zip(CELL_PERIODS, paces, strict=True)))
    edges = np.arange(0.0, length, cell)
    if len(edges) <= MIN_CELLS:
        return NOTHING
    whole, inner = (_means(side, edges) for side in sides)
    left = whole - _gain(whole, inner) * inner
    least_w = STEP_SHARE * float(np.median(whole))
    at = _steps(left, inner, least_w)
    pieces = np.split(left, at)
    levels = np.array([np.median(p) for p in pieces])
    above = levels - levels[[len(p) >= SIDE for p in pieces]].min(initial=np.inf)
    if not at or above.max() < least_w:
        return NOTHING
    lasts = cell * np.array([len(p) for p in pieces])
    # where each step lies is known to half a mean
    energy = np.maximum(above, 0) @ lasts + cell * np.abs(np.diff(levels)).sum() / 2
    return Beside(float(energy), float(above.max()), len(at))


def _means(side: Sequence[Series], edges: Floats) -> Floats:
    """Return the mean power between edges, devices summed [W]."""
    return np.asarray(sum(np.diff(occupancy.energy_at(one, edges)) for one in side) / np.diff(edges))


def _gain(whole: Floats, inner: Floats) -> float:
    """Return what the machine draws more a watt of its boards, from successive differences: levels do not enter."""
    y, x = np.diff(whole), np.diff(inner)
    moved = np.abs(x) >= np.median(np.abs(x))
    ratio = y[moved] / np.where(x[moved] == 0, np.inf, x[moved])
    return float(np.clip(np.median(ratio), *GAIN_RANGE))


def _steps(left: Floats, inner: Floats, least_w: float) -> list[int]:
    """Return the first cell of each new level."""
    size = len(left) - 2 * SIDE
    rise, own = (_rise(v) for v in (left, inner))
    noise = stats.difference_sd(left)
    least_w = max(STEP_SIGMAS * noise, STEP_CHANGES * stats.MAD_TO_SD * float(np.median(np.abs(rise))), least_w)
    smooth = np.median(np.lib.stride_tricks.sliding_window_view(inner, SIDE), axis=1)
    recent = _spread(smooth)
    limit = np.maximum.reduce([np.full(size, least_w), np.abs(own), SETTLING_SHARE * recent])
    over, jump, found = np.abs(rise) - limit, np.diff(left), []
    while (best := int(np.argmax(over))) >= 0 and over[best] > 0:
        # the medians rise over several cells, the step lies where most of it comes at once
        found.append(best + 2 + int(np.argmax(np.abs(jump[best + 1 : best + 2 * SIDE]))))
        over[max(best - SIDE, 0) : best + SIDE + 1] = -np.inf
    return sorted(set(found))


def _spread(smooth: Floats) -> Floats:
    """Return how far the cells around each cell lie apart: those before it that it may still settle from, and its own side."""
    whole = np.concatenate([np.full(SETTLING_CELLS, smooth[0]), smooth])
    around = np.lib.stride_tricks.sliding_window_view(whole, SETTLING_CELLS + SIDE + 2)
    return np.asarray(around.max(axis=1) - around.min(axis=1))


def _rise(v: Floats) -> Floats:
    """Return the median of the cells after each cell less that of the cells before it, the cell itself left out."""
    three = np.median(np.lib.stride_tricks.sliding_window_view(v, SIDE), axis=1)
    return np.asarray(three[SIDE + 1 :] - three[: -SIDE - 1])


def doubted(marginal: Estimate, found: Beside) -> tuple[Estimate, tuple[Finding, ...]]:
    """Return a marginal energy whose interval holds that the steps were another's.

    Parameters
    ----------
    marginal
        Energy of the run above idle [J].
    found
        What was drawn beside the boards.

    Returns
    -------
    Estimate, tuple of Finding
        The number with its lower end lowered, and what the reader should know.
    """
    if marginal.value is None or found.steps == 0:
        return marginal, ()
    why = f"beside the boards, up to {found.most_w:.4g} W more was drawn at times in the run"
    lower = marginal.value if marginal.lo is None else marginal.lo
    finding = Finding(
        "marginal-other-draw", Severity.WARNING, "marginal energy",
        f"The machine's power stepped {wording.counted(found.steps, 'time')} by up to {found.most_w:.4g} W while its boards did "
        f"not: another job may have drawn {wording.energy(found.energy_j)} of the run's energy. The interval reaches down by that.",
        {"energy_j": found.energy_j, "most_w": found.most_w, "steps": found.steps},
    )  # fmt: skip
    reason = "; ".join(filter(None, (marginal.reason, why)))
    return replace(marginal, lo=lower - found.energy_j, reason=reason), (finding,)
