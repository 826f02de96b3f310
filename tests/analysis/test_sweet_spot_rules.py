from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from joulebook import sweet_spot, sweet_spot_rules


def judge(value: list[float], *, repeats: int = 3, p_best: list[float] | None = None, known: bool = True) -> str:
    n = len(value)
    best = int(np.argmin(value))
    chance = [float(i == best) for i in range(n)] if p_best is None else p_best
    settings = pl.DataFrame(
        {
            "x": 2.0 ** np.arange(n),
            "repeats": [repeats] * n,
            "value": value,
            "p_best": chance,
            "in_best_set": [p > 0.02 for p in chance],
            "as_good": [v <= 1.03 * min(value) for v in value],
        }
    )
    costs = np.tile(np.array(value), (50, 1))
    return sweet_spot_rules.judge(settings, costs, np.full(n, known), np.full(n, 0.005)).status


@pytest.mark.parametrize(
    ("value", "more", "status"),
    [
        ([4.25, 2.5, 2.0, 2.5, 4.25], {}, "found"),
        ([3.0, 2.0, 3.0], {}, "too-few"),
        ([4.0, 3.0, 2.0, 1.0], {}, "edge"),
        ([4.0, 3.0, 2.0, 1.0], {"repeats": 1}, "edge"),
        ([4.0, 2.0, 3.0, 4.0], {"repeats": 2}, "too-few"),
        ([4.0, 2.0, 3.0, 4.0], {"known": False}, "too-few"),
        ([2.5, 2.0, 2.5, 3.0, 4.0, 5.0], {"p_best": [0.1, 0.9, 0, 0, 0, 0]}, "edge"),
        ([4.0, 2.0, 3.0, 4.0], {"p_best": [0.1, 0.5, 0.2, 0.2]}, "flat"),
        ([2.05, 2.0, 2.01, 2.05], {}, "flat"),
        ([2.0, 2.01, 2.05, 2.02, 2.03], {"p_best": [0.4, 0.3, 0.0, 0.2, 0.1]}, "flat"),
        ([2.0, 2.01, 2.05, 2.02, 2.03], {"p_best": [0.4, 0.3, 0.0, 0.2, 0.1], "repeats": 2}, "edge"),
        ([2.0, 2.02, 2.5, 3.0, 4.0], {"p_best": [0.7, 0.3, 0, 0, 0]}, "edge"),
    ],
)
def test_rules_speak_in_order(value: list[float], more: dict[str, object], status: str) -> None:
    assert judge(value, **more) == status  # type: ignore[arg-type]


def test_what_may_be_as_low_as_the_edge_is_within_the_interval() -> None:
    rng = np.random.default_rng(4)
    true = np.array([1.0, 1.005, 1.2, 1.5, 1.9])
    runs = pl.DataFrame(
        {
            "x": np.tile(2.0 ** np.arange(5), 3),
            "energy_per_token_j": np.tile(true, 3) * (1 + 0.01 * rng.standard_normal(15)),
        }
    )
    row = sweet_spot.find(runs, objective="energy_per_token_j").row.row(0, named=True)
    assert (row["status"], row["x_lo"], row["x_hi"]) == ("edge", None, 2.0)
    assert "these runs cannot tell" in row["reason"]
