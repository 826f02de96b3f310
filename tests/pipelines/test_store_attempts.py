"""When power was asked for and not told: readings that were refused are holes that are stated, never silence."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import config, open_store, run
from joulebook_pipelines.adapters import ADAPTERS

NAMES = [a.name for a in ADAPTERS]


def analysed(folder: Path, name: str, text: str, source: str = 'scope = "node"\n') -> tuple[dict[str, float], set[str]]:
    """Return energy, coverage and codes of findings of a study with one file."""
    (folder / name).write_text(text)
    (folder / "study.toml").write_text(f'[study]\ntimezone = "UTC"\n[[source]]\npath = "{name}"\n{source}')
    result = run.analyse(config.load(folder, adapters=NAMES), folder / "out")
    with open_store(result.store) as store:
        rows = store.results().filter(
            (pl.col("scope") == "node") & (pl.col("device") == "") & (pl.col("metric") == "energy_j")
        )
        row = rows.row(0, named=True)
        return {k: row[k] for k in ("value", "hi", "coverage_ratio")}, set(store.table("findings")["code"])


def test_a_failed_reading_between_two_is_stated_where_its_like_are_many(tmp_path: Path) -> None:
    # Asked every 10 s, answered at 0, 20, 30, 50: two places lack one, and half of the steps would hide that.
    rows = [400, "OL", 400, 400, "n/a", 400]
    text = "timestamp,power_w\n" + "".join(f"2026-03-02T10:00:{10 * i:02d}Z,{w}\n" for i, w in enumerate(rows))
    energy, codes = analysed(tmp_path, "meter.csv", text)
    assert energy["value"] == pytest.approx(400 * 50)
    assert "missing-readings" in codes


def test_a_hole_of_many_failed_readings_is_not_bridged(tmp_path: Path) -> None:
    # 300 s of 10 s each without an answer, then two readings: only the 10 s between these are known.
    rows = [400, *["---"] * 29, 400, 400]
    stamps = [datetime(2026, 3, 2, 10, i * 10 // 60, i * 10 % 60, tzinfo=UTC) for i in range(len(rows))]
    text = "timestamp,power_w\n" + "".join(f"{t:%Y-%m-%dT%H:%M:%SZ},{w}\n" for t, w in zip(stamps, rows, strict=True))
    energy, codes = analysed(tmp_path, "meter.csv", text)
    assert energy["value"] == pytest.approx(4000)
    assert energy["hi"] >= 4000 + 300 * 400
    assert "gap-not-bridged" in codes


def test_series_told_twice_are_no_failed_readings(tmp_path: Path) -> None:
    labels = '"__name__":"ipmi_dcmi_power_consumption_watts","instance":"n1"'
    values = ",".join(f'[{1772445600 + 15 * i},"400"]' for i in range(5))
    series = ",".join(f'{{"metric":{{{labels},"pod":"p{k}"}},"values":[{values}]}}' for k in range(4))
    text = f'{{"status":"success","data":{{"resultType":"matrix","result":[{series}]}}}}'
    energy, codes = analysed(tmp_path, "answer.json", text, source="")
    assert energy["value"] == pytest.approx(400 * 60)
    assert "missing-readings" not in codes


def test_a_value_is_not_held_over_a_time_that_is_said_to_be_unknown(tmp_path: Path) -> None:
    # 100 W for 60 s and 200 W for 60 s are known; from 60 s to 240 s the plug was not there for some time.
    states = [(0, "100"), (60, "300"), (180, "unavailable"), (240, "200"), (300, "210")]
    stamps = {s: f"2026-03-02T10:{s // 60:02d}:00.000Z" for s, _ in states}
    text = "entity_id,state,last_changed\n" + "".join(f"sensor.rig_power,{v},{stamps[s]}\n" for s, v in states)
    energy, codes = analysed(tmp_path, "history.csv", text, 'scope = "node"\nunits = { power_w = "W" }\n')
    assert energy["value"] == pytest.approx(100 * 60 + 200 * 60)
    assert energy["coverage_ratio"] == pytest.approx(120 / 300)
    assert energy["hi"] >= 18000 + 300 * 180
    assert "gap-not-bridged" in codes
