from itertools import pairwise

import numpy as np

from joulebook import states

UNKNOWN = np.nan


def split(levels, lengths, load=None, **kwargs):
    watts = np.repeat(np.array(levels, dtype=float), lengths)
    watts = watts + np.random.default_rng(0).normal(0.0, 3.0, watts.size)
    used = np.full(watts.size, UNKNOWN) if load is None else np.repeat(np.array(load, dtype=float), lengths)
    out = states.split(np.arange(watts.size, dtype=float), watts, used, **kwargs)
    edges = np.cumsum([0, *lengths])
    return [int(np.median(out[a:b])) for a, b in pairwise(edges)]


def test_idle_and_stall_are_told_apart():
    assert split([60, 500, 200, 500, 60], [200, 100, 4, 100, 200]) == [0, 2, 1, 2, 0]


def test_a_stall_needs_two_readings():
    assert split([60, 500, 200, 500], [200, 100, 1, 100]) == [0, 2, 2, 2]


def test_utilisation_overrules_power():
    # A light load at 40 % of the peak is work.
    assert split([60, 500, 200, 500], [200, 100, 50, 100], load=[0, 1, 0.9, 1]) == [0, 2, 2, 2]
    assert split([60, 500, 200, 500], [200, 100, 50, 100], load=[0, 1, 0.0, 1]) == [0, 2, 1, 2]


def test_utilisation_shows_stalls_among_phases_that_power_resolves():
    step, used = [470.0, 530.0, 340.0, 400.0], [0.97, 0.97, 0.7, 0.7]
    levels, load = step * 20 + [215.0] + step * 20, used * 20 + [0.05] + used * 20
    lengths = [3, 4, 1, 1] * 20 + [8] + [3, 4, 1, 1] * 20
    assert states.threshold_w(np.repeat(levels, lengths)) is None
    assert split(levels, lengths, load=load) == [2] * 80 + [1] + [2] * 80
    assert split(levels, lengths) == [2] * 161
    lighter = [350.0 if level == 215.0 else level for level in levels]
    assert split(lighter, lengths, load=load) == [2] * 161


def test_a_long_lighter_load_is_not_a_stall_by_power_alone():
    assert split([60, 500, 200, 500], [200, 100, 300, 100]) == [0, 2, 2, 2]


def test_one_level_is_busy_unless_known_idle():
    assert split([300], [200]) == [2]
    assert split([62], [200], idle_w=60.0) == [0]
    assert split([62], [200], load=[0.0]) == [0]


def test_the_low_edge_of_a_stall_is_mixed():
    watts = np.concatenate((np.full(50, 500.0), [290.0, 210.0, 211.0, 212.0, 300.0], np.full(50, 500.0)))
    used = np.concatenate((np.full(50, 1.0), [0.9, 0.0, 0.0, 0.0, 0.9], np.full(50, 1.0)))
    out = states.split(np.arange(105.0), watts + np.random.default_rng(1).normal(0, 2, 105), used)
    assert out[50:55].tolist() == [states.MIXED, states.STALL, states.STALL, states.STALL, states.MIXED]


def test_a_reading_that_covers_a_part_of_a_stall_is_mixed_though_it_is_above_the_threshold():
    work, dip = np.tile([530.0, 445.0], 30), [390.0, 201.0, 203.0, 202.0, 200.0, 390.0]
    watts = np.concatenate((work, dip, work, dip, work, dip, work)) + np.random.default_rng(3).normal(0, 3, 258)
    out = states.split(np.arange(258.0), watts, np.full(258, UNKNOWN))
    assert states.threshold_w(watts) < 380.0
    for first in (60, 126, 192):
        assert out[first : first + 6].tolist() == [states.MIXED, *[states.STALL] * 4, states.MIXED]
    assert (out == states.BUSY).sum() == 240


def test_no_threshold_without_two_levels():
    assert states.threshold_w(np.full(10, 5.0)) is None
    assert states.threshold_w(np.random.default_rng(0).normal(400.0, 10.0, 500)) is None
