from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from joulebook import replay, replay_rules

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def recorded(n=1000, loss=None, busy=None):
    return pl.DataFrame({
        "ts_utc": [T0 + timedelta(seconds=2 * k) for k in range(n)],
        "step": np.arange(n), "energy_j": np.full(n, 800.0),
        "loss": np.full(n, 3.0) if loss is None else loss,
        "utilization_ratio": np.full(n, 0.95) if busy is None else busy,
    })  # fmt: skip


def test_two_low_readings_do_nothing_three_act():
    busy = np.full(1000, 0.95)
    busy[500:502] = 0.3
    busy[700:704] = 0.3
    got = replay.run(recorded(busy=busy), [replay_rules.low_utilization()])
    assert got.height == 1
    assert got["ts_utc"][0] == T0 + timedelta(seconds=2 * 702)
    assert got["at_stake_j"][0] == 4 * 800.0


def test_nothing_is_said_in_the_silent_period():
    busy = np.full(1000, 0.95)
    busy[100:110] = 0.3
    assert replay.run(recorded(busy=busy), [replay_rules.low_utilization()]).is_empty()
    assert replay.run(recorded(busy=busy), [replay_rules.low_utilization()], silent_s=60).height == 1


def test_accumulation_moves_one_notch_at_a_time():
    got = replay.run(recorded(busy=np.full(1000, 0.3)), [replay_rules.accumulation(notch_steps=100)], silent_s=0)
    steps = got.select((pl.col("ts_utc") - T0).dt.total_seconds() / 2).to_series().to_numpy()
    assert np.diff(steps).min() >= 100
    assert "x 1.15" in got["decision"][0]
    assert got["at_stake_j"].sum() == pytest.approx(800.0 * (1000 - 3))


def test_the_cap_comes_on_the_plateau_only():
    falling = 8 - 0.006 * np.arange(1000)
    assert replay.run(recorded(loss=falling), [replay_rules.plateau_cap()], silent_s=0).is_empty()
    flat = np.where(np.arange(1000) < 500, falling, falling[500])
    got = replay.run(recorded(loss=flat), [replay_rules.plateau_cap()], silent_s=0)
    assert got.height == 1
    assert 700 < (got["ts_utc"][0] - T0).total_seconds() / 2 < 900


def test_the_target_is_tightened_each_time_it_is_met():
    loss = np.linspace(3.0, 2.0, 1000)
    got = replay.run(recorded(loss=loss), [replay_rules.tighten_target(2.5, by=0.05)], silent_s=0)
    assert got["decision"].to_list()[:2] == ["tighten the target to 2.375", "tighten the target to 2.2562"]
    assert got["at_stake_j"].is_sorted(descending=True)


def test_an_analyst_writes_a_rule():
    rule = replay.Rule(
        "mine",
        lambda x: x.with_columns(hot=pl.col("energy_j") > 700),
        lambda x: x.filter("hot").head(1).select(
            "ts_utc", decision=pl.lit("look"), reason=pl.lit("hot"), at_stake_j="energy_j"
        ),
    )  # fmt: skip
    assert replay.run(recorded(), [rule], silent_s=0)["rule"].to_list() == ["mine"]
    bad = replay.Rule("bad", lambda x: x, lambda x: x.select("ts_utc"))
    with pytest.raises(ValueError, match="wanted are"):
        replay.run(recorded(), [bad])


def test_the_log_joins_steps_and_power():
    t = [T0 + timedelta(seconds=s) for s in range(21)]
    power = pl.concat(
        pl.DataFrame({"device": d, "ts_utc": t, "power_w": 100.0, "utilization_ratio": u})
        for d, u in (("gpu:0", 0.2), ("gpu:1", 0.6))
    )
    steps = pl.DataFrame({"step": [1, 2], "end_utc": [t[10], t[20]], "loss": [3.0, 2.9]})
    got = replay.log(steps, power)
    assert got["energy_j"].to_list() == [2000.0, 2000.0]
    assert got["utilization_ratio"].to_list() == pytest.approx([0.4, 0.4])


@pytest.mark.parametrize(("wanted", "allowed"), [(2.0, 1.15), (0.5, 0.85), (1.1, 1.1)])
def test_learning_rate_moves_at_most_15_percent(wanted, allowed):
    assert replay_rules.learning_rate_change(wanted) == pytest.approx(allowed)
