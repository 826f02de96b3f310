from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from joulebook import beside_boards
from joulebook.findings import Estimate

T0 = datetime(2026, 1, 1, tzinfo=UTC)
LENGTH = 1800


def log(device, seconds, watts):
    return pl.DataFrame(
        {"device": device, "ts_utc": [T0 + timedelta(seconds=float(s)) for s in seconds], "power_w": watts}
    )


def machine(other_w, *, seed=0, late=0.0):
    """A machine with two boards: each watt of theirs costs 1.15, and a stall comes every 90 s; fans follow in a minute."""
    rng = np.random.default_rng(seed)
    t = np.arange(LENGTH + 1.0)
    busy = np.where(t % 90 < 5, 150.0, 500.0) * np.where(t < 120, 0.4 + 0.6 * t / 120, 1.0)
    boards = [busy + 4 * rng.standard_normal(t.size) for _ in range(2)]
    both = boards[0] + boards[1]
    fans = np.convolve(both, np.exp(-np.arange(300) / 60) / 60)[: t.size] * 0.06
    whole = 250 + 1.15 * both + fans + np.array([other_w(s) for s in t]) + 5 * rng.standard_normal(t.size)
    return log("node", t + late, whole), pl.concat([log(f"gpu:{i}", t, b) for i, b in enumerate(boards)])


def found(other_w, **kind):
    return beside_boards.find(*machine(other_w, **kind), start_utc=T0, end_utc=T0 + timedelta(seconds=LENGTH))


def test_a_job_that_starts_and_ends_in_the_run_has_its_energy():
    got = found(lambda s: 300.0 if 600 <= s < 1100 else 0.0)
    assert got.steps == 2
    assert got.most_w == pytest.approx(300, rel=0.03)
    # 300 W for 500 s, and at most a mean of 20 s at each end
    assert 300 * 500 <= got.energy_j <= 300 * 500 + 2 * 300 * 20


def test_a_job_that_was_there_and_ends_has_its_energy():
    got = found(lambda s: 200.0 if s < 900 else 0.0, seed=1)
    assert got.steps == 1
    assert got.energy_j == pytest.approx(200 * 900, rel=0.04)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("late", [0.0, 3.0])
def test_a_run_alone_shows_none_whatever_its_boards_do(seed, late):
    assert found(lambda _: 0.0, seed=seed, late=late) == beside_boards.NOTHING


def test_slow_wander_is_no_step():
    assert found(lambda s: 60 * np.sin(s / 150)) == beside_boards.NOTHING


def test_what_draws_all_through_the_run_cannot_be_seen():
    assert found(lambda _: 300.0) == beside_boards.NOTHING


def test_too_little_to_compare_is_no_step():
    whole, boards = machine(lambda s: 300.0 if s >= 600 else 0.0)
    ends = {"start_utc": T0, "end_utc": T0 + timedelta(seconds=LENGTH)}
    assert beside_boards.find(whole, boards.head(0), **ends) == beside_boards.NOTHING
    assert beside_boards.find(whole.gather_every(60), boards, **ends) == beside_boards.NOTHING


def test_the_interval_reaches_down_by_what_may_be_anothers():
    marginal = Estimate(1000.0, 950.0, 1050.0, "J", reason="few readings")
    got, told = beside_boards.doubted(marginal, beside_boards.Beside(300.0, 40.0, 2))
    assert (got.value, got.lo, got.hi) == (1000.0, 650.0, 1050.0)
    assert got.reason == "few readings; beside the boards, up to 40 W more was drawn at times in the run"
    assert told[0].code == "marginal-other-draw"
    assert beside_boards.doubted(marginal, beside_boards.NOTHING) == (marginal, ())
    refused = Estimate.refused("no idle power", unit="J")
    assert beside_boards.doubted(refused, beside_boards.Beside(300.0, 40.0, 2)) == (refused, ())
