"""Sampling: update period, window, and whether steps are seen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from joulebook import sampling

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def log(seconds: np.ndarray, watts: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({"ts_utc": [T0 + timedelta(microseconds=round(s * 1e6)) for s in seconds], "power_w": watts})


def sensor(update_s: float, window_s: float, every_s: float, seconds: float = 60.0) -> pl.DataFrame:
    """A square load of 2 s through a moving mean, renewed and logged at given periods."""
    fine = np.arange(0, seconds, 0.001)
    load = np.where((fine / 2).astype(int) % 2 == 0, 100.0, 300.0) + np.random.default_rng(0).normal(0, 1, fine.size)
    total = np.concatenate([[0.0], np.cumsum(load) * 0.001])
    at = np.arange(2, seconds, every_s)
    renewed = np.floor(at / update_s) * update_s
    grid = np.arange(total.size) * 0.001
    return log(at, (np.interp(renewed, grid, total) - np.interp(renewed - window_s, grid, total)) / window_s)


@pytest.mark.parametrize("update_s", [0.02, 0.1])
def test_update_period(update_s: float) -> None:
    found = sampling.find(sensor(update_s, update_s, 0.007))
    assert found.update_s.value == pytest.approx(update_s, rel=0.02)
    assert found.update_s.lo is not None
    assert found.update_s.hi is not None
    assert found.update_s.lo <= update_s <= found.update_s.hi
    assert [f.code for f in found.findings] == ["sensor-slower-than-log"]


def test_window_from_rise() -> None:
    found = sampling.find(sensor(0.1, 1.0, 0.02))
    assert found.rise_s.value == pytest.approx(1.0, abs=0.15)
    short = sampling.find(sensor(0.1, 0.025, 0.02))
    assert short.rise_s.value is None
    assert short.rise_s.hi == pytest.approx(0.15, rel=0.05)


def test_window_against_a_reference() -> None:
    rng = np.random.default_rng(2)
    fine = np.arange(0, 20, 0.002)
    load = np.repeat(rng.uniform(100, 400, 400), rng.integers(10, 200, 400))[: fine.size]
    total = np.concatenate([[0.0], np.cumsum(load) * 0.002])
    at = np.arange(2, 18, 0.1)
    grid = np.arange(total.size) * 0.002
    mean = (np.interp(at, grid, total) - np.interp(at - 0.5, grid, total)) / 0.5
    found = sampling.window(log(at, mean + rng.normal(0, 1, at.size)), log(fine + 0.001, load), longest_s=1.0)
    assert found.value == pytest.approx(0.5, rel=0.1)


def test_a_log_no_finer_than_the_sensor_says_nothing() -> None:
    assert sampling.find(sensor(0.1, 0.1, 0.1)).update_s.value is None


def test_several_devices_need_a_name() -> None:
    one = sensor(0.1, 0.1, 0.05, 6.0)
    both = pl.concat([one.with_columns(device=pl.lit(d)) for d in ("gpu:0", "gpu:1")])
    with pytest.raises(ValueError, match="name one"):
        sampling.find(both)
    assert sampling.find(both, device="gpu:1").frame.height > 10


def test_locked_sampling_is_refused_with_its_bound() -> None:
    found = sampling.adequacy(
        step_s=0.1, update_s=0.1, window_s=0.025, log_interval_s=0.1, readings=600, low_w=100, high_w=300
    )
    assert found.status == "aliased"
    assert found.worst_case_w == pytest.approx(75)
    assert found.findings[-1].severity == "error"


@pytest.mark.parametrize(
    ("step", "window", "every", "status"),
    [
        (0.097, 0.025, 0.1, "averaged"),
        (0.1, 0.1, 0.1, "averaged"),
        (10.0, 1.0, 1.0, "resolved"),
        (5.0, 0.025, 10.0, "aliased"),
    ],
)
def test_adequacy(step: float, window: float, every: float, status: str) -> None:
    assert (
        sampling.adequacy(step_s=step, update_s=0.1, window_s=window, log_interval_s=every, readings=600).status
        == status
    )


def test_known_cards() -> None:
    h100 = sampling.card("NVIDIA H100 80GB HBM3", field="power.draw.instant")
    assert h100 is not None
    assert (h100.update_s, h100.window_s) == (0.1, 0.025)
    assert sampling.card("NVIDIA A100 80GB PCIe").window_s == 0.025  # type: ignore[union-attr]
    assert sampling.card("Radeon") is None


def test_impossible_times() -> None:
    with pytest.raises(ValueError, match="step_s"):
        sampling.adequacy(step_s=0, update_s=0.1, window_s=0.1, log_interval_s=1, readings=10)
