from __future__ import annotations

import math

import pytest

from joulebook import estimates
from joulebook.findings import Estimate


def test_independent_parts_add_in_squares():
    got = estimates.combine(lambda a, b: a + b, Estimate(10.0, 7.0, 13.0, n=5), Estimate(1.0, -3.0, 5.0, n=9))
    assert (got.value, got.lo, got.hi, got.n) == (11.0, 6.0, 16.0, 5)


def test_lopsided_intervals_stay_lopsided():
    got = estimates.combine(lambda a, b: a - b, Estimate(10.0, 10.0, 14.0), Estimate(1.0, 1.0, 4.0))
    assert (got.lo, got.hi) == (6.0, 13.0)


def test_ratio_to_first_order():
    got = estimates.combine(lambda a, b: a / b, Estimate(100.0, 99.0, 101.0), Estimate(50.0, 49.5, 50.5))
    assert got.half_width == pytest.approx(2 * math.hypot(0.01, 0.01), rel=1e-3)


def test_exact_inputs_give_no_interval_and_refusals_travel():
    assert estimates.scaled(estimates.exactly(3.0), 2.0).lo is None
    refused = estimates.scaled(Estimate.refused("no readings"), 2.0, unit="J")
    assert refused.value is None and refused.reason == "no readings" and refused.unit == "J"
    assert estimates.combine(lambda a: 1 / a, Estimate(0.0)).reason == "division by zero"


def test_open_end_leaves_no_interval():
    got = estimates.scaled(Estimate(3.0, 2.0, None, reason="without gpu:1"), 2.0)
    assert got.value == 6.0 and got.lo is None and got.hi is None and got.reason == "without gpu:1"
