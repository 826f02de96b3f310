from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from joulebook import campaign

T0 = datetime(2026, 11, 4, tzinfo=UTC)


def runs(letters: str, values: np.ndarray | None = None) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    n = len(letters)
    return pl.DataFrame(
        {
            "run_id": [f"r{i}" for i in range(n)],
            "variant": list(letters),
            "value": np.exp(0.002 * rng.standard_normal(n)) if values is None else values,
            "start_utc": [T0 + timedelta(minutes=10 * i) for i in range(n)],
        }
    )


def codes(table: pl.DataFrame, order: str) -> list[str]:
    return [f.code for f in campaign.effects(table, order=list(order)).findings]


def test_blocks_in_time_and_unknown_inlet_are_named() -> None:
    assert codes(runs("AAABBB"), "AB") == ["campaign-blocks-in-time", "campaign-inlet-unknown"]


def test_variants_in_turn_have_no_finding_on_time() -> None:
    assert "campaign-blocks-in-time" not in codes(runs("ABABAB"), "AB")


def test_other_order_than_named_is_found() -> None:
    assert "campaign-order-differs" in codes(runs("AAACCCBBB"), "ABC")


def test_runs_in_turn_or_at_random_have_no_order_of_variants_to_check() -> None:
    for letters in ("BCAACBABC", "CBAABCCBA", "BACCABACB"):
        assert "campaign-order-differs" not in codes(runs(letters), "ABC")


def test_drift_is_named_and_taken_out() -> None:
    letters = "AAAAAABBBBBB"
    table = runs(letters, np.exp(0.01 * np.arange(12) + 0.0005 * np.sin(7 * np.arange(12))))
    done = campaign.effects(table, order=["A", "B"])
    assert "campaign-drift" in [f.code for f in done.findings]
    assert done.changes["verdict"][0] == "indistinguishable"


def test_scopes_that_disagree_are_named_from_the_same_runs() -> None:
    rng = np.random.default_rng(1)
    # Both scopes share the noise of the runs (1 %), so only their ratio shows that the wide one saves less.
    noise = 0.01 * rng.standard_normal(8)
    after = np.repeat([0.0, 1.0], 4)
    board = runs("AAAABBBB", np.exp(noise - 0.08 * after)).with_columns(scope=pl.lit("board"))
    rest = 0.0005 * rng.standard_normal(8)
    node = runs("AAAABBBB", 2 * np.exp(noise + rest - 0.06 * after)).with_columns(scope=pl.lit("node"))
    done = campaign.effects(pl.concat([board, node]), order=["A", "B"])
    found = [f for f in done.findings if f.code == "campaign-scopes-differ"]
    assert len(found) == 1
    assert "at board" in found[0].message and "wide over narrow +2." in found[0].message
    alike = campaign.effects(
        pl.concat([board, board.with_columns(scope=pl.lit("node"), value=2 * pl.col("value"))]), order=["A", "B"]
    )
    assert not [f for f in alike.findings if f.code == "campaign-scopes-differ"]


def test_unequal_spread_is_named() -> None:
    rng = np.random.default_rng(2)
    spread = np.repeat([0.001, 0.001, 0.2], 8)
    table = runs("A" * 8 + "B" * 8 + "C" * 8, np.exp(spread * rng.standard_normal(24)))
    assert "campaign-unequal-spread" in codes(table, "ABC")
