from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from joulebook import loss_target


def steps(noise: float, *, n: int = 2000, seed: int = 0, run_id: str = "a") -> pl.DataFrame:
    """Return a loss that falls as 2 + 4·tokens^-0.5 of thousands, with noise."""
    tokens = np.full(n, 1000.0)
    seen = np.cumsum(tokens) / 1000
    loss = 2 + 4 / np.sqrt(seen) + noise * np.random.default_rng(seed).standard_normal(n)
    return pl.DataFrame({"run_id": run_id, "step": np.arange(n), "tokens": tokens, "loss": loss})


def test_crossing_without_noise() -> None:
    # 2 + 4 / sqrt(t) = 2.16 at t = 625 thousand tokens.
    row = loss_target.find(steps(0.0), 2.16).row(0, named=True)
    assert row["tokens_to_target"] == pytest.approx(625e3, rel=0.003)
    assert row["reason"] == ""


def test_one_lucky_step_does_not_count_and_interval_covers() -> None:
    hits = []
    for seed in range(40):
        row = loss_target.find(steps(0.05, seed=seed), 2.16).row(0, named=True)
        assert row["tokens_to_target"] > 400e3
        hits.append(row["tokens_to_target_lo"] <= 625e3 <= row["tokens_to_target_hi"])
    # The first crossing of a noisy course comes early, within the error of the course.
    assert np.mean(hits) >= 0.8


def test_target_not_reached_is_said() -> None:
    row = loss_target.find(steps(0.0), 1.5).row(0, named=True)
    assert row["tokens_to_target"] is None and "not reached" in row["reason"]


def test_target_before_the_log_is_said() -> None:
    row = loss_target.find(steps(0.0), 100.0).row(0, named=True)
    assert row["tokens_to_target"] is None and "starts at or below" in row["reason"]


def test_too_few_steps_are_said() -> None:
    assert "too few steps" in loss_target.find(steps(0.0, n=6), 2.5)["reason"][0]


def test_steps_without_a_loss_still_count_their_tokens() -> None:
    thinned = steps(0.0).with_columns(loss=pl.when(pl.col("step") % 2 == 0).then("loss"))
    assert loss_target.find(thinned, 2.16)["tokens_to_target"][0] == pytest.approx(625e3, rel=0.01)


def test_runs_are_apart() -> None:
    both = pl.concat([steps(0.0, run_id="b"), steps(0.0, run_id="a", n=100)])
    got = loss_target.find(both, 2.16)
    assert got["run_id"].to_list() == ["a", "b"]
    assert got["tokens_to_target"][0] is None and got["tokens_to_target"][1] is not None


def test_wrong_calls_are_errors() -> None:
    with pytest.raises(ValueError, match="no column loss"):
        loss_target.find(steps(0.0).drop("loss"), 2.0)
    with pytest.raises(ValueError, match="finite"):
        loss_target.find(steps(0.0), float("nan"))
