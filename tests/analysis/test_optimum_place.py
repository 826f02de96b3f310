from __future__ import annotations

import numpy as np
import pytest

from joulebook import optimum_place

X = 8 * 2.0 ** np.arange(8)


def valley(optimum: float, floor: float = 1.0) -> np.ndarray:
    return floor + X / optimum + optimum / X


@pytest.mark.parametrize("optimum", [40.0, 77.0, 128.0, 300.0])
def test_place_between_the_settings(optimum: float) -> None:
    y = valley(optimum)
    place = optimum_place.fit(X, y, y[None, :], np.full(X.size, 0.005))
    assert place is not None
    assert place.x == pytest.approx(optimum, rel=0.04)
    assert place.lo * 0.999 <= optimum <= place.hi * 1.001
    assert place.value == pytest.approx(3.0, rel=0.02)


def test_knob_that_reaches_zero_is_taken_linearly() -> None:
    x = np.arange(0.0, 9.0)
    y = 10 + (x - 4.4) ** 2
    place = optimum_place.fit(x, y, y[None, :], np.full(x.size, 0.001))
    assert place is not None and place.x == pytest.approx(4.4, abs=0.05)


def test_ragged_curve_has_no_place() -> None:
    y = valley(77.0)
    y[3] *= 1.5
    assert optimum_place.fit(X, y, y[None, :], np.full(X.size, 0.01)) is None


def test_forbidden_settings_give_no_place() -> None:
    y = valley(77.0)
    y[4] = np.inf
    assert optimum_place.fit(X, y, y[None, :], np.full(X.size, 0.01)) is None
