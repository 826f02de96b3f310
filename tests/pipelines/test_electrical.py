"""Volts, amperes and signs against a power: what cannot be is said, what can be is not."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.logs.electrical import Electrical
from joulebook_pipelines.store import open_store


def codes(**columns: list[float]) -> list[str]:
    seen = Electrical()
    seen.add(pl.DataFrame(columns))
    return [f.code for f in seen.findings("meter.csv", "node")]


def test_more_watts_than_volt_amperes_is_impossible() -> None:
    # 230 V x 0.5 A = 115 VA; 150 W would be a power factor of 1.3.
    assert codes(power_w=[150.0] * 4, voltage_v=[230.0] * 4, current_a=[0.5] * 4) == ["power-above-apparent"]


def test_a_power_factor_below_one_is_no_doubt() -> None:
    assert codes(power_w=[69.0] * 4, voltage_v=[230.0] * 4, current_a=[0.5] * 4, power_factor_ratio=[0.6] * 4) == []


def test_a_power_ten_times_too_small_for_its_factor_is_one() -> None:
    found = codes(power_w=[11.0] * 4, apparent_power_va=[115.0] * 4, power_factor_ratio=[0.95] * 4)
    assert found == ["power-contradicts-volts-amperes"]


@pytest.mark.parametrize(
    ("power_w", "expected"),
    [
        ([400.0, 402.0, -401.0, -399.0, 401.0, 400.0, 402.0], ["sign-flips"]),
        ([400.0, 402.0, 401.0, 399.0, 401.0, 400.0, -3.0], []),
        ([-400.0] * 7, []),
        ([500.0, 510.0, 505.0, -2000.0, -2100.0, -1900.0], []),
    ],
    ids=[
        "one load in two directions",
        "a small negative one",
        "all turned is another doubt",
        "another size is feed-in",
    ],
)
def test_a_sign_that_flips(power_w: list[float], expected: list[str]) -> None:
    assert codes(power_w=power_w) == expected


def test_a_meter_table_tells_it(tmp_path: Path) -> None:
    file = tmp_path / "meter.csv"
    rows = "".join(f"2026-03-02T10:0{i}:00Z,230.0,0.5,150\n" for i in range(4))
    file.write_text("timestamp,voltage_v,current_a,power_w\n" + rows)
    with open_store(tmp_path / "study.duckdb", read_only=False) as store:
        source = ingest.SourceFile(file, file.name, "meter", options=Options(scope="node"))
        (outcome,) = ingest.ingest((source,), store)
        assert "power-above-apparent" in {f.code for f in outcome.findings}
