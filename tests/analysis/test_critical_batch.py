from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from joulebook import critical_batch

X = np.array([8.0, 16, 32, 64, 128, 256])


def runs(tokens: np.ndarray, *, noise: float = 0.02, repeats: int = 5, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    spread = np.exp(noise * rng.standard_normal(X.size * repeats))
    return pl.DataFrame({"x": np.tile(X, repeats), "tokens_to_target": np.tile(tokens, repeats) * spread})


def test_law_is_found_and_covered() -> None:
    hits = []
    for seed in range(60):
        fit = critical_batch.fit(runs(1e9 * (1 + X / 100), seed=seed))
        if fit.batch.lo is not None and fit.batch.hi is not None:
            hits.append(fit.batch.lo <= 100 <= fit.batch.hi)
    assert len(hits) >= 55 and np.mean(hits) >= 0.85


def test_other_law_is_rejected() -> None:
    fit = critical_batch.fit(runs(1e9 * (1 + (X / 60) ** 2.5)))
    assert fit.batch.value is None and "do not grow linearly" in fit.batch.reason
    assert fit.findings[0].code == "critical-batch-refused"
    assert fit.p_value is not None and fit.p_value < 0.01


def test_falling_tokens_give_no_critical_size() -> None:
    assert "no critical size" in critical_batch.fit(runs(1e9 * (2 - X / 300))).batch.reason


def test_size_far_beyond_the_data_is_refused() -> None:
    assert "not bounded" in critical_batch.fit(runs(1e9 * (1 + X / 1e5), noise=1e-4)).batch.reason


def test_too_few_sizes_or_no_spread_are_refused() -> None:
    few = runs(1e9 * (1 + X / 100)).filter(pl.col("x") < 64)
    assert "at least 4" in critical_batch.fit(few).batch.reason
    assert "no spread" in critical_batch.fit(runs(1e9 * (1 + X / 100), noise=0.0)).batch.reason


def test_exact_line_gives_its_numbers() -> None:
    fit = critical_batch.fit(runs(1e9 * (1 + X / 50), noise=1e-6))
    assert fit.batch.value == pytest.approx(50, rel=1e-4)
    assert fit.least_tokens.value == pytest.approx(1e9, rel=1e-4)
