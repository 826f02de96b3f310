"""Devices that mirror one sensor are told apart from devices that merely agree."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from joulebook import mirrors

T0 = datetime(2026, 3, 2, 10, tzinfo=UTC)


def power(*series: list[float], column: str = "power_w") -> pl.DataFrame:
    rows = [(f"cpu:{k}", T0 + timedelta(seconds=i), w) for k, values in enumerate(series) for i, w in enumerate(values)]
    return pl.DataFrame(
        rows, schema={"device": pl.String, "ts_utc": pl.Datetime("us", "UTC"), column: pl.Float64}, orient="row"
    )


MOVING = [60.0 + i * i % 17 for i in range(20)]


def test_two_devices_that_say_the_same_are_one_sensor() -> None:
    (found,) = mirrors.find(power(MOVING, MOVING, [w + 1 for w in MOVING]), scope="package")
    assert found.code == "mirrored-devices"
    assert found.evidence == {"devices": ["cpu:0", "cpu:1"], "readings": 20}


def test_two_sensors_of_two_names_each_are_told_apart() -> None:
    other = [w + 9 for w in MOVING]
    found = mirrors.find(power(MOVING, other, MOVING, other), scope="package")
    assert [f.evidence["devices"] for f in found] == [["cpu:0", "cpu:2"], ["cpu:1", "cpu:3"]]


def test_counters_count_as_well() -> None:
    counter = [1000.0 + 68.0 * i for i in range(12)]
    assert mirrors.find(power(counter, counter, column="energy_counter_j"), scope="package") != []


@pytest.mark.parametrize(
    "series",
    [
        ([50.0] * 20, [50.0] * 20),
        (MOVING, MOVING[:-1]),
        (MOVING[:9], MOVING[:9]),
        (MOVING, [*MOVING[:-1], 61.5]),
        (MOVING,),
    ],
    ids=["at rest", "of other lengths", "few", "once apart", "alone"],
)
def test_what_is_no_mirror(series: tuple[list[float], ...]) -> None:
    assert mirrors.find(power(*series), scope="package") == []
