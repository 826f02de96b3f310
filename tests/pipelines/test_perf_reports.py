"""Several reports of perf stat in one file, as ``--append`` writes them; numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Options


def read(folder: Path, told: str) -> pl.DataFrame:
    path = folder / "perf.txt"
    path.write_text(told)
    head = text.head(path, path.name)
    parts = list(recognise.adapter_for(head).parse(Log(path, head, Options(timezone="UTC"))))
    assert all(p.rejects is None or p.rejects.height == 0 for p in parts)
    return pl.concat([p.readings for p in parts if p.readings is not None], how="diagonal")


def _total(began: str, joules: str, seconds: str) -> str:
    return (
        f"{began}\n\n Performance counter stats for 'python train.py':\n\n"
        f"          {joules} Joules power/energy-pkg/\n\n       {seconds} seconds time elapsed\n\n"
    )


def test_each_report_of_totals_is_of_its_own_time(tmp_path: Path) -> None:
    told = _total("# started on Mon Mar  2 10:00:00 2026", "1,200.00", "10.000000000")
    told += _total("# started on Mon Mar  2 11:00:30 2026", "2,500.50", "20.500000000")
    readings = read(tmp_path, told)
    assert readings["energy_j"].to_list() == [1200.0, 2500.5]
    assert readings["span_s"].to_list() == [10.0, 20.5]
    assert [str(t) for t in readings["ts_utc"]] == ["2026-03-02 10:00:10+00:00", "2026-03-02 11:00:50.500000+00:00"]


def test_reports_that_do_not_say_when_they_began_are_refused(tmp_path: Path) -> None:
    told = _total("", "1,200.00", "10.000000000") + _total("", "2,500.50", "20.500000000")
    with pytest.raises(LogRefusedError, match=r"2 reports.*ends in line 7.*--append"):
        read(tmp_path, told)


def test_intervals_begin_anew_with_each_report(tmp_path: Path) -> None:
    told = "".join(
        f"# started on Mon Mar  2 1{k}:00:00 2026\n\n#           time             counts unit events\n"
        + "".join(f"     {i}.000000000             {100 * i + k}.00 Joules power/energy-pkg/\n" for i in (1, 2, 3))
        for k in range(2)
    )
    readings = read(tmp_path, told)
    assert readings["energy_j"].to_list() == [100.0, 200.0, 300.0, 101.0, 201.0, 301.0]
    assert readings["span_s"].to_list() == [1.0] * 6
    assert [str(t)[11:19] for t in readings["ts_utc"]] == [f"1{k}:00:0{i}" for k in range(2) for i in (1, 2, 3)]
