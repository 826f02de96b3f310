from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from joulebook import carbon
from joulebook.findings import Estimate

T0 = datetime(2026, 3, 3, tzinfo=UTC)


def hours(values, start=0, name="energy_j"):
    at = [T0 + timedelta(hours=start + i) for i in range(len(values))]
    return pl.DataFrame({"start_utc": at, "end_utc": [t + timedelta(hours=1) for t in at], name: values})


def curve(values, start=0, step=1.0):
    return pl.DataFrame(
        {"start_utc": [T0 + timedelta(hours=start + step * i) for i in range(len(values))], "value": values}
    )


def test_facility_energy_keeps_the_interval():
    got = carbon.facility_energy(Estimate(100.0, 98.0, 102.0), 1.5)
    assert (got.value, got.lo, got.hi) == (150.0, 147.0, 153.0)
    both = carbon.facility_energy(Estimate(100.0, 97.0, 103.0), Estimate(1.0, 0.96, 1.04))
    assert both.half_width == pytest.approx(5.0)


def test_pue_below_one_is_refused():
    with pytest.raises(ValueError, match=r"pue: 0\.9 is below 1"):
        carbon.facility_energy(Estimate(1.0), 0.9)


def test_hourly_curve_against_by_hand():
    got = carbon.by_curve(hours([3.6e6, 7.2e6, 1.8e6]), curve([0.5, 0.25, 0.1]))
    assert got.total.value == pytest.approx(0.5 + 0.5 + 0.05)
    assert got.frame.height == 3


def test_curve_finer_than_the_bins_splits_them_evenly():
    got = carbon.by_curve(hours([3.6e6]), curve([0.2, 0.4, 9.9], step=0.5))
    assert got.total.value == pytest.approx(0.3)
    assert got.frame["energy_j"].to_list() == pytest.approx([1.8e6, 1.8e6])


def test_constant_curve_is_the_constant():
    bins = hours([3.6e6, 5.0e6, 1.0e6]).with_columns(lo=pl.col("energy_j") * 0.9, hi=pl.col("energy_j") * 1.2)
    got = carbon.by_curve(bins, curve([0.581] * 3)).total
    flat = carbon.per_kwh(Estimate(9.6e6, 9.6e6 * 0.9, 9.6e6 * 1.2), 0.581)
    assert (got.value, got.lo, got.hi) == pytest.approx((flat.value, flat.lo, flat.hi))


@pytest.mark.parametrize("start", [-2, 1])
def test_curve_that_does_not_reach_is_refused(start):
    got = carbon.by_curve(hours([3.6e6, 3.6e6]), curve([0.5, 0.5], start=start))
    assert got.total.value is None and "says nothing about" in got.total.reason
    assert [f.code for f in got.findings] == ["curve-too-short"]


def test_hour_of_the_curve_without_a_value_is_refused():
    assert carbon.by_curve(hours([3.6e6, 3.6e6]), curve([0.5, None])).total.value is None


def test_shift_finds_the_cheap_hours():
    got = carbon.shifted(hours([3.6e6, 3.6e6]), curve([0.5, 0.5, 0.2, 0.2]), hours=[0, 1, 2, 3])
    assert got["value"].to_list() == [pytest.approx(1.0), pytest.approx(0.7), pytest.approx(0.4), None]
    assert got["change_ratio"][2] == pytest.approx(-0.6)
    assert got["reason"][3]


def test_missing_columns_are_named():
    with pytest.raises(ValueError, match="curve: no column value"):
        carbon.by_curve(hours([1.0]), curve([1.0]).drop("value"))
    with pytest.raises(ValueError, match="curve: it has no rows"):
        carbon.by_curve(hours([1.0]), curve([1.0]).clear())


def test_a_shifted_run_keeps_the_interval_of_its_energy():
    bins = hours([3.6e6, 7.2e6]).with_columns(lo=pl.Series([3.5e6, 6.8e6]), hi=pl.Series([3.9e6, 7.4e6]))
    got = carbon.shifted(bins, curve([0.5, 0.1, 0.3]), hours=[0, 1, 2])
    # By hand, in kWh: 1 and 2, at least 3.5/3.6 and 6.8/3.6, at most 3.9/3.6 and 7.4/3.6.
    assert got["lo"].to_list() == [pytest.approx(2.43 / 3.6), pytest.approx(2.39 / 3.6), None]
    assert got["value"].to_list() == [pytest.approx(0.7), pytest.approx(0.7), None]
    assert got["hi"].to_list() == [pytest.approx(2.69 / 3.6), pytest.approx(2.61 / 3.6), None]
    bare = carbon.shifted(hours([3.6e6]), curve([0.5]), hours=[0])
    assert bare.select("lo", "hi").row(0) == (None, None)
