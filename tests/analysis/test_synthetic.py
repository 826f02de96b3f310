"""The made-up truth obeys its own laws: energies add up, stalls and heat look as they should, effects are known."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from joulebook import schema, synthetic
from joulebook.synthetic_campaign import Change, campaign
from joulebook.synthetic_power import correlated_noise
from joulebook.synthetic_truth import Truth, expected, simulate
from joulebook.synthetic_workload import Loss, PlannedRun, Workload, schedule


@pytest.fixture(scope="module")
def node() -> Truth:
    return synthetic.node(7)


def test_same_seed_same_truth_other_seed_other_truth(node: Truth) -> None:
    again = synthetic.node(7)
    assert again.boards.equals(node.boards) and again.steps.equals(node.steps)
    assert not synthetic.node(8).node["power_w"].equals(node.node["power_w"])


def test_tables_have_the_store_s_columns(node: Truth) -> None:
    for name in ("runs", "steps", "phases"):
        assert dict(getattr(node, name).schema) == schema.table(name).schema, name


def test_energies_add_up_over_phases_and_boards(node: Truth) -> None:
    run = node.energies.filter(pl.col("run_id") == "pretrain-1")
    for scope in ("board", "node", "package", "dram"):
        parts = run.filter((pl.col("scope") == scope) & (pl.col("device") == "") & (pl.col("phase") != ""))
        assert parts["energy_j"].sum() == pytest.approx(node.energy_j("pretrain-1", scope), rel=1e-12)
    boards = sum(node.energy_j("pretrain-1", "board", device=f"gpu:{k}") for k in (0, 1))
    assert boards == pytest.approx(node.energy_j("pretrain-1", "board"), rel=1e-12)


def test_energy_is_the_sum_of_the_cells_within_the_run(node: Truth) -> None:
    start, end = node.runs.select("start_utc", "end_utc").row(0)
    inside = node.node.filter((pl.col("ts_utc") >= start) & (pl.col("ts_utc") < end))
    assert inside["power_w"].sum() * node.cell_s == pytest.approx(node.energy_j("pretrain-1", "node"), rel=1e-12)
    assert inside["run_id"].unique().to_list() == ["pretrain-1"]


def test_phases_tile_the_run_and_last_as_long_as_the_energies_say(node: Truth) -> None:
    assert node.phases["start_utc"][1:].equals(node.phases["end_utc"][:-1].alias("start_utc"))
    edges = node.phases["start_utc"][0], node.phases["end_utc"][-1]
    assert edges == node.runs.select("start_utc", "end_utc").row(0)
    length_s = (pl.col("end_utc") - pl.col("start_utc")).sum().dt.total_seconds(fractional=True)
    lasted = node.phases.group_by("phase").agg(length_s.alias("lasted_s"))
    known = node.energies.filter((pl.col("scope") == "node") & (pl.col("run_id") != "")).select("phase", "duration_s")
    both = lasted.join(known, on="phase")
    assert both.height == 7
    assert np.allclose(both["lasted_s"], both["duration_s"])


def test_steps_follow_each_other_and_carry_the_run_s_tokens(node: Truth) -> None:
    assert node.steps["start_utc"][1:].equals(node.steps["end_utc"][:-1].alias("start_utc"))
    assert node.steps["tokens"].sum() == node.runs["tokens"][0]


def test_stalled_boards_draw_thirty_to_fifty_per_cent_of_peak_with_nothing_to_do(node: Truth) -> None:
    stalled = node.boards.join(node.node.select("ts_utc", "phase"), on="ts_utc").filter(pl.col("phase") == "data_wait")
    assert stalled.height > 1000
    assert stalled["utilization_ratio"].max() == 0.0
    share = stalled["power_w"] / node.boards["power_w"].max()
    assert share.is_between(0.3, 0.5).all()


def test_boards_are_most_of_a_busy_node_and_the_rest_is_positive(node: Truth) -> None:
    busy = node.node.filter(pl.col("phase") == "backward")
    share = (busy["board_power_w"] / busy["power_w"]).mean()
    assert 0.65 < share < 0.8
    parts = pl.sum_horizontal("board_power_w", "cpu_power_w", "dram_power_w", "fan_power_w")
    assert node.node.select((pl.col("power_w") - parts).min()).item() > 50.0


def test_a_warmer_inlet_costs_the_node_but_not_the_boards() -> None:
    plan = PlannedRun(run_id="a", workload=Workload(), duration_s=200.0, idle_before_s=60.0)
    cool, warm = (expected(plan, inlet_c=c) for c in (22.0, 28.0))
    assert warm.energy_j("a", "board") == pytest.approx(cool.energy_j("a", "board"), rel=1e-12)
    assert 1.01 < warm.energy_j("a", "node") / cool.energy_j("a", "node") < 1.1


def test_power_rises_with_heat_and_is_steady_when_the_truth_says_so() -> None:
    work = Workload(forward_s=0.0, backward_s=3.0, grad_sync_s=0.0, optimizer_s=0.0)
    made = expected(PlannedRun(run_id="a", workload=work, duration_s=400.0, idle_before_s=60.0))
    power = made.node.filter(pl.col("run_id") == "a")["board_power_w"].to_numpy()
    warm = made.warmups.row(0, named=True)
    lo, hi = (round(warm[k] / made.cell_s) for k in ("steady_lo_s", "steady_hi_s"))
    assert power[lo] / power[-1] == pytest.approx(0.98, abs=0.001)
    assert power[hi] / power[-1] == pytest.approx(0.995, abs=0.0005)
    assert 0.92 < power[round(warm["setup_s"] / made.cell_s) + 1] / power[-1] < 0.97


def test_loss_is_the_power_law() -> None:
    loss = Loss(floor=2.0, scale=4.0, exponent=0.5, unit_tokens=100.0)
    assert loss.at(np.array([100.0, 400.0, 10000.0])).tolist() == pytest.approx([6.0, 4.0, 2.4])


def test_schedule_counts_stalls_and_checkpoints() -> None:
    work = Workload(stall_s=2.0, stall_every=10, checkpoint_s=5.0, checkpoint_every=25)
    plan = PlannedRun(run_id="a", workload=work, duration_s=400.0, idle_before_s=0.0)
    made = schedule(plan, cell_s=0.1, rng=np.random.default_rng(1))
    steps = made.step_end.size
    assert (made.phase == 2).sum() == steps // 10
    assert (made.phase == 7).sum() == steps // 25
    assert made.total_cells * 0.1 == pytest.approx(400.0, abs=8.0)


def test_noise_has_unit_variance_and_the_asked_correlation() -> None:
    noise = correlated_noise(400_000, 1.0, cell_s=0.1, rng=np.random.default_rng(3))
    assert noise.std() == pytest.approx(1.0, abs=0.03)
    assert np.corrcoef(noise[10:], noise[:-10])[0, 1] == pytest.approx(np.exp(-1.0), abs=0.03)


def test_start_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="has no zone"):
        simulate([], seed=1, start_utc=datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None))


def test_sweep_follows_the_law_of_tokens_and_has_its_best_inside() -> None:
    made = synthetic.sweep(5, tokens_spread_ratio=0.0)
    law = 4.2e8 * (1.0 + made.curve["batch_size"] / 90.0)
    assert np.allclose(made.curve["tokens_to_target"], law)
    assert 64 < made.best_batch_size < 256
    least = made.curve.sort("energy_to_target_j")["batch_size"][0]
    assert made.best_tested == least
    # The least must beat its neighbours clearly, or no reader could find it.
    cost = made.curve["energy_to_target_j"].to_list()
    at = made.curve["batch_size"].to_list().index(least)
    assert min(cost[at - 1], cost[at + 1]) / cost[at] > 1.05


def test_sweep_runs_are_on_average_what_the_curve_says() -> None:
    made = synthetic.sweep(6)
    runs = made.truth.runs
    per_token = pl.Series([made.truth.energy_j(r, "board") for r in runs["run_id"]]) / runs["tokens"]
    joined = runs.select("batch_size", per_token.alias("seen")).group_by("batch_size").mean()
    both = joined.join(made.curve.with_columns(pl.col("batch_size").cast(pl.Float64)), on="batch_size")
    assert both.height == 7
    assert (both["seen"] / both["energy_per_token_j"] - 1.0).abs().max() < 0.02


def test_sweep_moves_right_when_large_batches_cost_no_tokens() -> None:
    made = synthetic.sweep(5, repeats=1, critical_batch_size=1e9)
    assert made.best_tested == 1024


def test_campaign_knows_its_effects() -> None:
    made = campaign(9)
    effects = dict(zip(made.effects["change"], made.effects["node_effect_ratio"], strict=True))
    assert effects["rename-buckets"] == 0.0
    assert effects["data-pipeline"] < -0.05 < 0.03 < effects["recompute"]
    runs = made.truth.runs.with_columns(variant=pl.col("run_id").str.replace(r"-r\d+$", ""))
    per_token = pl.Series([made.truth.energy_j(r, "board") for r in runs["run_id"]]) / runs["tokens"]
    means = dict(runs.select("variant", per_token.alias("x")).group_by("variant").mean().iter_rows())
    for before, after, truth in zip(made.order[:-1], made.order[1:], made.effects["board_effect_ratio"], strict=True):
        assert means[after] / means[before] - 1.0 == pytest.approx(truth, abs=0.015), after


def test_campaign_shares_inlet_temperatures_but_for_the_refused_change() -> None:
    made = campaign(9)
    during = made.truth.node.filter(pl.col("run_id") != "")
    ranges = during.group_by(pl.col("run_id").str.replace(r"-r\d+$", ""), maintain_order=True).agg(
        pl.col("inlet_c").min().alias("lo"), pl.col("inlet_c").max().alias("hi")
    )
    shared = np.minimum(ranges["hi"][1:], ranges["hi"][:-1]) - np.maximum(ranges["lo"][1:], ranges["lo"][:-1])
    assert ((shared > 1.0).to_numpy() == made.effects["inlet_overlaps"].to_numpy()).all()
    assert shared[-1] < -1.0


def test_one_change_of_known_size() -> None:
    """Steps of half the length at the same power cost half the energy per token."""
    work = Workload(grad_sync_s=0.0, setup_s=0.1, wait_jitter_ratio=0.0)
    halved = Change(name="half", compute_factor=0.5).applied(work)
    assert halved.compute_step_s == pytest.approx(work.compute_step_s / 2)
    made = campaign(1, changes=(Change(name="half", compute_factor=0.5),), repeats=1, work=work)
    assert made.effects["board_effect_ratio"][0] == pytest.approx(-0.5, abs=0.01)
