"""Tables whose sum stands beside its parts: by the numbers or by the title, and never counted twice."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import Store

A = [400.0 + 7 * i % 31 for i in range(12)]
B = [450.0 + 5 * i % 23 for i in range(12)]


def scopes(
    store: Store, folder: Path, titles: list[str], columns: list[list[float]]
) -> tuple[dict[str, str], set[str]]:
    """Return the scope of each device, and the codes of the findings."""
    rows = [
        f"2026-03-02T10:00:{5 * i:02d}Z," + ",".join(map(str, row)) for i, row in enumerate(zip(*columns, strict=True))
    ]
    path = folder / "meter.csv"
    path.write_text("time," + ",".join(titles) + "\n" + "\n".join(rows) + "\n")
    (outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "h", options=Options(scope="node")),), store)
    told = store.table("channels").select(pl.col("device", "scope")).rows()
    return dict(told), {f.code for f in outcome.findings}


SUM = [a + b for a, b in zip(A, B, strict=True)]


def test_a_sum_that_no_title_names_is_not_added_to_its_parts(store: Store, tmp_path: Path) -> None:
    told, codes = scopes(store, tmp_path, ["Device Load W", "Server A Power W", "Server B Power W"], [SUM, A, B])
    assert told == {"device-load": "node", "server-a": "part", "server-b": "part"}
    assert "column-is-total" in codes


def test_a_load_that_is_told_twice_counts_once(store: Store, tmp_path: Path) -> None:
    told, codes = scopes(store, tmp_path, ["Device Load W", "Phase 1 Load W"], [SUM, SUM])
    assert told == {"device-load": "node", "phase-1-load": "part"}
    assert "column-is-total" in codes


def test_two_machines_that_draw_nearly_the_same_are_two(store: Store, tmp_path: Path) -> None:
    told, _ = scopes(store, tmp_path, ["Server A Power W", "Server B Power W"], [A, [a + 0.5 for a in A]])
    assert set(told.values()) == {"node"}


def test_machines_beside_each_other_are_added(store: Store, tmp_path: Path) -> None:
    told, codes = scopes(store, tmp_path, ["Server A Power W", "Server B Power W", "Server C Power W"], [A, B, B[::-1]])
    assert set(told.values()) == {"node"}
    assert "column-is-total" not in codes


def test_constant_powers_are_a_sum_by_chance(store: Store, tmp_path: Path) -> None:
    columns = [[200.0] * 12, [100.0] * 12, [100.0] * 12]
    told, _ = scopes(store, tmp_path, ["Server A Power W", "Server B Power W", "Server C Power W"], columns)
    assert set(told.values()) == {"node"}


@pytest.mark.parametrize("whole", ["VDD_IN mW", "Input Power (mW)"])
def test_what_passes_the_input_is_the_whole(store: Store, tmp_path: Path, whole: str) -> None:
    more = [s + 900.0 for s in SUM]
    told, _ = scopes(store, tmp_path, [whole, "VDD_CPU_GPU_CV mW", "VDD_SOC mW"], [more, A, B])
    assert sorted(told.values()) == ["node", "part", "part"]
    assert told[{"VDD_IN mW": "vdd", "Input Power (mW)": "input"}[whole]] == "node"


def test_what_an_inlet_feeds_is_part_of_it(store: Store, tmp_path: Path) -> None:
    more = [s + 90.0 for s in SUM]  # other outlets are not in the table
    titles = ["Inlet I1 Active Power (W)", "Outlet 1 Active Power (W)", "Outlet 2 Active Power (W)"]
    told, _ = scopes(store, tmp_path, titles, [more, A, B])
    assert told == {"inlet:1": "node", "outlet:1": "part", "outlet:2": "part"}


def test_circuits_lie_behind_the_legs_of_the_mains(store: Store, tmp_path: Path) -> None:
    told, _ = scopes(
        store, tmp_path, ["Lab-Mains_A (Watts)", "Lab-Mains_B (Watts)", "Lab-Rack (Watts)"], [SUM, SUM[::-1], A]
    )
    assert told == {"lab-mains-a": "node", "lab-mains-b": "node", "lab-rack": "part"}


def test_outlets_alone_are_what_study_toml_says(store: Store, tmp_path: Path) -> None:
    told, _ = scopes(store, tmp_path, ["Outlet 1 Active Power (W)", "Outlet 2 Active Power (W)"], [A, B])
    assert set(told.values()) == {"node"}


def test_two_cards_that_say_the_same_are_two(store: Store, tmp_path: Path) -> None:
    told, codes = scopes(store, tmp_path, ["gpu_0_power_w", "gpu_1_power_w"], [A, A])
    assert told == {"gpu:0": "board", "gpu:1": "board"}
    assert "column-is-total" not in codes


def test_the_output_of_a_supply_is_not_averaged_with_its_input(store: Store, tmp_path: Path) -> None:
    told, _ = scopes(store, tmp_path, ["psu1_in_w", "psu1_out_w", "psu2_in_w"], [A, [0.9 * a for a in A], B])
    assert told == {"psu:1": "node", "psu:1-out": "dc", "psu:2": "node"}
    assert store.table("readings").filter(pl.col("device") == "psu:1")["power_w"].to_list() == A
