"""Coefficient of variation and its drivers: made series of known truth."""

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from scipy.signal import lfilter

from joulebook import drivers, variability_cv

REPEATS = 400
TRUE_CV = 0.03
START = datetime(2026, 1, 1, tzinfo=UTC)

CASES = {
    "white, n = 300": (300, 0.0, 0.0, 0.0),
    "AR .9, n = 1000": (1000, 0.9, 0.0, 0.0),
    "AR .9, trend of 30 W, n = 1000": (1000, 0.9, 15.0, 0.0),
    "AR .5, trend, 2 % outliers, n = 1000": (1000, 0.5, 15.0, 0.02),
    "AR .9, trend, 2 % outliers, n = 3000": (3000, 0.9, 15.0, 0.02),
}


def process(n, phi, trend, outliers, rng):
    red = lfilter([1.0], [1.0, -phi], rng.normal(size=n + 500))[500:] * np.sqrt(1.0 - phi**2)
    watts = 300.0 + 300.0 * TRUE_CV * red + trend * np.linspace(-1.0, 1.0, n)
    hit = rng.random(n) < outliers
    watts[hit] = rng.uniform(50.0, 200.0, hit.sum())
    return watts


@pytest.mark.score
@pytest.mark.parametrize("name", CASES)
def test_coefficient_of_variation(name, score):
    rng = np.random.default_rng(81)
    found = [variability_cv.estimate_cv(process(*CASES[name], rng))[0] for _ in range(REPEATS)]
    answered = [e for e in found if e.value is not None]
    bias = np.mean([e.value for e in answered]) / TRUE_CV - 1.0
    coverage = np.mean([e.lo <= TRUE_CV <= e.hi for e in answered])
    measured = f"bias {bias:+.1%}, covers {coverage:.3f} ({len(answered)} of {REPEATS} answered)"
    score.row("variability", name, "bias <= 2 %, covers 0.93 to 0.98", measured)
    assert len(answered) >= 0.9 * REPEATS
    assert abs(bias) <= 0.02
    assert 0.93 <= coverage <= 0.98


@pytest.mark.score
def test_shares_of_four_drivers(score):
    rng = np.random.default_rng(82)
    n, sets = 600, 60
    weights = np.array([20.0, 12.0, 6.0, 3.0])
    mixing = np.array([[1.0, 0.4, 0.0, 0.0], [0.0, 1.0, 0.3, 0.0], [0.0, 0.0, 1.0, 0.2], [0.0, 0.0, 0.0, 1.0]])
    noise_w = 15.0
    covariance = mixing.T @ mixing
    full = np.zeros((5, 5))
    full[1:, 1:] = covariance
    full[0, 1:] = full[1:, 0] = covariance @ weights
    full[0, 0] = weights @ covariance @ weights + noise_w**2
    sd = np.sqrt(np.diag(full))
    truth = drivers.explained_shares(full / np.outer(sd, sd))
    names = ["a", "b", "c", "d"]
    stamps = [START + timedelta(seconds=10 * k) for k in range(n)]
    hits = []
    for seed in range(sets):
        raw = lfilter([1.0], [1.0, -0.5], rng.normal(size=(n + 100, 4)), axis=0)[100:] * np.sqrt(0.75) @ mixing
        power = 300.0 + raw @ weights + noise_w * rng.normal(size=n)
        table = pl.DataFrame({"ts_utc": stamps, "power_w": power, **dict(zip(names, raw.T, strict=True))})
        frame = drivers.explain(table, drivers=names, seed=seed).frame
        hits.append((frame["share_lo"].to_numpy() <= truth) & (truth <= frame["share_hi"].to_numpy()))
    coverage = np.mean(hits)
    score.row("variability", "shares of 4 correlated drivers", "interval covers >= 0.90", f"{coverage:.3f}")
    assert coverage >= 0.90
