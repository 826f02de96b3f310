from __future__ import annotations

import pytest

from joulebook import carbon, idle_marginal
from joulebook.findings import Estimate

KWH = 3.6e6


def test_calibrated_run_of_the_guide():
    """425 W by software, offset −10 W, 4.2 h, idle 125 W by the meter."""
    got = idle_marginal.of_power(Estimate(425.0 - 10.0), Estimate(125.0), duration_s=4.2 * 3600)
    assert round(got.absolute.value / KWH, 3) == 1.743
    assert round(got.marginal.value / KWH, 3) == 1.218
    assert round(100 * got.share.value, 1) == 69.9
    assert round(carbon.per_kwh(got.absolute, 0.581).value, 3) == 1.013
    assert round(carbon.per_kwh(got.marginal, 0.581).value, 3) == 0.708
    assert round(carbon.facility_energy(got.absolute, 1.3).value / KWH, 3) == 2.266


def test_duration_of_the_guide():
    time = idle_marginal.duration_s(Estimate(2.1 * KWH), Estimate(1.5 * KWH), Estimate(280.0))
    assert round(time.value / 3600, 3) == 2.143
    assert round(2.1 * KWH / time.value) == 980


def test_interval_holds_both_parts():
    got = idle_marginal.of_energy(Estimate(1e6, 0.97e6, 1.03e6), Estimate(100.0, 96.0, 104.0), duration_s=1000)
    assert got.marginal.value == 900_000
    assert got.marginal.half_width == pytest.approx(30_266, rel=1e-3)  # sqrt(30 000² + 4 000²)
    assert got.idle.lo == 96_000


def test_less_than_idle_is_a_finding():
    got = idle_marginal.of_energy(Estimate(1000.0), Estimate(100.0), duration_s=20)
    assert got.marginal.value == -1000 and [f.code for f in got.findings] == ["marginal-negative"]


def test_refused_idle_refuses_marginal_only():
    got = idle_marginal.of_energy(Estimate(1000.0), Estimate.refused("no quiet stretch"), duration_s=20)
    assert got.absolute.value == 1000 and got.marginal.value is None and got.marginal.reason == "no quiet stretch"


def test_duration_must_be_positive():
    with pytest.raises(ValueError, match="duration_s: 0 is not positive"):
        idle_marginal.of_power(Estimate(1.0), Estimate(1.0), duration_s=0)
