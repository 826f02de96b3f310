"""Exports that put series behind series: what one device says of one moment is one reading, and no value is lost."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import Store

TIMES = [f"2026-03-02T10:00:{s:02d}Z" for s in range(0, 60, 10)]
VOLTS = [229.0 + i % 2 for i in range(6)]
WATTS = [80.0, 81.0, 95.0, 95.0, 96.0, 84.0]
KWH = [1201.5 + 0.25 * i for i in range(6)]


def taken(store: Store, path: Path, lines: list[str]) -> tuple[pl.DataFrame, pl.DataFrame, set[str]]:
    path.write_text("\n".join(lines) + "\n")
    options = Options(scope="node", units={"power_w": "W", "energy_counter_j": "kWh"})
    (outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "meter", options=options),), store)
    codes = {f.code for f in outcome.findings} | ({outcome.reason} if outcome.reason else set())
    return store.table("readings").sort("ts_utc"), store.table("rejects"), codes


def agrees(readings: pl.DataFrame) -> bool:
    """Tell whether each moment has its power, its voltage and its register, once."""
    together = readings.group_by("ts_utc").agg(
        pl.col("power_w", "voltage_v", "energy_counter_j").drop_nulls()
    ).sort("ts_utc")  # fmt: skip
    return (
        together["power_w"].to_list() == [[w] for w in WATTS]
        and together["voltage_v"].to_list() == [[v] for v in VOLTS]
        and together["energy_counter_j"].to_list() == [[pytest.approx(3.6e6 * k)] for k in KWH]
    )


def influx() -> list[str]:
    header = ",result,table,_time,_value,_field,_measurement,device"
    series = (("voltage_v", VOLTS), ("power_w", WATTS), ("energy_total_kwh", KWH))
    rows = [
        f",_result,{n},{t},{v},{field},plug,server"
        for n, (field, values) in enumerate(series)
        for t, v in zip(TIMES, values, strict=True)
    ]
    return [header, *rows]


def home_assistant() -> list[str]:
    series = (("voltage", VOLTS), ("power", WATTS), ("energy", KWH))
    return ["entity_id,state,unit_of_measurement,last_changed"] + [
        f"sensor.plug_{name},{v},{unit},{t}"
        for (name, values), unit in zip(series, ("V", "W", "kWh"), strict=True)
        for t, v in zip(TIMES, values, strict=True)
    ]


def long_table(*, interleaved: bool) -> list[str]:
    rows = [
        (t, n, f"{t},plug,{v},{unit}")
        for n, (values, unit) in enumerate(((VOLTS, "V"), (WATTS, "W"), (KWH, "kWh")))
        for t, v in zip(TIMES, values, strict=True)
    ]
    rows = sorted(rows) if interleaved else rows
    return ["time,device,value,unit", *(r[2] for r in rows)]


@pytest.mark.parametrize(
    "lines",
    [influx(), home_assistant(), long_table(interleaved=True), long_table(interleaved=False)],
    ids=["influx", "home-assistant", "long", "long-by-series"],
)
def test_power_voltage_and_register_of_a_moment_do_not_contradict(
    store: Store, tmp_path: Path, lines: list[str]
) -> None:
    readings, rejects, codes = taken(store, tmp_path / "export.csv", lines)
    assert agrees(readings)
    assert rejects.height == 0
    assert not codes & {"duplicate-readings", "time-goes-back", "coarse-stamps"}


def test_a_register_in_an_export_that_begins_with_the_newest_still_counts(store: Store, tmp_path: Path) -> None:
    header, *rows = influx()
    readings, rejects, _ = taken(store, tmp_path / "export.csv", [header, *rows[::-1]])
    assert agrees(readings)
    assert rejects.height == 0


def test_two_powers_of_one_moment_still_contradict(store: Store, tmp_path: Path) -> None:
    lines = [*home_assistant(), f"sensor.plug_power,99,W,{TIMES[0]}"]
    readings, rejects, codes = taken(store, tmp_path / "export.csv", lines)
    assert agrees(readings)
    assert rejects["raw"].to_list() == [lines[-1]]
    assert rejects["rule"].to_list() == ["conflicting-duplicate"]
    assert "duplicate-readings" in codes


def test_energies_of_intervals_are_told_as_not_read(store: Store, tmp_path: Path) -> None:
    energies = [0.02, 0.05, 0.03, 0.06, 0.01, 0.04]
    lines = [*home_assistant()[:13], *(f"sensor.plug_energy,{e},kWh,{t}" for t, e in zip(TIMES, energies, strict=True))]
    readings, _, codes = taken(store, tmp_path / "export.csv", lines)
    assert readings["power_w"].to_list() == WATTS
    assert readings["energy_counter_j"].drop_nulls().is_empty()
    assert "series-not-read" in codes


@pytest.mark.parametrize(
    ("seconds", "kind"),
    [([10 * i for i in range(20)], "instant"), ([i * i * i % 97 + 100 * i for i in range(20)], "on-change")],
    ids=["at one pace", "on change"],
)
def test_states_at_one_pace_were_asked_for(store: Store, tmp_path: Path, seconds: list[int], kind: str) -> None:
    stamps = [f"2026-03-02T10:{s // 60:02d}:{s % 60:02d}Z" for s in seconds]
    rows = [f"sensor.plug_power,{80 + i},W,{t}" for i, t in enumerate(stamps)]
    taken(store, tmp_path / "export.csv", ["entity_id,state,unit_of_measurement,last_changed", *rows])
    assert store.table("channels")["kind"].to_list() == [kind]


@pytest.mark.parametrize(
    ("seconds", "kind"),
    [([10 * i for i in range(20)], "instant"), ([i * i * i % 97 + 100 * i for i in range(20)], "on-change")],
    ids=["at one pace", "on change"],
)
def test_states_as_json_at_one_pace_were_asked_for(store: Store, tmp_path: Path, seconds: list[int], kind: str) -> None:
    unit = {"unit_of_measurement": "W", "device_class": "power"}
    states = [
        {
            "entity_id": "sensor.plug_power", "state": str(80 + i), "attributes": unit,
            "last_changed": f"2026-03-02T10:{s // 60:02d}:{s % 60:02d}+00:00",
        }
        for i, s in enumerate(seconds)
    ]  # fmt: skip
    taken(store, tmp_path / "history.json", [json.dumps([states])])
    assert store.table("channels")["kind"].to_list() == [kind]
