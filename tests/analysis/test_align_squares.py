"""Least squares against numpy's own, and with columns that hang on each other."""

from __future__ import annotations

import numpy as np
import pytest

from joulebook import align_squares


@pytest.mark.parametrize("columns", [1, 3, 6])
def test_coefficients_are_those_of_an_orthogonal_solution(columns: int) -> None:
    rng = np.random.default_rng(columns)
    design = rng.normal(size=(500, columns)) * 10.0 ** rng.integers(-4, 5, columns)
    y = rng.normal(size=500)
    np.testing.assert_allclose(align_squares.fit(design, y), np.linalg.lstsq(design, y, rcond=None)[0], rtol=1e-9)


def test_equal_columns_share_the_shortest_solution() -> None:
    one = np.random.default_rng(1).normal(size=200)
    np.testing.assert_allclose(align_squares.fit(np.column_stack([one, one]), 3 * one), [1.5, 1.5], rtol=1e-9)


def test_an_empty_column_gets_nothing() -> None:
    one = np.random.default_rng(2).normal(size=50)
    np.testing.assert_allclose(align_squares.fit(np.column_stack([one, 0 * one]), 2 * one), [2, 0], atol=1e-12)


def test_last_variance_is_the_corner_of_the_inverse() -> None:
    design = np.random.default_rng(3).normal(size=(100, 4))
    inner, _ = align_squares.unit(design)
    assert align_squares.last_variance(inner) == pytest.approx(np.linalg.inv(inner)[-1, -1])
