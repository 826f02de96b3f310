"""Energies under titles that head registers as well as intervals: what the numbers themselves say; worked out by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import Store

BERLIN = Options(scope="node", timezone="Europe/Berlin")


def taken(
    store: Store, folder: Path, text: str, options: Options = BERLIN
) -> tuple[pl.DataFrame, pl.DataFrame, set[str]]:
    path = folder / "meter.csv"
    path.write_text(text)
    (outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "meter", options=options),), store)
    codes = {f.code for f in outcome.findings} | ({outcome.reason} if outcome.reason else set())
    return store.table("readings").sort("line"), store.table("rejects").sort("line"), codes


def _of_lines(title: str, energies_j: list[float], power: str = "") -> str:
    head = f"timestamp,{title}{',power_w' if power else ''}\n"
    rows = (f"2026-03-02T10:00:{s:02d}.500Z,{e:.1f}{',' + power if power else ''}\n" for s, e in enumerate(energies_j))
    return head + "".join(rows)


CLIMBING = [100.0 * s + 7.0 * (s % 3) for s in range(30)]


@pytest.mark.parametrize("title", ["energy_consumed_j", "Energy used (J)", "Consumption (J)"])
@pytest.mark.parametrize("begins", [0.0, 50_000.0])
def test_energy_used_that_only_climbs_is_a_register(store: Store, tmp_path: Path, title: str, begins: float) -> None:
    readings, _, _ = taken(store, tmp_path, _of_lines(title, [begins + e for e in CLIMBING]))
    assert "energy_j" not in readings.columns or readings["energy_j"].null_count() == readings.height
    assert readings["energy_counter_j"][-1] - readings["energy_counter_j"][0] == pytest.approx(2914.0)


def test_energy_used_that_rises_and_falls_is_of_intervals(store: Store, tmp_path: Path) -> None:
    used = [100.0 + 7.0 * (s % 4) for s in range(30)]
    readings, _, _ = taken(store, tmp_path, _of_lines("energy_consumed_j", used))
    assert readings["energy_j"].sum() == pytest.approx(sum(used))


def test_hours_of_a_morning_that_climb_are_of_intervals(store: Store, tmp_path: Path) -> None:
    text = "timestamp,Consumption (kWh)\n" + "".join(f"2026-03-02T{h:02d}:00:00Z,{0.1 + h}\n" for h in range(12))
    readings, _, _ = taken(store, tmp_path, text)
    assert readings["energy_j"].sum() == pytest.approx(3.6e6 * (12 * 0.1 + 66))


def test_energy_used_far_beyond_what_the_power_beside_it_draws_is_a_register(store: Store, tmp_path: Path) -> None:
    text = _of_lines("Energy consumed (J)", [90_000.0 + 100.0 * s for s in range(4)], "100")
    readings, rejects, _ = taken(store, tmp_path, text)
    assert readings["energy_counter_j"].to_list() == pytest.approx([90_000.0, 90_100.0, 90_200.0, 90_300.0])
    assert rejects.height == 0


def test_the_name_under_which_a_unit_is_given_decides_where_nothing_else_does(store: Store, tmp_path: Path) -> None:
    text = "time,cpu_energy,gpu_energy\n" + "".join(
        f"2026-03-02T10:00:{s:02d}.500Z,{1000 + 100 * s},{2000 + 300 * s}\n" for s in range(20)
    )
    options = Options(units={"energy_counter_j": "J"})
    readings, _, _ = taken(store, tmp_path, text, options)
    last = readings.group_by("device").agg(pl.col("energy_counter_j").last()).sort("device")
    assert last.rows() == [("cpu:0", 2900.0), ("gpu:0", 7700.0)]
