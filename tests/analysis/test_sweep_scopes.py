from __future__ import annotations

import polars as pl
import pytest

from joulebook import sweep_scopes, sweet_spot


def spot(costs: dict[float, float]) -> sweet_spot.SweetSpot:
    runs = pl.DataFrame({"x": list(costs), "energy_per_token_j": list(costs.values())})
    return sweet_spot.find(runs, objective="energy_per_token_j")


def test_difference_and_its_cost_are_stated() -> None:
    board = spot({100.0: 2.0, 200: 1.5, 300: 1.8, 400: 2.2})
    wall = spot({100.0: 4.0, 200: 3.0, 300: 2.5, 400: 2.8})
    finding = sweep_scopes.between(board, wall, names=("board", "wall"))
    assert finding.code == "sweet-spot-scopes-differ" and finding.severity == "warning"
    assert finding.evidence["cost_ratio"] == pytest.approx(0.2)
    assert "200 at board but 300 at wall" in finding.message


def test_agreement_and_no_common_setting() -> None:
    one = spot({1.0: 3.0, 2: 2.0, 3: 3.0, 4: 4.0})
    assert sweep_scopes.between(one, one).code == "sweet-spot-scopes-agree"
    assert sweep_scopes.between(one, spot({9.0: 1.0})).code == "sweet-spot-scopes-refused"
