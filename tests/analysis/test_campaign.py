from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulebook import campaign, distributions
from joulebook.schema import conform

T0 = datetime(2026, 11, 4, tzinfo=UTC)
ORDER = ["baseline", "pipeline", "noop", "recompute"]
TRUTH = {"pipeline": -0.15, "noop": 0.0, "recompute": 0.04}


def runs(*, repeats: int = 4, noise: float = 0.003, seed: int = 0, slope: float = 0.005) -> pl.DataFrame:
    """Return a campaign with these effects, a room that swings, and values that follow it."""
    rng = np.random.default_rng(seed)
    levels = np.cumsum([0, *(np.log1p(e) for e in TRUTH.values())])
    arm = np.repeat(np.arange(len(ORDER)), repeats)
    inlet = 22 + 1.5 * np.sin(np.arange(arm.size) / 1.1)
    value = 0.02 * np.exp(levels[arm] + slope * (inlet - 22) + noise * rng.standard_normal(arm.size))
    return pl.DataFrame(
        {
            "run_id": [f"{ORDER[a]}-r{i}" for i, a in enumerate(arm)],
            "variant": [ORDER[a] for a in arm],
            "value": value,
            "inlet_c": inlet,
            "start_utc": [T0 + timedelta(minutes=8 * i) for i in range(arm.size)],
        }
    )


def test_effects_verdicts_and_table() -> None:
    done = campaign.effects(runs(), order=ORDER, scope="node")
    assert done.changes["verdict"].to_list() == ["saves", "indistinguishable", "costs"]
    assert done.changes["effect_ratio"].to_list() == pytest.approx(list(TRUTH.values()), abs=0.006)
    for row in done.changes.iter_rows(named=True):
        assert row["effect_lo"] <= TRUTH[row["change"]] <= row["effect_hi"]
        assert row["after"] / row["before"] - 1 == pytest.approx(row["effect_ratio"])
    assert conform(done.changes.with_columns(campaign=pl.lit("c")), "changes").height == 3
    assert "would see an effect of" in done.changes["reason"][1]
    assert done.inlet_slopes["slope_per_c"][0] == pytest.approx(0.005, abs=0.002)


def test_room_is_not_a_saving() -> None:
    # The second variant ran 1.5 °C cooler and nothing else changed; without the inlet it would be a saving.
    inlet = np.array([21.0, 22, 23, 24, 19.5, 20.5, 21.5, 22.5])
    value = np.exp(0.02 * inlet + 0.0005 * np.array([1, -1, 1, -1, -1, 1, -1, 1]))
    table = pl.DataFrame(
        {"run_id": list("abcdefgh"), "variant": ["old"] * 4 + ["new"] * 4, "value": value, "inlet_c": inlet}
    )
    assert campaign.effects(table, order=["old", "new"]).changes["verdict"][0] == "indistinguishable"


def test_waterfall_is_unbroken_and_total_is_the_product() -> None:
    done = campaign.effects(runs(), order=ORDER, scope="node")
    bars = done.waterfall
    assert bars["start"].to_list()[1:] == pytest.approx(bars["end"].to_list()[:-1])
    whole = campaign.total(done, "node")
    product = np.prod(1 + done.changes["effect_ratio"].to_numpy()) - 1
    assert whole.value == pytest.approx(product)
    assert whole.lo is not None and whole.hi is not None and whole.lo < product < whole.hi
    assert campaign.total(done, "rack").value is None


def test_fewer_than_three_runs_are_refused_with_what_they_show() -> None:
    two = runs(repeats=2)
    done = campaign.effects(two, order=ORDER)
    assert set(done.changes["verdict"]) == {"refused"}
    assert "2 runs of 'baseline'" in done.changes["reason"][0]
    assert "the difference as it stands is -1" in done.changes["reason"][0]
    assert done.changes["effect_ratio"].null_count() == 3


