from __future__ import annotations

import polars as pl

from joulebook import campaign_runs
from joulebook.ancova import Design


def checked(inlet_a: list[float], inlet_b: list[float]) -> pl.DataFrame:
    n = len(inlet_a)
    runs = pl.DataFrame(
        {
            "run_id": [str(i) for i in range(2 * n)],
            "variant": ["a"] * n + ["b"] * n,
            "value": [1.0 + 0.001 * i for i in range(2 * n)],
            "inlet_c": inlet_a + inlet_b,
        }
    )
    return campaign_runs.check(runs, order=["a", "b"], scope="node", settings=())


def why(table: pl.DataFrame) -> str:
    return campaign_runs.refusal(
        table, campaign_runs.usable(table), "a", "b", scope="node", settings=(), design=Design()
    )


def test_small_shift_without_overlap_is_compared() -> None:
    assert why(checked([20.0, 20.5, 21.0], [22.0, 22.5, 23.0])) == ""


def test_large_shift_with_overlap_is_compared() -> None:
    assert why(checked([18.0, 20, 26], [20.0, 26, 30])) == ""


def test_large_shift_without_overlap_is_refused() -> None:
    assert "18.0 to 20.0 °C against 25.0 to 27.0 °C" in why(checked([18.0, 19, 20], [25.0, 26, 27]))


def test_nan_is_no_value_and_other_variants_are_left_out() -> None:
    runs = pl.DataFrame({"run_id": ["1", "2"], "variant": ["a", "z"], "value": [float("nan"), 1.0]})
    table = campaign_runs.check(runs, order=["a", "b"], scope="", settings=())
    assert table["variant"].to_list() == ["a"] and table["log_value"].to_list() == [None]
    assert campaign_runs.usable(table).height == 0
