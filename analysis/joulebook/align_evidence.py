"""What the residuals of a fitted map tell of it: how sure it is, and whether all of the log bears it out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from joulebook.align_signal import Floats

HAC_LAGS = 8
"""Lags of the heteroscedasticity- and autocorrelation-consistent covariance."""

STRETCHES = 16
"""Stretches of the log whose own shifts are compared with the common one."""

PLACES = 3
"""Places of a log that are left out one after the other to see what the others tell."""

PLACE = 5
"""Rows to either side that belong to a place."""


def stretches(d: Floats, r: Floats, sigma: float) -> tuple[Floats, Floats]:
    """Return by how much each of a number of stretches would move the shift [s], with standard errors."""
    edges = np.linspace(0, d.size, STRETCHES + 1).astype(int)[:-1]
    power = np.add.reduceat(d * d, edges)
    known = power > 0.005 * power.sum()
    pull = np.add.reduceat(d * r, edges)[known] / power[known]
    return pull, sigma / np.sqrt(power[known])


def beyond(f: Floats, r: Floats, gain: float) -> tuple[Floats, Floats]:
    """Return the gain, as a share of the whole log's, and its standard error, without the places that tell most."""
    if gain == 0:  # a counter that ticks like a clock: there is no share of nothing
        return np.zeros(PLACES), np.zeros(PLACES)
    y = r + gain * f
    told = f * y * np.sign(gain)
    reach = max(PLACE, r.size // 200)
    i = np.arange(r.size)
    at, to = np.maximum(i - reach, 0), np.minimum(i + reach + 1, r.size)
    left = np.ones(r.size, dtype=bool)
    out = np.zeros((2, PLACES))
    for k in range(PLACES):
        total = np.concatenate([[0.0], np.cumsum(np.where(left, told, 0.0))])
        place = int(np.argmax(total[to] - total[at]))
        left[at[place] : to[place]] = False
        a, b = _levelled(f, left), _levelled(y, left)
        power = max(float(a @ a), 1e-300)
        own = float(a @ b) / power
        rest = b - own * a
        out[:, k] = own / gain, float(np.sqrt(rest @ rest / max(rest.size, 1) / power)) / abs(gain)
    return out[0], out[1]


def _levelled(a: Floats, left: NDArray[np.bool_]) -> Floats:
    """Return what is left of a series, each piece of it less its own mean."""
    piece = np.cumsum(np.diff(left, prepend=left[0]) != 0)[left]
    kept = a[left]
    count = np.maximum(np.bincount(piece), 1)
    return np.asarray(kept - (np.bincount(piece, kept) / count)[piece])


def covariance(design: Floats, r: Floats, believed: Floats) -> Floats:
    """Return the covariance of shift and drift, the last two columns: the larger of the classical and the consistent one.

    Parameters
    ----------
    design
        Whitened regressors.
    r
        Whitened residuals.
    believed
        Standard deviation of the coefficient of each column before looking; infinite where nothing was known.

    Returns
    -------
    ndarray
        Two by two.
    """
    norm = np.sqrt((design**2).sum(axis=0))
    norm[norm == 0] = 1.0
    z = design / norm
    sigma2 = float(r @ r) / max(r.size - z.shape[1], 1)
    prior = sigma2 / (believed * norm) ** 2
    inner = z.T @ z + np.diag(prior)
    bread = np.linalg.pinv(inner, rcond=1e-13)
    score = z * r[:, None]
    meat = score.T @ score + np.diag(prior * sigma2)
    for k in range(1, min(HAC_LAGS, r.size - 1) + 1):
        cross = score[k:].T @ score[:-k]
        meat += (1 - k / (HAC_LAGS + 1)) * (cross + cross.T)
    robust = bread @ meat @ bread
    classical = bread * sigma2
    pick = robust if robust[-2, -2] > classical[-2, -2] else classical
    cov = (pick / np.outer(norm, norm))[-2:, -2:]
    cov[1, 1] = max(cov[1, 1], (classical / np.outer(norm, norm))[-1, -1])
    return np.asarray(cov)
