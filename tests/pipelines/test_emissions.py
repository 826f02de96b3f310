"""Rows of CodeCarbon: shifted cells, flushes of one tracker, several trackers at once; and the steps of sensors."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulebook_pipelines.logs import emissions_rows, emissions_runs
from joulebook_pipelines.logs.resolution import Levels

T0 = datetime(2026, 3, 2, 10, tzinfo=UTC)
NAMES = [
    "timestamp", "project_name", "run_id", "duration", "emissions", "cpu_energy", "energy_consumed", "country_iso_code",
    "region",
    "os", "codecarbon_version", "gpu_count", "gpu_model", "tracking_mode", "on_cloud", "pue",
]  # fmt: skip
CELLS = [
    "2026-03-02T10:00:00", "resnet", "5d0c7e1a-0000-4000-8000-000000000001", "60.0", "0.01", "0.002", "0.02", "FRA",
    "bretagne",
    "Linux-6.1", "3.2.9", "2", "2 x NVIDIA L40S", "machine", "N", "1.0",
]  # fmt: skip


@given(st.sets(st.sampled_from(["region", "gpu_model"]), min_size=1))
def test_left_out_cells_are_found(dropped: set[str]) -> None:
    short = [c for c, n in zip(CELLS, NAMES, strict=True) if n not in dropped]
    row = emissions_rows.align(short, NAMES)
    assert row is not None
    assert row == {n: c for n, c in zip(NAMES, CELLS, strict=True) if n not in dropped and n in row}
    assert {"timestamp", "run_id", "duration", "cpu_energy", "energy_consumed", "codecarbon_version", "pue"} <= set(row)


def test_a_row_whose_energies_cannot_be_placed_is_not_guessed() -> None:
    short = [c for c, n in zip(CELLS, NAMES, strict=True) if n != "cpu_energy"]
    assert emissions_rows.align(short, NAMES) is None


def rows(*said: tuple[str, float, float, float]) -> pl.DataFrame:
    """Return rows of run, end [s], duration [s], total [J]."""
    return pl.DataFrame([
        {
            "line": i, "run_id": run, "task_name": None, "ts_utc": T0 + timedelta(seconds=end), "duration_s": length,
            "total_j": joule,
        }
        for i, (run, end, length, joule) in enumerate(said, 2)
    ], schema_overrides={"task_name": pl.String, "ts_utc": pl.Datetime("us", "UTC")})  # fmt: skip


def test_flushes_grow_from_one_start() -> None:
    chained = emissions_runs.chains(
        rows(("a", 10, 10, 100), ("a", 20, 20.01, 200), ("a", 30, 30, 300), ("b", 40, 10, 50))
    )
    assert chained["flush"].to_list() == [False, True, True, False]
    assert chained["last"].to_list() == [False, False, True, True]


def test_the_same_name_later_is_its_own_run() -> None:
    chained = emissions_runs.chains(rows(("a", 10, 10, 100), ("a", 100, 20, 200)))
    assert chained["flush"].to_list() == [False, False]


def machines(*said: tuple[float, float, float, str]) -> pl.DataFrame:
    """Return runs of start [s], end [s], energy [J], model of the boards."""
    same = dict.fromkeys(emissions_runs.MACHINE, "x")
    return pl.DataFrame([
        {
            **same, "gpu_model": model, "total_j": joule, "start_utc": T0 + timedelta(seconds=a),
            "end_utc": T0 + timedelta(seconds=b),
        }
        for a, b, joule, model in said
    ])  # fmt: skip


def test_ranks_that_watch_one_machine() -> None:
    found = emissions_runs.overlaps(machines(*((i, 7200 + i, 7.2e6, "h100") for i in range(4))))
    assert found["agree"].all() and sorted(found["lane"]) == [0, 1, 2, 3]


def test_runs_one_after_the_other_stand_alone() -> None:
    found = emissions_runs.overlaps(machines((0, 100, 1e4, "a"), (99, 200, 1e4, "a"), (199.5, 300, 1e4, "a")))
    assert found["members"].to_list() == [1, 1, 1] and found["lane"].to_list() == [0, 0, 0]


@pytest.mark.parametrize("second", [(50, 150, 1e4, "b"), (80, 180, 1e4, "a"), (10, 90, 9e4, "a")])
def test_two_machines_get_no_energy(second: tuple[float, float, float, str]) -> None:
    found = emissions_runs.overlaps(machines((0, 100, 1e4, "a"), second))
    assert not found["agree"].any() and found["lane"].min() == 1


def test_names_are_unique() -> None:
    runs = pl.DataFrame({
        "run_id": ["a", "a", "a", "", ""], "task_name": ["", "", "load", "", ""],
        "experiment_id": [None, None, None, "e", None],
        "project_name": ["p"] * 5,
    })  # fmt: skip
    assert emissions_runs.names(runs).to_list() == ["a", "a#2", "a/load", "e", "p"]


def test_steps_of_a_coarse_sensor() -> None:
    levels = Levels()
    levels.add(pl.DataFrame({"device": ["node"] * 20, "power_w": [98.0] * 12 + [112.0] * 8}))
    (found,) = levels.findings("bmc.txt")
    assert found.code == "coarse-resolution" and found.evidence["step_w"] == 14
    assert math.isclose(float(str(found.evidence["error_w"])), 4.0415, abs_tol=1e-3)


def test_equal_readings_prove_no_steadiness() -> None:
    levels = Levels()
    levels.add(pl.DataFrame({"device": ["node"] * 20, "power_w": [98.0] * 20}))
    assert [f.code for f in levels.findings("bmc.txt")] == ["reading-never-changes"]
