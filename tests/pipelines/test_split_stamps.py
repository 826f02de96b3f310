"""Stamps whose decimal comma separates cells as well, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Options

UTC = Options(timezone="UTC", scope="node")


def read(folder: Path, told: str, options: Options = UTC) -> pl.DataFrame:
    path = folder / "log.csv"
    path.write_text(told)
    head = text.head(path, path.name)
    parts = list(recognise.adapter_for(head).parse(Log(path, head, options)))
    assert sum(p.lines for p in parts) == told.count("\n")
    assert all(p.rejects is None or p.rejects.height == 0 for p in parts)
    return pl.concat([p.readings for p in parts if p.readings is not None], how="diagonal")


def test_a_stamp_of_python_logging_keeps_its_milliseconds(tmp_path: Path) -> None:
    rows = "".join(f"2026-03-02 10:00:0{i},2{i}0,{70 + i}.5\n" for i in range(3))
    readings = read(tmp_path, "timestamp,power_w\n" + rows)
    assert readings["power_w"].to_list() == [70.5, 71.5, 72.5]
    assert [t.isoformat() for t in readings["ts_utc"]] == [f"2026-03-02T10:00:0{i}.2{i}0000+00:00" for i in range(3)]
    assert readings["line"].to_list() == [2, 3, 4]


def test_a_stamp_of_date_in_nanoseconds_before_what_nvidia_smi_says(tmp_path: Path) -> None:
    rows = "".join(f"2026-03-02T10:00:0{i},250000000+01:00,5{i}, 1024, {70 + i}.50\n" for i in range(3))
    readings = read(tmp_path, "timestamp,utilization.gpu,memory.used,power.draw\n" + rows)
    assert readings["power_w"].to_list() == [70.5, 71.5, 72.5]
    assert readings["utilization_ratio"].to_list() == pytest.approx([0.50, 0.51, 0.52])
    assert str(readings["ts_utc"][0]) == "2026-03-02 09:00:00.250000+00:00"


def test_without_titles_a_nought_in_front_tells_the_fraction(tmp_path: Path) -> None:
    rows = "".join(f"2026-03-02 10:00:00,{v},7{i}.5 W\n" for i, v in enumerate(("050", "150", "250", "350")))
    readings = read(tmp_path, rows)
    assert readings["power_w"].to_list() == [70.5, 71.5, 72.5, 73.5]
    assert [t.microsecond for t in readings["ts_utc"]] == [50_000, 150_000, 250_000, 350_000]


def test_a_column_of_three_digits_stays_a_column(tmp_path: Path) -> None:
    rows = "".join(f"2026-03-02 10:00:0{i},250,{70 + i}.5\n" for i in range(3))
    readings = read(tmp_path, "timestamp,load,power_w\n" + rows)
    assert readings["power_w"].to_list() == [70.5, 71.5, 72.5]
    assert readings["ts_utc"].dt.microsecond().to_list() == [0, 0, 0]


def test_a_row_too_many_cells_of_another_kind_is_not_mended(tmp_path: Path) -> None:
    rows = "".join(f"2026-03-02 10:00:0{i},25,{70 + i}.5\n" for i in range(3))
    with pytest.raises(LogRefusedError, match="no row has the 2 cells"):
        read(tmp_path, "timestamp,power_w\n" + rows)
