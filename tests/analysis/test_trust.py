import numpy as np
import pytest

from joulebook import trust


def load(n, seed=0, sd=3.0):
    return np.random.default_rng(seed).normal(400.0, sd, n)


def test_a_repeated_tail_is_stuck():
    watts = np.concatenate((load(6), [399.4] * 20))
    found = trust.judge(watts, subject="gpu:0")
    assert found.stuck.tolist() == [False] * 6 + [True] * 20
    assert found.findings[0].code == "stuck-sensor" and found.findings[0].evidence == {"readings": 20}


def test_a_flat_log_is_stuck():
    assert trust.judge(np.full(100, 250.0), subject="x").stuck.all()


def test_a_coarse_sensor_may_repeat_itself():
    coarse = np.round(load(500, sd=0.4))
    assert not trust.judge(coarse, subject="x").stuck.any()
    idle_then_load = np.concatenate((np.full(300, 62.0), np.round(load(300, sd=20.0))))
    assert not trust.judge(idle_then_load, subject="x").stuck.any()


def test_a_slowly_updated_sensor_is_not_stuck():
    assert not trust.judge(np.repeat(load(200), 5), subject="x").stuck.any()


def test_zero_is_missing():
    watts = load(100)
    watts[40:45] = 0.0
    found = trust.judge(watts, subject="x")
    assert found.zero.sum() == 5 and found.usable.sum() == 95
    assert "zero-power" in [f.code for f in found.findings]


def test_spikes_are_single_and_dips_of_two_are_not_spikes():
    watts = load(200)
    watts[50] = 4000.0
    watts[100:102] = 150.0
    found = trust.judge(watts, subject="x")
    assert np.flatnonzero(found.spike).tolist() == [50]


def test_edges_are_no_spikes():
    assert not trust.judge(np.concatenate((load(100), load(100) + 300.0)), subject="x").spike.any()


@pytest.mark.parametrize("watts", [np.zeros(20), np.empty(0)])
def test_nothing_usable(watts):
    assert not trust.judge(watts, subject="x").usable.any()
