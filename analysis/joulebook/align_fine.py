"""The last fit of two logs of one pace, on both of them smoothed alike.

At one pace a prediction between two samples is blurred the more the farther it lies from both, so a fit to the logs as they
are leans to where samples lie on each other. Smoothed, both vary slowly against their samples, and what lies between those
is known wherever it lies. The sensor is judged on the logs as they are: smoothing hides it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from joulebook import align_model
from joulebook.align_model import Fit
from joulebook.align_signal import Signal

SAME_PACE = 0.2
"""Periods that differ by a smaller share are one pace: the same smoothing blurs both logs alike."""

PASSES = 2
"""Times that each sample is averaged with its neighbours, by weights 1, 2, 1: of waves of two samples nothing is left, of
such of four a quarter."""

NEAR = 0.5
"""Share of the period by which a step may differ from it; nothing is averaged across a longer or shorter one."""

STARTS = (0.0, -0.5, 0.5)
"""Where the smoothed logs are fitted from, in periods beside the fit to the logs as they are: that one may sit on a hill where
samples lie on each other."""

LARGEST_MOVE = 0.75
"""Share of the period beyond which the fit to the logs as they are stays: it was not a matter of what lies between samples."""


def refit(fast: Signal, slow: Signal, fit: Fit) -> Fit:
    """Return a fit whose map, and how sure it is, are those of the smoothed logs where both are of one pace.

    Parameters
    ----------
    fast, slow
        The logs.
    fit
        The fit to them as they are.

    Returns
    -------
    Fit
        The same fit where the paces differ, or the smoothed logs say something else.
    """
    if not align_model.alike(fast.period_s, slow) or abs(slow.period_s / fast.period_s - 1) > SAME_PACE:
        return fit
    smooth = smoothed(fast), smoothed(slow)
    starts = (fit.shift_s + share * slow.period_s for share in STARTS)
    fits = (
        align_model.fit(*smooth, fit.sensor, shift_s=s, drift=fit.drift, anchor_s=fit.anchor_s, smooth=True)
        for s in starts
    )
    near = [f for f in fits if f and f.converged and abs(f.shift_s - fit.shift_s) <= LARGEST_MOVE * slow.period_s]
    if not near:
        return fit
    fine = max(near, key=lambda f: f.llr)
    return replace(
        fit, shift_s=fine.shift_s, drift=fine.drift, covariance=fine.covariance, spread=fine.spread,
        local_s=fine.local_s, local_se=fine.local_se,
    )  # fmt: skip


def smoothed(log: Signal) -> Signal:
    """Return a log averaged over neighbours, without the samples that have none on both sides.

    Parameters
    ----------
    log
        Powers.

    Returns
    -------
    Signal

    Examples
    --------
    >>> smoothed(Signal(np.arange(7.0), np.array([0, 0, 0, 16.0, 0, 0, 0]), "mean", 1.0, None, 0)).value
    array([4., 6., 4.])
    """
    near = np.abs(np.diff(log.time_s) - log.period_s) < NEAR * log.period_s
    inner = np.concatenate([[False], near[1:] & near[:-1], [False]])
    value = log.value
    for _ in range(PASSES):
        sides = np.concatenate([[0.0], value[:-2] + value[2:], [0.0]])
        value = np.where(inner, sides / 4 + value / 2, np.nan)
    keep = np.isfinite(value)
    return replace(log, time_s=log.time_s[keep], value=value[keep])
