from __future__ import annotations

import polars as pl
import pytest

from joulebook import efficiency, power_shares
from joulebook.findings import Estimate


def codes(result):
    return [f.code for f in result.findings]


def test_tokens_and_joules_are_each_others_inverse():
    energy = Estimate(4000.0, 3900.0, 4100.0)
    assert efficiency.tokens_per_j(1000, energy).value == 0.25
    assert efficiency.energy_per_token_j(1000, energy).value == 4.0
    assert efficiency.energy_per_token_j(1000, energy).hi == pytest.approx(4.1)
    assert efficiency.tokens_per_j(1000, energy).lo == pytest.approx(1000 / 4100)
    assert efficiency.tokens_per_j(1000, Estimate(0.0)).reason == "division by zero"


def test_work_of_a_token():
    assert efficiency.flops_per_token(70e9) == pytest.approx(4.2e11)
    long = efficiency.flops_per_token(7e9, layers=32, hidden=4096, sequence_length=65536)
    assert long == pytest.approx(6 * 7e9 + 12 * 32 * 4096 * 65536)
    assert long / efficiency.flops_per_token(7e9) > 3  # 6 N alone is far too low at long sequences
    assert efficiency.flops_per_token(3e9, recomputation=True) == pytest.approx(4 * 6e9)
    with pytest.raises(ValueError, match="all three or none"):
        efficiency.flops_per_token(7e9, layers=32)
    with pytest.raises(ValueError, match="none may be negative"):
        efficiency.flops_per_token(-1)


def test_utilisation_and_its_interval():
    got = efficiency.mfu_ratio(Estimate(1e5, 0.9e5, 1.1e5), token_flops=4.2e10, peak_flops=8 * 989e12)
    assert got.ratio.value == pytest.approx(0.531, abs=1e-3) and got.ratio.lo == pytest.approx(0.9 * got.ratio.value)
    assert codes(efficiency.mfu_ratio(Estimate(1e6), token_flops=1e10, peak_flops=989e12)) == ["mfu-above-one"]


@pytest.mark.parametrize(("power", "code"), [(100, ["power-far-below-tdp"]), (500, []), (700, ["power-at-tdp"])])
def test_nameplate_is_not_a_measurement(power, code):
    got = power_shares.tdp_ratio(Estimate(float(power)), tdp_w=700)
    assert got.ratio.value == pytest.approx(power / 700) and codes(got) == code


@pytest.mark.parametrize(("fans", "code"), [(90, ["fans-draw-little"]), (120, []), (160, ["fans-draw-much"])])
def test_share_of_fans(fans, code):
    assert codes(power_shares.fan_share(Estimate(float(fans)), Estimate(1000.0))) == code


def test_supplies_and_padding():
    assert codes(power_shares.psu_load(Estimate(290.0), rated_w=1000)) == ["supplies-lightly-loaded"]
    assert codes(power_shares.psu_load(Estimate(500.0), rated_w=1000)) == []
    assert power_shares.padding_energy_j(Estimate(1000.0, 900.0, 1100.0), padding_tokens=30, tokens=100).lo == 270
    with pytest.raises(ValueError, match="must lie between"):
        power_shares.padding_energy_j(Estimate(1.0), padding_tokens=3, tokens=2)


def test_fans_that_ate_the_gain_diverge():
    days = pl.DataFrame({
        "day": ["2026-03-01", "2026-03-02", "2026-03-03"],
        "mfu_ratio": [0.40, 0.404, 0.46],
        "tokens_per_j": [0.200, 0.201, 0.206],
        "pue": [1.30, 1.30, 1.30],
    })  # fmt: skip
    got = efficiency.divergence(days)
    mfu = [f for f in got.findings if "MFU" in f.message]
    assert [f.subject for f in mfu] == ["2026-03-03"]
    assert "+15 %" in mfu[0].message and "+3 %" in mfu[0].message
    assert got.frame["mfu_ratio_change_ratio"][2] == pytest.approx(0.15)


def test_a_better_pue_is_not_a_better_algorithm():
    days = pl.DataFrame({"day": [1, 2], "tokens_per_j": [0.2, 0.2], "pue": [1.5, 1.2]})
    (finding,) = efficiency.divergence(days).findings
    assert "PUE" in finding.message and "-20 %" in finding.message


def test_metrics_that_agree_raise_nothing():
    days = pl.DataFrame({"day": [1, 2], "mfu_ratio": [0.4, 0.46], "tokens_per_j": [0.2, 0.228], "pue": [1.2, 1.2]})
    assert not [f for f in efficiency.divergence(days).findings if "MFU" in f.message]
    with pytest.raises(ValueError, match="day and two of"):
        efficiency.divergence(days.select("day", "pue"))
