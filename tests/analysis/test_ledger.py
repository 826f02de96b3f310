from __future__ import annotations

import polars as pl
import pytest

from joulebook import efficiency, ledger
from joulebook.findings import Estimate


def thousand_cards(mfu):
    return ledger.cluster(
        cards=1000, node_power_per_card_w=1000.0, pue=1.2, days=30, peak_flops_per_card=400e12, mfu_ratio=mfu,
        flops_per_token=efficiency.flops_per_token(70e9),
    )  # fmt: skip


def test_cluster_of_the_guide():
    got = thousand_cards(0.40)
    assert got.it_power.value == 1.0e6 and got.facility_power.value == pytest.approx(1.2e6)
    assert got.energy_per_day.value / 3.6e9 == pytest.approx(28.8)
    assert got.energy.value / 3.6e9 == pytest.approx(864)
    assert got.flops.value == pytest.approx(160e15) and got.flops_per_token.value == pytest.approx(4.2e11)
    assert round(got.tokens_per_s.value) == 380952
    assert round(got.tokens_per_j.value, 3) == 0.317


def test_better_utilisation_saves_in_proportion():
    before, after = thousand_cards(0.40), thousand_cards(0.50)
    assert round(after.tokens_per_j.value, 3) == 0.397
    assert before.tokens_per_s.value / after.tokens_per_s.value == pytest.approx(0.8)


def test_ledger_refuses_nonsense():
    with pytest.raises(ValueError, match="mfu_ratio: 0 is not positive"):
        thousand_cards(0)


def test_split_sums_to_the_node_with_its_idle_line():
    jobs = pl.DataFrame({"job": ["a", "b"], "device_s": [4 * 3600.0, 2 * 1800.0]})
    got = ledger.split(Estimate(8e6, 7.9e6, 8.1e6), jobs, capacity_s=8 * 3600.0)
    assert got["job"].to_list() == ["a", "b", "idle"]
    assert got["energy_j"].to_list() == pytest.approx([4e6, 1e6, 3e6])
    assert got["lo"].sum() == pytest.approx(7.9e6) and got["share_ratio"].sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="no device is held twice"):
        ledger.split(Estimate(1.0), jobs, capacity_s=3600.0)