def test_refused_step_leaves_the_bar_hollow_and_the_rest_whole() -> None:
    short = runs().filter(~pl.col("run_id").is_in(["noop-r8", "noop-r9"]))
    done = campaign.effects(short, order=ORDER)
    assert done.changes["verdict"].to_list() == ["saves", "refused", "refused"]
    bar = done.waterfall.row(1, named=True)
    assert bar["start"] == bar["end"] == done.changes["after"][0] and bar["verdict"] == "refused"


def test_no_baseline_is_refused() -> None:
    done = campaign.effects(runs().filter(pl.col("variant") != "baseline"), order=ORDER)
    assert done.changes["verdict"].to_list() == ["refused", "indistinguishable", "costs"]
    assert "no baseline" in done.changes["reason"][0]


def test_runs_without_readings_at_a_scope_are_refused_there() -> None:
    table = runs()
    board = table.with_columns(scope=pl.lit("board"), value=pl.col("value") * 0.7)
    gone = pl.when(pl.col("variant") != "recompute").then("value")
    node = table.with_columns(scope=pl.lit("node"), value=gone)
    done = campaign.effects(pl.concat([board, node]), order=ORDER)
    last = done.changes.filter((pl.col("change") == "recompute") & (pl.col("scope") == "node")).row(0, named=True)
    assert last["verdict"] == "refused"
    assert "none of the 4 runs of 'recompute' is covered by readings at node" in last["reason"]
    assert "measured at board" in last["reason"]
    assert done.changes.filter(pl.col("scope") == "board")["verdict"].to_list() == [
        "saves",
        "indistinguishable",
        "costs",
    ]
    assert [f.subject for f in done.findings if f.code == "campaign-runs-set-aside"] == ["node"]


def test_badly_covered_runs_do_not_count() -> None:
    table = runs().with_columns(coverage_ratio=pl.when(pl.col("variant") == "noop").then(0.5).otherwise(1.0))
    assert campaign.effects(table, order=ORDER).changes["verdict"].to_list() == ["saves", "refused", "refused"]


def test_other_settings_are_refused() -> None:
    table = runs().with_columns(sequence_length=pl.when(pl.col("variant") == "recompute").then(8192).otherwise(4096))
    done = campaign.effects(table, order=ORDER, settings=["sequence_length"])
    assert done.changes["verdict"].to_list() == ["saves", "indistinguishable", "refused"]
    assert "sequence_length is 4096 against 8192" in done.changes["reason"][2]


def test_inlet_that_does_not_overlap_is_refused() -> None:
    summer = pl.col("inlet_c") + pl.when(pl.col("variant") == "recompute").then(8.0).otherwise(0.0)
    done = campaign.effects(runs().with_columns(inlet_c=summer), order=ORDER)
    assert done.changes["verdict"][2] == "refused" and "do not overlap" in done.changes["reason"][2]


def test_more_is_better_for_tokens_per_joule() -> None:
    table = runs().with_columns(value=1 / pl.col("value"))
    done = campaign.effects(table, order=ORDER, metric="tokens_per_j", higher_is_better=True)
    assert done.changes["verdict"].to_list() == ["saves", "indistinguishable", "costs"]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_monotone_and_never_below_the_plain_value(ps: list[float]) -> None:
    corrected = distributions.holm(ps)
    assert all(c >= p and c <= 1 for c, p in zip(corrected, ps, strict=True))
    ranked = [c for _, c in sorted(zip(ps, corrected, strict=True))]
    assert ranked == sorted(ranked)


def test_holm_worked_example() -> None:
    assert distributions.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_wrong_calls_are_errors() -> None:
    with pytest.raises(ValueError, match="at least two different variants"):
        campaign.effects(runs(), order=["baseline"])
    with pytest.raises(ValueError, match="no column value"):
        campaign.effects(runs().drop("value"), order=ORDER)
    with pytest.raises(ValueError, match="positive values"):
        campaign.effects(runs().with_columns(value=pl.lit(-1.0)), order=ORDER)


def test_argument_is_not_changed() -> None:
    table = runs()
    before = table.clone()
    campaign.effects(table, order=ORDER)
    assert table.equals(before)
