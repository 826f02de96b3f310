from datetime import UTC, datetime, timedelta
from itertools import permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joulebook import drivers

START = datetime(2026, 11, 2, tzinfo=UTC)


def frame(columns):
    n = len(next(iter(columns.values())))
    return pl.DataFrame({"ts_utc": [START + timedelta(seconds=10 * k) for k in range(n)], **columns})


def by_orders(matrix):
    """Average over all orders of entering, from residual sums of squares."""
    p = matrix.shape[0] - 1

    def explained(subset):
        if not subset:
            return 0.0
        index = [k + 1 for k in subset]
        return float(matrix[0, index] @ np.linalg.inv(matrix[np.ix_(index, index)]) @ matrix[index, 0])

    shares = np.zeros(p)
    orders = list(permutations(range(p)))
    for order in orders:
        for place, driver in enumerate(order):
            shares[driver] += explained(order[: place + 1]) - explained(order[:place])
    return shares / len(orders)


@given(st.integers(0, 10_000), st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_shares_are_the_mean_over_orders_and_add_up(seed, p):
    rng = np.random.default_rng(seed)
    matrix = np.corrcoef(rng.normal(size=(60, p + 1)) @ rng.normal(size=(p + 1, p + 1)), rowvar=False)
    shares = drivers.explained_shares(matrix)
    assert shares == pytest.approx(by_orders(matrix), abs=1e-7)
    full = matrix[0, 1:] @ np.linalg.inv(matrix[1:, 1:]) @ matrix[1:, 0]
    assert shares.sum() == pytest.approx(full, abs=1e-7)


def simulated(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    load, memory, limit = rng.normal(size=(3, n))
    power = 300.0 + 20.0 * load + 10.0 * memory + 5.0 * rng.normal(size=n)
    return frame({"power_w": power, "load": load, "memory": memory, "limit": limit})


def test_independent_drivers_get_their_variance():
    found = drivers.explain(simulated(), drivers=["load", "memory", "limit"])
    truth = np.array([400.0, 100.0, 0.0]) / 525.0
    assert found.frame["share_ratio"].to_numpy() == pytest.approx(truth, abs=0.03)
    assert found.explained.value == pytest.approx(500 / 525, abs=0.02)
    assert found.explained.value + found.unexplained.value == pytest.approx(1.0)
    row = found.frame.row(0, named=True)
    assert row["share_lo"] < truth[0] < row["share_hi"]
    assert found.findings[0].code == "shares-are-not-causes"


def test_same_seed_same_interval():
    first, second = (drivers.explain(simulated(), drivers=["load", "memory"], seed=3).frame for _ in range(2))
    assert first.equals(second)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (lambda t: t.with_columns(twin=pl.col("load") * 2 + 1e-9), "told apart"),
        (lambda t: t.with_columns(twin=pl.lit(5.0)), "does not vary"),
        (lambda t: t.head(15).with_columns(twin=pl.col("limit")), "bins for"),
        (
            lambda t: t.with_columns(
                twin=pl.col("limit"), power_w=pl.Series(np.random.default_rng(9).normal(size=1500))
            ),
            "told apart|explain",
        ),
    ],
)
def test_refusals(columns, reason):
    found = drivers.explain(columns(simulated()), drivers=["load", "twin"])
    assert found.explained.value is None
    assert any(part in found.explained.reason for part in reason.split("|"))
    assert found.frame.height == 0 and found.findings[0].code == "drivers-unknown"


def test_temperature_is_named_as_caused_by_power():
    table = simulated().with_columns(
        temperature_c=pl.col("power_w") / 10 + pl.Series(np.random.default_rng(1).normal(size=1500))
    )
    found = drivers.explain(table, drivers=["load", "temperature_c"])
    assert "temperature_c" in found.findings[0].message


def test_wrong_columns_are_the_callers_mistake():
    with pytest.raises(ValueError, match="heat"):
        drivers.explain(simulated(), drivers=["heat"])
    with pytest.raises(ValueError, match="1 to 12"):
        drivers.explain(simulated(), drivers=[])
