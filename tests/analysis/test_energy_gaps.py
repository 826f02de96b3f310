from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from joulebook import energy, energy_gaps

T0 = datetime(2026, 3, 2, 8, tzinfo=UTC)


def both(counted_w=500.0, *, hole=(300, 900), counter_hole=False):
    """Return the energy of half an hour at 400 W, but 500 W while nobody looked, by power and by a counter of 0.1 Wh."""
    rows, counter = [], 0.0
    for t in range(0, 1801, 5):
        counter += 5 * (counted_w if hole[0] < t <= hole[1] else 400.0)
        if hole[0] < t < hole[1]:
            continue
        told = None if counter_hole and t == hole[1] else counter // 360 * 360
        rows.append(("node", T0 + timedelta(seconds=t), 400.0, told))
    log = pl.DataFrame(rows, schema=["device", "ts_utc", "power_w", "energy_counter_j"], orient="row")
    window = {"start_utc": T0, "end_utc": T0 + timedelta(seconds=1800)}
    return energy.integrate(log, **window), energy.from_counter(log.drop_nulls("energy_counter_j"), **window)


def test_a_counter_tells_the_energy_of_a_gap_in_the_powers_beside_it():
    by_power, by_counter = both()
    assert by_power.total.value == pytest.approx(1200 * 400)
    got = energy_gaps.counted(by_power, by_counter)
    truth = 1200 * 400 + 600 * 500
    # The highest power seen is 400 W, but rounding: the counter tells 500 W, more than the powers allow.
    assert got is by_power
    by_power, by_counter = both(350.0)
    got = energy_gaps.counted(by_power, by_counter)
    truth = 1200 * 400 + 600 * 350
    assert got.total.lo <= truth <= got.total.hi
    assert got.total.value == pytest.approx(truth, abs=720)
    assert got.frame["peak_power_w"][0] == pytest.approx(400)
    assert "leave 600 s open" in got.total.method
    assert got.findings[-1].code == "counter-speaks-for-gaps"


def test_powers_without_a_gap_are_not_replaced():
    by_power, by_counter = both(400.0, hole=(300, 300))
    assert energy_gaps.counted(by_power, by_counter) is by_power


def test_a_refused_power_has_the_counter_beside_it():
    _, by_counter = both(400.0, hole=(300, 300))
    ends = pl.DataFrame({"step": range(1, 361), "end_utc": [T0 + timedelta(seconds=5 * k) for k in range(1, 361)]})
    log = pl.DataFrame(
        {"device": "node", "ts_utc": [T0 + timedelta(seconds=t) for t in range(0, 1801, 5)], "power_w": 400.0}
    )
    refused = energy.integrate(log, start_utc=T0, end_utc=T0 + timedelta(seconds=1800), steps=ends)
    assert refused.total.value is None
    assert energy_gaps.counted(refused, by_counter).total.value == pytest.approx(1800 * 400, abs=720)
