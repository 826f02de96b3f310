"""Entries become readings: each value once, each bad one with its own line."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl

from joulebook_pipelines.logs import entries

AT = datetime(2026, 11, 2, 9, tzinfo=UTC)


def _entries(*rows):
    names = ("row", "line", "device", "ts_utc", "quantity", "header", "unit", "raw")
    return pl.DataFrame([dict(zip(names, r, strict=True)) for r in rows], schema=entries.SCHEMA)


def test_entries_of_one_row_make_one_reading_on_the_line_of_its_power():
    found = _entries(
        (0, 3, "gpu:0", AT, "temperature_c", "Temp", "C", "61 C"),
        (0, 5, "gpu:0", AT, "power_w", "Draw", "W", "301.5 W"),
        (0, 6, "gpu:0", AT, "performance_state", "State", "", "P0"),
    )
    readings, rejects = entries.gather(found, {"gpu:0": "board"})
    assert readings.to_dicts() == [
        {"line": 5, "device": "gpu:0", "ts_utc": AT, "power_w": 301.5, "temperature_c": 61.0, "performance_state": "P0"}
    ]
    assert rejects.is_empty()


def test_a_value_in_another_unit_than_its_name_says_is_converted():
    found = _entries((0, 1, "gpu:0", AT, "power_w", "Draw", "W", "301500 mW"))
    assert entries.gather(found, {"gpu:0": "board"})[0]["power_w"].to_list() == [301.5]


def test_every_bad_entry_is_a_reject_on_its_own_line():
    found = _entries(
        (0, 1, "gpu:0", AT, "power_w", "Draw", "W", "N/A"),
        (0, 2, "gpu:0", AT, "temperature_c", "Temp", "C", "61"),
        (1, 3, "gpu:0", AT, "power_w", "Draw", "W", "0"),
        (1, 4, "gpu:0", AT, "temperature_c", "Temp", "C", "x"),
        (2, 5, "gpu:0", None, "power_w", "Draw", "W", "300"),
        (3, 6, "gpu:0", AT, "power_w", "Draw", "W", "300"),
        (3, 7, "gpu:0", AT, "power_w", "Draw", "W", "301"),
    )
    readings, rejects = entries.gather(found, {"gpu:0": "board"})
    assert readings.select("line", "power_w", "temperature_c").rows() == [(2, None, 61.0), (6, 300.0, None)]
    assert sorted(rejects.select("line", "rule").rows()) == [
        (1, "no-value"), (3, "zero-power"), (4, "not-a-number"), (5, "row-without-time"), (7, "said-twice"),
    ]  # fmt: skip


def test_no_entries_are_no_readings():
    readings, rejects = entries.gather(_entries(), {})
    assert readings.is_empty() and rejects.is_empty()


def test_a_counter_that_never_leaves_zero_is_no_measurement():
    rows = [
        (i, i + 1, d, AT, "energy_counter_j", "Energy", "mJ", v)
        for i, (d, v) in enumerate((("gpu:0", "0"), ("gpu:0", "0"), ("gpu:1", "0"), ("gpu:1", "5")))
    ]
    readings, rejects = entries.gather(_entries(*rows), {})
    assert readings.select("line", "energy_counter_j").rows() == [(3, 0.0), (4, 0.005)]
    assert rejects.select("line", "rule").rows() == [(1, "zero-counter"), (2, "zero-counter")]


def test_a_unit_of_something_else_tells_no_number():
    found = _entries(
        (0, 1, "cpu", AT, "power_w", "power.Package", "%", "20.5"),
        (1, 2, "cpu", AT, "power_w", "power.Package", "W", "21.5"),
    )
    readings, rejects = entries.gather(found, {"cpu": "package"})
    assert readings["power_w"].to_list() == [21.5]
    assert rejects.select("line", "raw").rows() == [(1, "20.5")]
