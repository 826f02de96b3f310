import math
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from scipy.signal import lfilter

from joulebook import variability, variability_cv

START = datetime(2026, 11, 2, tzinfo=UTC)


def frame(watts, period_s=1.0):
    stamps = [START + timedelta(seconds=k * period_s) for k in range(len(watts))]
    return pl.DataFrame({"device": "node", "ts_utc": stamps, "power_w": np.asarray(watts, dtype=float)})


def test_the_worked_hour():
    t = np.arange(0.0, 3600.0, 10.0)
    gpu = 250 + 80 * np.sin(t / 300) + np.where(t < 600, 80 * (1 - t / 600), 0.0) + np.where(t >= 2400, 40.0, 0.0)
    cpu = 60 + 10 * np.sin(t / 120)
    assert variability_cv.plain_cv(np.round(gpu, 1) + np.round(cpu, 1)) == pytest.approx(0.189, abs=5e-4)


def test_the_coarse_sensor_is_named_beside_its_variation():
    found = variability.measure(frame([98.0] * 12 + [112.0] * 8, 5.0))
    row = found.frame.row(0, named=True)
    assert row["mean_w"] == pytest.approx(103.60)
    assert row["resolution_w"] == 14.0
    assert found.findings[0].code == "coarse-sensor"
    assert found.findings[0].evidence["resolution_error_w"] == pytest.approx(4.04, abs=0.005)
    assert row["plain_cv_ratio"] == pytest.approx(7.0366 / 103.6, rel=1e-3)


def test_a_flat_sensor_is_a_finding_not_a_variation():
    found = variability.measure(frame([250.0] * 100))
    assert found.estimates[0].value is None and "flat" in found.estimates[0].reason
    assert [f.code for f in found.findings] == ["flat-sensor"]
    assert found.frame["cv_ratio"].to_list() == [None]
    assert found.frame["band"].item() == ""


def process(n, phi, seed):
    white = np.random.default_rng(seed).normal(size=n + 300)
    return 300.0 + 9.0 * lfilter([1.0], [1.0, -phi], white)[300:] * math.sqrt(1 - phi**2)


def test_trend_and_outliers_do_not_count():
    watts = process(3000, 0.5, 1) + np.linspace(-20.0, 20.0, 3000)
    watts[::60] = 90.0
    estimate, rejected = variability_cv.estimate_cv(watts)
    assert estimate.value == pytest.approx(0.03, rel=0.05)
    assert estimate.lo < 0.03 < estimate.hi
    assert rejected == pytest.approx(1 / 60, abs=0.004)
    assert variability_cv.plain_cv(watts) > 0.06


def test_too_little_information_and_two_levels_are_refused():
    assert "independent" in variability_cv.estimate_cv(process(100, 0.95, 2))[0].reason
    two = np.where(np.arange(1000) % 5 == 0, 150.0, 300.0) + np.random.default_rng(0).normal(0, 3, 1000)
    estimate, rejected = variability_cv.estimate_cv(two)
    assert "another level" in estimate.reason and rejected == pytest.approx(0.2)
    assert variability_cv.estimate_cv([1.0, 2.0])[0].value is None


def test_high_variation_is_flagged():
    found = variability.measure(frame(np.random.default_rng(1).normal(300.0, 100.0, 500)))
    assert "high-variation" in [f.code for f in found.findings]
    assert found.frame["band"].item() == "high"


def test_between_runs():
    estimate = variability.between_runs([300.0, 303.0, 297.0, 300.0])
    assert estimate.value == pytest.approx(math.sqrt(6.0) / 300.0)
    # chi-squared with 3 degrees: 0.2158 and 9.3484.
    assert estimate.hi == pytest.approx(estimate.value * math.sqrt(3 / 0.21579528), rel=1e-6)
    assert variability.between_runs([300.0, 301.0]).value is None


def test_rolling_windows_are_of_equal_length():
    out = variability.rolling(frame(process(300, 0.0, 3)), window_s=60.0)
    assert out["n"].to_list() == [60] * 5
    assert out["cv_ratio"].mean() == pytest.approx(0.03, rel=0.15)
    with pytest.raises(ValueError, match="window_s"):
        variability.rolling(frame([1.0]), window_s=0.0)


def test_plain_of_nothing():
    assert math.isnan(variability_cv.plain_cv([]))
    assert math.isnan(variability_cv.plain_cv([1.0]))
