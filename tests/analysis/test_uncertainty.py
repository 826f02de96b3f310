from __future__ import annotations

import numpy as np
import pytest

from joulebook import stretches, uncertainty


def joined(t, p, **options):
    return stretches.between_instants(np.asarray(t, float), np.asarray(p, float), limit_s=3.0, **options)


@pytest.mark.parametrize(
    ("values", "grain"),
    [
        ([280, 294, 308, 336, 280], 14.0),
        ([215.3, 215.5, 214.0, 216.7, 215.4], 0.1),
        ([55.25, 55.26, 60.11, 58.9], 0.01),
        ([300.0, 300.0], 1.0),
    ],
)
def test_grain_of_values(values, grain):
    assert uncertainty.grain_w(np.array(values, float)) == pytest.approx(grain)


def test_unrounded_values_have_no_grain():
    assert uncertainty.grain_w(np.random.default_rng(0).normal(300, 5, 500)) == 0.0


def test_noise_of_white_readings_is_that_of_their_mean():
    """Independent readings: the sum's standard deviation is sd · step · sqrt(n)."""
    rng = np.random.default_rng(3)
    got = uncertainty.noise_j(joined(np.arange(5001), 300 + rng.normal(0, 10, 5001)))
    assert got == pytest.approx(1.96 * 10 * np.sqrt(5000), rel=0.05)


def test_noise_of_a_slow_signal_is_small():
    t = np.arange(5001)
    slow, fast = 300 + 100 * np.sin(t / 500), 300 + 100 * np.sin(2.0 * t)
    assert uncertainty.noise_j(joined(t, slow)) < 0.01 * uncertainty.noise_j(joined(t, fast))


def test_what_the_sensor_saw_of_a_step_is_not_unseen():
    p = 300 + np.random.default_rng(0).normal(0, 10, 1001)
    full = uncertainty.noise_j(joined(np.arange(1001), p))
    assert uncertainty.noise_j(joined(np.arange(1001), p, seen_s=0.75)) == pytest.approx(full / 2)
    assert uncertainty.noise_j(joined(np.arange(1001), p, seen_s=1.0)) == 0


def test_rounding_of_a_moving_signal_averages_out():
    s = joined(np.arange(10_001), np.full(10_001, 300.0))
    still = uncertainty.resolution_j(s, grain=1.0, sd_step_w=0.0)
    moving = uncertainty.resolution_j(s, grain=1.0, sd_step_w=2.0)
    assert still == 5000 and moving == pytest.approx(1.96 / np.sqrt(12) * 100, rel=1e-3)


def test_steps_of_a_counter_count_at_the_ends_of_blocks_only():
    one, four = (uncertainty.quantum_j(3600, blocks=b) for b in (1, 4))
    assert one == pytest.approx(1.96 * 3600 / np.sqrt(6), rel=1e-3) and four == pytest.approx(2 * one)
