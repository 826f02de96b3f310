"""Least squares of few columns over many rows."""

from __future__ import annotations

import numpy as np
from numba import njit

from joulebook.align_signal import Floats

DEPENDENT = 1e-10
"""What is left of a unit column's square beside the columns before it, from which the column counts as made of them."""

RCOND = 1e-13
"""Singular values that count as zero, as a share of the largest."""


def fit(design: Floats, y: Floats) -> Floats:
    """Return the coefficients of least squares, by normal equations of unit columns."""
    inner, norm = unit(design)
    return solve(inner, (design.T @ y) / norm) / norm


def unit(design: Floats) -> tuple[Floats, Floats]:
    """Return the inner products of the columns, each taken to length one, and their lengths."""
    inner = design.T @ design
    norm = np.sqrt(inner.diagonal())
    norm[norm == 0] = 1.0
    return np.asarray(inner / np.outer(norm, norm)), norm


def solve(inner: Floats, pull: Floats) -> Floats:
    """Solve normal equations; the shortest solution where columns hang on each other."""
    lower = _cholesky(inner)
    return np.asarray(np.linalg.pinv(inner, rcond=RCOND) @ pull) if lower is None else _solved(lower, pull)


def last_variance(inner: Floats) -> float:
    """Return the last element of the inverse: the variance of the last coefficient for noise of size one."""
    lower = _cholesky(inner)
    return float(np.linalg.pinv(inner, rcond=RCOND)[-1, -1] if lower is None else lower[-1, -1] ** -2)


@njit(cache=True, nogil=True)
def _cholesky(inner: Floats) -> Floats | None:
    """Return the lower factor, or nothing where a column hangs on those before it."""
    n = inner.shape[0]
    lower = np.zeros((n, n))
    for j in range(n):
        left = inner[j, j]
        for k in range(j):
            left -= lower[j, k] ** 2
        # written so that a value that is no number is caught too
        if not left > DEPENDENT * inner[j, j]:
            return None
        lower[j, j] = np.sqrt(left)
        for i in range(j + 1, n):
            cross = inner[i, j]
            for k in range(j):
                cross -= lower[i, k] * lower[j, k]
            lower[i, j] = cross / lower[j, j]
    return lower


@njit(cache=True, nogil=True)
def _solved(lower: Floats, pull: Floats) -> Floats:
    """Return the solution, from the factor."""
    n = pull.size
    out = pull.copy()
    for i in range(n):
        for k in range(i):
            out[i] -= lower[i, k] * out[k]
        out[i] /= lower[i, i]
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            out[i] -= lower[k, i] * out[k]
        out[i] /= lower[i, i]
    return out
