"""Two levels of a power series, and whether events come like a clock or at random."""

from __future__ import annotations

import numpy as np

from joulebook import ranks
from joulebook.phase_timeline import Floats

CLIP = (0.002, 0.98)
"""Quantiles of power between which levels are sought [1]: spikes are not a level."""

NULL_CV = ((5, 0.246), (6, 0.307), (8, 0.392), (10, 0.445), (15, 0.530), (20, 0.581), (30, 0.642), (50, 0.709),
           (100, 0.785), (200, 0.841), (500, 0.895), (2000, 0.946), (10000, 0.976))  # fmt: skip
"""Number of gaps and the 0.5 % quantile of their coefficient of variation where dips come at random [1]; simulated."""

RARE_SHARE = 0.01
"""A level with less than this share of the readings is rare [1]."""

RARE_FACTOR = 1.5
"""A rare level has to stand out by so much more [1]."""

MIN_EVENTS = 6
"""With fewer dips nothing is said about a period [1]."""


def levels(power_w: Floats) -> tuple[float, float, float, float]:
    """Return the two levels of a series, the threshold between them, and their separation.

    Parameters
    ----------
    power_w
        Readings [W].

    Returns
    -------
    tuple
        Mean of the lower and upper class [W], threshold [W], distance over the pooled standard deviation [1].

    Examples
    --------
    >>> levels(np.array([100.0, 101.0, 99.0] * 10 + [300.0, 302.0, 298.0] * 30))[:2]
    (100.0, 300.0)
    """
    lo, hi = (ranks.quantile(power_w, ratio) for ratio in CLIP)
    x = np.sort(power_w[(power_w >= lo) & (power_w <= hi)])
    least = max(3, int(0.002 * len(x)))
    if len(x) < 2 * least + 1 or x[-1] <= x[0]:
        return float(x.mean()), float(x.mean()), float(x.mean()), 0.0
    k = np.arange(least, len(x) - least)
    s1, s2 = np.cumsum(x - x.mean()), np.cumsum((x - x.mean()) ** 2)
    n0, n1 = k, len(x) - k
    m0, m1 = s1[k - 1] / n0, (s1[-1] - s1[k - 1]) / n1
    within = (s2[k - 1] - n0 * m0**2 + s2[-1] - s2[k - 1] - n1 * m1**2) / len(x)
    gap = x[k] - x[k - 1]
    score = np.where(gap > 0, (m1 - m0) / np.sqrt(np.maximum(within, 1e-12 * x[-1] ** 2)), 0.0)
    # the far tail of one level lies three deviations from the rest: few readings have to stand out more
    score = np.where(np.minimum(n0, n1) < RARE_SHARE * len(x), score / RARE_FACTOR, score)
    best = int(np.argmax(score))
    return (
        float(m0[best] + x.mean()), float(m1[best] + x.mean()), float((m0[best] + m1[best]) / 2 + x.mean()),
        float(score[best]),
    )  # fmt: skip


def regular(starts_s: Floats, ends_s: Floats) -> tuple[bool, float, float]:
    """Judge whether events come like a clock rather than at random.

    Parameters
    ----------
    starts_s, ends_s
        Events in order [s].

    Returns
    -------
    tuple
        Whether the gaps are more even than random ones would be (0.5 %), their coefficient of variation [1], and the
        mean time from start to start [s], skips left out.

    Examples
    --------
    >>> s = np.arange(10) * 30.0
    >>> regular(s, s + 2)[0]
    True
    """
    if len(starts_s) < MIN_EVENTS:
        return False, float("nan"), float("nan")
    gaps = starts_s[1:] - ends_s[:-1]
    cv = float(np.std(gaps, ddof=1) / max(float(np.mean(gaps)), 1e-12))
    n, limit = np.array(NULL_CV).T
    steps = np.diff(starts_s)
    # With an even number of events the median may lie between two groups, with no step near it.
    near = np.abs(steps / np.median(steps) - 1) <= 0.5
    period = float(steps[near].mean()) if near.any() else float(np.median(steps))
    return cv < float(np.interp(np.log(len(gaps)), np.log(n), limit)), cv, period
