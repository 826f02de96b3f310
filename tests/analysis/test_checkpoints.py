import math
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulebook import checkpoints


def test_interval_is_the_root_of_twice_cost_times_time_between_failures():
    assert checkpoints.best_interval(60, 24 * 3600).young_s.value == pytest.approx(math.sqrt(2 * 60 * 86400))


@pytest.mark.parametrize(("save", "mtbf", "best"), [(60, 86400, 0.042), (300, 4 * 3600, 0.256), (600, 3600, 1.04)])
def test_waste_agrees_with_simulated_runs(save, mtbf, best):
    """Runs with failures at random: time for saves and lost work over useful time."""
    tau = checkpoints.best_interval(save, mtbf).daly_s.value
    rng = np.random.default_rng(1)
    clock, useful, fails = 0.0, 0.0, rng.exponential(mtbf)
    target = 400 * mtbf / 4
    while useful < target:
        if clock + tau + save <= fails:
            clock, useful = clock + tau + save, useful + tau
        else:
            clock, fails = fails, fails + rng.exponential(mtbf)
    assert clock / useful - 1 == pytest.approx(best, rel=0.15)


def test_a_slow_save_is_refused():
    got = checkpoints.best_interval(2000, 3600)
    assert got.young_s.value is None
    assert "more than half" in got.daly_s.reason
    assert got.findings[0].code == "checkpoint-too-slow"


def test_flatness_by_hand():
    got = checkpoints.best_interval(60, 86400)
    assert got.flat_ratio == pytest.approx((0.7 + 1 / 0.7) / 2 - 1)
    assert got.statement.startswith("flat")


@given(st.floats(1, 1000), st.floats(1e4, 1e7))
def test_young_is_where_the_curve_is_lowest(save, mtbf):
    got = checkpoints.best_interval(save, mtbf)
    low = got.frame.sort("waste_ratio")["interval_s"][0]
    assert low == pytest.approx(got.young_s.value, rel=1e-6)


def test_the_interval_in_use_is_compared():
    best = checkpoints.best_interval(60, 86400, in_use_s=600)
    assert best.findings[0].code == "checkpoint-interval"
    assert not checkpoints.best_interval(60, 86400, in_use_s=3000).findings


def test_saves_are_measured():
    t0 = datetime(2026, 1, 1, tzinfo=UTC)
    start = [t0 + timedelta(seconds=600 * k) for k in range(3)]
    end = [s + timedelta(seconds=d) for s, d in zip(start, (14, 15, 16), strict=True)]
    got = checkpoints.observed(pl.DataFrame({"phase": "checkpoint", "start_utc": start, "end_utc": end}))
    assert got.save_s.value == 15.0
    assert got.interval_s.value == 600.0
    assert checkpoints.observed(got.frame.with_columns(phase=pl.lit("x"))).save_s.value is None


def test_times_must_be_positive():
    with pytest.raises(ValueError, match="save_s"):
        checkpoints.best_interval(0, 100)
