from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from joulebook import convergence

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def run(loss, watts=400.0):
    n = len(loss)
    t = [T0 + timedelta(seconds=s) for s in range(n + 1)]
    steps = pl.DataFrame({"step": np.arange(1, n + 1), "end_utc": t[1:], "loss": loss})
    return steps, pl.DataFrame({"device": "gpu:0", "ts_utc": t, "power_w": watts})


def test_cumulative_energy_and_a_constant_price():
    got = convergence.trace(*run(8 - 0.004 * np.arange(1000)))
    assert got.total.value == pytest.approx(400 * 1000)
    assert got.frame["marginal_j"].to_numpy() == pytest.approx(np.full(20, 400 / 0.004), rel=1e-6)
    assert got.rising_from.value is None


def test_a_power_law_keeps_getting_dearer():
    rng = np.random.default_rng(1)
    s = np.arange(1, 4001)
    loss = 2 + 6 * s**-0.3 + 0.01 * rng.standard_normal(4000)
    got = convergence.trace(*run(loss))
    assert got.rising_from.value is not None
    (found,) = got.findings
    assert found.code == "marginal-energy-rises"
    # cost of a unit of loss goes with energy to the 1.3: the quarters by the exact loss at their ends
    law = [6 * (4000 * share) ** -0.3 for share in (0.25, 0.5, 0.75, 1.0)]
    assert found.evidence["ratio"] == pytest.approx((law[0] - law[1]) / (law[2] - law[3]), rel=0.25)
    assert got.rising_from.value > 0.1 * got.total.value
    mid = got.frame.row(5, named=True)
    at = np.linspace(400, 400 * 4000, 21)[5:7].mean() / 400
    true_price = 400 / (6 * 0.3 * at**-1.3)
    assert mid["lo"] <= true_price <= (mid["hi"] or np.inf)


def test_the_first_fall_alone_is_no_news():
    rng = np.random.default_rng(4)
    s = np.arange(1, 4001)
    loss = np.where(s < 300, 8 - 0.015 * s, 3.5 - 1e-4 * (s - 300)) + 0.002 * rng.standard_normal(4000)
    assert convergence.trace(*run(loss)).findings == ()


def test_a_flat_loss_has_no_price():
    rng = np.random.default_rng(2)
    got = convergence.trace(*run(3 + 0.1 * rng.standard_normal(2000)))
    assert got.rising_from.value is None
    priced = got.frame.drop_nulls("marginal_j")
    assert priced["hi"].null_count() >= 0.7 * priced.height


def test_few_steps_are_refused():
    got = convergence.trace(*run(np.array([3.0, 2.9, 2.8])))
    assert got.total.value is None
    assert got.frame.is_empty()


def test_control_groups_in_one_table():
    runs = pl.DataFrame({
        "group": ["baseline"] * 3 + ["cap"] * 3 + ["dynamic"], "energy_j": [100.0, 101, 99, 82, 80, 78, 75],
        "final_loss": [2.5, 2.51, 2.49, 2.52, 2.5, 2.51, 2.6],
    })  # fmt: skip
    got = {r["group"]: r for r in convergence.controls(runs, baseline="baseline").iter_rows(named=True)}
    assert got["cap"]["energy_ratio"] == pytest.approx(0.8)
    half = 4.302653 * 1.0 / np.sqrt(3)
    assert got["baseline"]["energy_j_hi"] == pytest.approx(100 + half, rel=1e-5)
    assert got["dynamic"]["energy_j_lo"] is None
    assert "fewer than 3" in got["dynamic"]["reason"]
    with pytest.raises(ValueError, match="baseline"):
        convergence.controls(runs, baseline="none")


def test_the_price_of_loss_moves_slowly():
    assert convergence.next_price(100, loss=10, target=2) == pytest.approx(105)
    assert convergence.next_price(100, loss=1, target=2) == pytest.approx(95)
    assert convergence.next_price(100, loss=2.1, target=2) == 100
