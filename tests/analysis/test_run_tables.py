from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from joulebook import run_tables

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def log(watts: list[float], run_id: str = "a") -> pl.DataFrame:
    ticks = [T0 + timedelta(seconds=i) for i in range(len(watts))]
    return pl.DataFrame({"run_id": run_id, "ts_utc": ticks, "power_w": watts})


def told(mean_power_w: float, duration_s: float) -> pl.DataFrame:
    row = ("a", mean_power_w * duration_s, mean_power_w, duration_s)
    return pl.DataFrame([row], schema=["run_id", "energy_j", "mean_power_w", "duration_s"], orient="row")


def test_mean_over_idle_ends_is_named_as_the_cause() -> None:
    watts = [10.0] * 10 + [100.0] * 80 + [10.0] * 10
    audit = run_tables.audit(told(82.0, 79.0), log(watts))
    row = audit.runs.row(0, named=True)
    assert row["busy_s"] == 79 and row["busy_mean_w"] == pytest.approx(100)
    assert row["effect_ratio"] == pytest.approx(-0.18)
    assert "idle ends included" in audit.findings[0].message and "18.0 %" in audit.findings[0].message


def test_honest_energy_has_no_finding() -> None:
    watts = [10.0] * 10 + [100.0] * 80 + [10.0] * 10
    assert run_tables.audit(told(100.0, 79.0), log(watts)).findings == ()


def test_log_without_idle_ends_is_busy_throughout() -> None:
    row = run_tables.audit(told(100.0, 50.0), log([99.0, 101.0] * 50)).runs.row(0, named=True)
    assert row["busy_s"] == 99


def test_runs_without_a_log_are_left_out() -> None:
    assert run_tables.audit(told(1.0, 1.0), log([1.0, 2.0], run_id="b")).runs.height == 0


def test_table_of_throughput_becomes_a_sweep() -> None:
    table = pl.DataFrame({"b": [1, 2, 4], "w": [100.0, 200.0, 0.0], "r": [50.0, 0.0, 10.0]})
    runs = run_tables.sweep_runs(table, x="b", mean_power_w="w", tokens_per_s="r")
    assert runs["energy_per_token_j"].to_list() == [2.0, None, None]
    with pytest.raises(ValueError, match="no column watts"):
        run_tables.sweep_runs(table, x="b", mean_power_w="watts", tokens_per_s="r")


def test_missing_columns_are_errors() -> None:
    with pytest.raises(ValueError, match="power has no column power_w"):
        run_tables.audit(told(1.0, 1.0), log([1.0]).drop("power_w"))
