from __future__ import annotations

import numpy as np
import pytest

from joulebook import stretches


def test_steps_at_the_limit_are_bridged_and_beyond_are_not():
    s = stretches.between_instants(np.array([0.0, 3, 6.2, 9]), np.full(4, 100.0), limit_s=3.0)
    assert s.covered_s == pytest.approx(5.8)
    assert [a.tolist() for a in stretches.holes(s, length_s=9.0)] == [[3.0], [6.2]]


def test_equal_stamps_add_nothing():
    s = stretches.between_instants(np.array([0.0, 1, 1, 2]), np.array([100.0, 100, 300, 300]), limit_s=3.0)
    assert s.energy_j.tolist() == [100, 300]


def test_hole_between_spans_is_bridged_when_short_and_open_when_long():
    end, span, power = np.array([10.0, 22, 60]), np.array([10.0, 10, 10]), np.array([100.0, 200, 200])
    s = stretches.over_spans(end, span, power, limit_s=3.0)
    assert s.covered_s == pytest.approx(32) and s.energy_j.sum() == pytest.approx(1000 + 300 + 2000 + 2000)
    assert s.variance_j2.sum() > 0


def test_clip_leaves_its_argument_as_it_was():
    s = stretches.between_instants(np.array([0.0, 10]), np.array([100.0, 200]), limit_s=30.0)
    part = stretches.clip(s, length_s=4.0)
    assert part.power_end_w[0] == pytest.approx(140) and s.power_end_w[0] == 200 and s.end_s[0] == 10


def test_nothing_clips_extends_and_leaves_everything_open():
    none = np.zeros(0)
    s = stretches.over_spans(none, none, none, limit_s=3.0)
    assert stretches.extended(s, length_s=5.0, reach_s=1.0)[1] == 0
    assert stretches.clip(s, length_s=5.0).covered_s == 0
    assert [a.tolist() for a in stretches.holes(s, length_s=5.0)] == [[0.0], [5.0]]


def test_lag_is_half_the_window_and_the_age_of_the_value():
    assert stretches.lag_s(window_s=1.0, update_s=None, period_s=1.0) == 0.5
    assert stretches.lag_s(window_s=0.025, update_s=0.1, period_s=1.0) == pytest.approx(0.0625)
    assert stretches.lag_s(window_s=0.0, update_s=0.1, period_s=0.02) == pytest.approx(0.01)
