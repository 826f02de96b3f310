from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from joulebook import sweet_spot_rules


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
    ],
)
def test_rules_speak_in_order(value: list[float], more: dict[str, object], status: str) -> None:
    assert judge(value, **more) == status  # type: ignore[arg-type]
