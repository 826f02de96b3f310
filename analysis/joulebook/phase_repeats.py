"""Phases that repeat one another: what their scatter says of each energy, and what they tell of one another.

Names that differ by a number only ("inference-3", "epoch 12") are repeats of one kind. A sensor that looks now and then
may see the same part of a fast load all through a phase: nothing inside of that phase shows it, its repeats do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from joulebook.phase_timeline import Floats

MIN_REPEATS: Final = 4
"""Repeats from which their scatter says something [1]: fewer than four cannot improve on each by itself (Stein)."""

OUTLIER_MADS: Final = 4.0
"""Distance from the median of its kind from which a phase is not one of its repeats [robust standard deviations]."""

MAD_TO_SD: Final = 1.4826
"""Standard deviation of a normal sample over its median absolute deviation [1]."""

Kinds = list[NDArray[np.int64]]


def stem(name: str) -> str:
    """Return a name with its numbers made alike.

    Examples
    --------
    >>> stem("epoch 12-3")
    'epoch #-#'
    """
    return re.sub(r"\d+", "#", name)


def kinds(names: Sequence[str]) -> Kinds:
    """Return the places of the names that repeat one another, kind by kind.

    Parameters
    ----------
    names
        Names of phases; an empty one has no repeats.

    Returns
    -------
    list of ndarray
        Indices of at least four names each.

    Examples
    --------
    >>> [k.tolist() for k in kinds(["load", "step-1", "step-2", "step-3", "step-10", "save 1"])]
    [[1, 2, 3, 4]]
    """
    by_stem: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        if name:
            by_stem.setdefault(stem(name), []).append(i)
    return [np.array(v) for v in by_stem.values() if len(v) >= MIN_REPEATS]


def without_odd_ones(alike: Kinds, power_w: Floats) -> Kinds:
    """Return the kinds without the phases that stand apart: the first of many often compiles or fills a cache.

    Parameters
    ----------
    alike
        Places of repeats, kind by kind.
    power_w
        Mean power of each phase [W].

    Returns
    -------
    list of ndarray
        Kinds of which at least four are left.

    Examples
    --------
    >>> [k.tolist() for k in without_odd_ones([np.arange(5)], np.array([50.0, 99.0, 100.0, 101.0, 100.0]))]
    [[1, 2, 3, 4]]
    """
    out = []
    for k in alike:
        away = np.abs(power_w[k] - np.median(power_w[k]))
        out.append(k[away <= OUTLIER_MADS * MAD_TO_SD * np.median(away)])
    return [k for k in out if len(k) >= MIN_REPEATS]


def pooled(alike: Kinds, power_w: Floats, seconds: Floats, variance: Floats, freedom: Floats) -> tuple[Floats, Floats]:
    """Return the variance of each energy and its degrees of freedom, as the repeats of its kind know it.

    Parameters
    ----------
    alike
        Places of repeats, kind by kind.
    power_w, seconds
        Mean power [W] and time [s] of each phase.
    variance, freedom
        Variance of each energy [J²] as far as the phase itself shows it, and its degrees of freedom.

    Returns
    -------
    ndarray, ndarray
        The mean variance of the kind, or the scatter of its powers where that is larger.

    Examples
    --------
    >>> four = np.ones(4)
    >>> v, f = pooled([np.arange(4)], np.array([90.0, 110.0, 90.0, 110.0]), 2 * four, 4 * four, 3 * four)
    >>> v.round(1).tolist(), f.tolist()
    ([533.3, 533.3, 533.3, 533.3], [3.0, 3.0, 3.0, 3.0])
    """
    variance, freedom = variance.copy(), freedom.copy()
    for k in alike:
        own = float(np.mean(variance[k] / seconds[k] ** 2))
        scatter = float(np.var(power_w[k], ddof=1))
        variance[k] = max(own, scatter) * seconds[k] ** 2
        freedom[k] = freedom[k].sum() if own >= scatter else len(k) - 1
    return variance, freedom


def drawn(alike: Kinds, power_w: Floats, seconds: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Return powers drawn towards the mean of their kind, the more the less they differ beyond their own errors.

    Parameters
    ----------
    alike
        Places of repeats, kind by kind.
    power_w, seconds
        Mean power [W] and time [s] of each phase.
    variance
        Variance of each energy by itself [J²].

    Returns
    -------
    ndarray, ndarray
        Powers [W], and the share of the way to the mean that each was drawn.

    References
    ----------
    Efron and Morris 1975, doi:10.1080/01621459.1975.10479864.

    Examples
    --------
    >>> one = np.ones(5)
    >>> power, share = drawn([np.arange(5)], np.array([98.0, 99.0, 100.0, 101.0, 102.0]), one, 9 * one)
    >>> power.tolist(), share[0].item()
    ([99.0, 99.5, 100.0, 100.5, 101.0], 0.5)
    """
    power_w, share = power_w.copy(), np.zeros(len(power_w))
    for k in alike:
        scatter = float(np.var(power_w[k], ddof=1))
        own = float(np.mean(variance[k] / seconds[k] ** 2))
        part = min(own / scatter, 1.0) * (len(k) - 3) / (len(k) - 1) if scatter > 0 else 0.0
        middle = float(np.average(power_w[k], weights=seconds[k]))
        power_w[k] += part * (middle - power_w[k])
        share[k] = part
    return power_w, share
