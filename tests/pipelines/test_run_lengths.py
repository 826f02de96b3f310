"""Tables of runs whose lengths are spelled, and sessions of a plug by name; the seconds are worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Options, Part


def read(path: Path, **options: object) -> Part:
    (part,) = recognise.named("run-table").parse(Log(path, text.head(path, path.name), Options(**options)))  # type: ignore[arg-type]
    return part


@pytest.mark.parametrize(
    ("cells", "seconds"),
    [
        (["0:45:12", "1:05:00.5", "26:00:00"], [2712.0, 3900.5, 93_600.0]),
        (["0 days 00:45:12", "0 days 01:05:00.500000", "1 day, 2:00:00"], [2712.0, 3900.5, 93_600.0]),
        (["45m 12s", "1h 5m 0.5s", "26 hours"], [2712.0, 3900.5, 93_600.0]),
    ],
)
def test_spelled_lengths_need_no_unit(tmp_path: Path, cells: list[str], seconds: list[float]) -> None:
    path = tmp_path / "runs.csv"
    rows = "".join(f'r{i},8,"{c}",{1000 + i}\n' for i, c in enumerate(cells))
    path.write_text("run_id,batch_size,duration,energy_j\n" + rows)
    readings = read(path, scope="node").readings
    assert readings is not None
    assert readings["span_s"].to_list() == seconds
    assert readings["energy_j"].to_list() == [1000.0, 1001.0, 1002.0]


def test_bare_numbers_among_spelled_lengths_still_need_one(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("run_id,batch_size,duration,energy_j\na,8,0:45:12,1000\nb,8,45.2,1001\n")
    with pytest.raises(LogRefusedError, match="nothing says the unit of 'duration'"):
        read(path, scope="node")
    readings = read(path, scope="node", units={"span_s": "min"}).readings
    assert readings is not None
    assert readings["span_s"].to_list() == [2712.0, 2712.0]


def test_two_parts_are_not_guessed_at(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("run_id,batch_size,duration (s),energy_j\na,8,45:12,1000\nb,8,2712,1001\n")
    part = read(path, scope="node")
    assert part.readings is not None
    assert part.readings["energy_j"].to_list() == [1001.0]
    assert part.rejects is not None
    assert "no-such-duration" in part.rejects["rule"].to_list()


def test_sessions_by_name_are_runs_and_no_readings_of_a_meter(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_text(
        "Name,Duration,Power (W),Energy (kWh),Cost,Date\n"
        "First,0h 30m 0s,300,0.15,1.2,2026-03-02 10:30\nSecond,1h 0m 0s,310,0.31,1.5,2026-03-13 13:00\n"
    )
    head = text.head(path, path.name)
    assert [a.name for a in recognise.claims(head)] == ["run-table"]
    part = read(path, scope="node", timezone="UTC", interval_label="end")
    assert part.runs is not None
    assert [f"{t:%d %H:%M}" for t in part.runs["start_utc"]] == ["02 10:00", "13 12:00"]
    assert part.readings is not None
    assert part.readings["energy_j"].to_list() == pytest.approx([0.15 * 3.6e6, 0.31 * 3.6e6])
