from __future__ import annotations

import polars as pl
import pytest

from joulebook import two_knobs


def grid_runs() -> pl.DataFrame:
    rows = [
        (float(b), float(c), (b / 16 + 16 / b + c / 200 + 200 / c) * (1 + 0.002 * r), 100.0 + c)
        for b in (4, 8, 16, 32, 64)
        for c in (100, 150, 200, 250, 300)
        for r in (-1, 0, 1)
    ]
    return pl.DataFrame(rows, schema=["x", "x2", "energy_per_token_j", "mean_power_w"], orient="row")


def test_best_pair_and_both_knobs() -> None:
    found = two_knobs.find(grid_runs(), objective="energy_per_token_j")
    assert found.grid.height == 25
    assert found.grid.sort("value").select("x", "x2").row(0) == (16, 200)
    assert found.rows["knob"].to_list() == ["x", "x2"]
    assert found.rows.filter(pl.col("knob") == "x").select("status").item() == "found"
    assert found.rows["x"].to_list() == pytest.approx([16, 200], rel=0.05)
    assert found.grid["p_best"].sum() == pytest.approx(1)


def test_knob_at_the_edge_is_named() -> None:
    found = two_knobs.find(grid_runs().filter(pl.col("x2") <= 150), objective="energy_per_token_j")
    assert found.rows.filter(pl.col("knob") == "x2").select("status").item() in {"edge", "too-few"}
    assert any(f.code.startswith("sweet-spot-") for f in found.findings)


def test_savings_against_a_default() -> None:
    grid = two_knobs.find(grid_runs(), objective="energy_per_token_j").grid
    saved = {k: v for k, v in two_knobs.savings(grid, x=64, x2=300).select("which", "effect_ratio").iter_rows()}
    assert saved["both"] < saved["x"] < saved["x2"] < 0
    assert 1 + saved["both"] == pytest.approx(4 / (4.25 + 300 / 200 + 200 / 300))


def test_nothing_to_go_by() -> None:
    found = two_knobs.find(grid_runs())
    assert found.rows.height == 0 and found.grid.height == 0
    assert found.findings[0].code == "sweet-spot-refused"


def test_wrong_calls_are_errors() -> None:
    with pytest.raises(ValueError, match="no column x2"):
        two_knobs.find(grid_runs().drop("x2"))
    with pytest.raises(ValueError, match=r"default \(5, 200\) is not in the grid"):
        two_knobs.savings(pl.DataFrame({"x": [1.0], "x2": [2.0], "value": [3.0]}), x=5, x2=200)
