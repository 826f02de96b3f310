"""Quantiles and tails of the distributions that intervals and tests need.

They are those of :mod:`scipy.special`: the same numbers as of ``scipy.stats``, which takes longer to load than most
commands take to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special


def student_quantile(probability: float, dof: Any) -> Any:
    """Return the value that Student's t stays below with a probability; ``dof`` is a number or an array.

    Examples
    --------
    >>> round(float(student_quantile(0.975, 10)), 4)
    2.2281
    """
    return special.stdtrit(dof, probability)


def student_tail(value: Any, dof: Any) -> Any:
    """Return the probability that Student's t lies above a value.

    Examples
    --------
    >>> round(float(student_tail(2.2281, 10)), 4)
    0.025
    """
    return special.stdtr(dof, -value)


def normal_quantile(probability: float) -> Any:
    """Return the value that a standard normal variable stays below with a probability.

    Examples
    --------
    >>> round(float(normal_quantile(0.975)), 4)
    1.96
    """
    return special.ndtri(probability)


def normal_tail(value: Any) -> Any:
    """Return the probability that a standard normal variable lies above a value.

    Examples
    --------
    >>> round(float(normal_tail(1.96)), 4)
    0.025
    """
    return special.ndtr(-value)


def chi_square_quantile(probability: float, dof: Any) -> Any:
    """Return the value that chi-square stays below with a probability.

    Examples
    --------
    >>> round(float(chi_square_quantile(0.95, 3)), 4)
    7.8147
    """
    return special.chdtri(dof, 1 - probability)


def chi_square_tail(value: Any, dof: Any) -> Any:
    """Return the probability that chi-square lies above a value.

    Examples
    --------
    >>> round(float(chi_square_tail(7.8147, 3)), 4)
    0.05
    """
    return special.chdtrc(dof, value)


def f_tail(value: Any, dof: float, error_dof: float) -> Any:
    """Return the probability that F lies above a value.

    Examples
    --------
    >>> round(float(f_tail(3.7083, 3, 10)), 4)
    0.05
    """
    return special.fdtrc(dof, error_dof, value)


def among_many(p_values: Any) -> Any:
    """Return p-values corrected for their number: the share of false discoveries (Benjamini and Hochberg 1995).

    Examples
    --------
    >>> among_many(np.array([0.01, 0.04, 0.03, 0.5])).round(4).tolist()
    [0.04, 0.0533, 0.0533, 0.5]
    """
    from_largest = np.argsort(p_values)[::-1]
    corrected = np.empty(len(p_values))
    corrected[from_largest] = np.minimum.accumulate(
        p_values[from_largest] * len(p_values) / np.arange(len(p_values), 0, -1)
    )
    return np.minimum(corrected, 1.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number after Holm.

    Parameters
    ----------
    p_values
        Not corrected.

    Examples
    --------
    >>> holm([0.01, 0.04])
    [0.02, 0.04]
    """
    corrected = [1.0] * len(p_values)
    worst = 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[at]))
        corrected[at] = worst
    return corrected
