"""What turbostat prints through ``ts`` and with ``--show``; numbers worked out by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Options

UTC = Options(timezone="UTC")


def read(folder: Path, told: str, options: Options = UTC) -> dict[str, list[float]]:
    """Return the powers by device, in order of time; every line is accounted for and none rejected."""
    path = folder / "turbostat.txt"
    path.write_text(told)
    head = text.head(path, path.name)
    parts = list(recognise.adapter_for(head).parse(Log(path, head, options)))
    assert sum(p.lines for p in parts) == told.count("\n")
    assert all(p.rejects is None or p.rejects.height == 0 for p in parts)
    readings = pl.concat([p.readings for p in parts if p.readings is not None], how="diagonal").sort("ts_utc")
    assert readings.filter(pl.col("device") == "cpu")["span_s"].drop_nulls().unique().to_list() == [1.0]
    return {str(d): mine["power_w"].to_list() for (d,), mine in readings.group_by("device", maintain_order=True)}


WATTS = [(30.0, 20.0, 10.0), (33.0, 22.0, 11.0), (36.0, 24.0, 12.0)]
BY_PACKAGE = {"cpu": [30.0, 33.0, 36.0], "cpu:0": [20.0, 22.0, 24.0], "cpu:1": [10.0, 11.0, 12.0]}


@pytest.mark.parametrize(
    ("stamp", "options"),
    [
        ("2026-03-02T10:00:0{i} ", UTC),
        ("[2026-03-02 10:00:0{i}.250000] ", UTC),
        ("Mar 02 10:00:0{i} ", Options(timezone="UTC", date="2026-03-02")),
        ("177244560{i}.250000 ", Options()),
    ],
)
def test_stamps_before_each_line_are_the_times_of_the_rounds(tmp_path: Path, stamp: str, options: Options) -> None:
    told = "".join(
        f"{stamp.format(i=i)}{line}\n"
        for i, (whole, first, second) in enumerate(WATTS)
        for line in (
            "Package\tCPU\tBusy%\tPkgWatt", f"-\t-\t5.0\t{whole}", f"0\t0\t5.0\t{first}", f"1\t1\t5.0\t{second}",
        )
    )  # fmt: skip
    assert read(tmp_path, told, options) == BY_PACKAGE


def test_a_stamp_before_a_summary_of_nothing_but_watts(tmp_path: Path) -> None:
    told = "2026-03-02 10:00:00 PkgWatt\tRAMWatt\n"
    told += "".join(f"2026-03-02 10:00:0{i} {30 + i}.00\t5.00\n" for i in range(3))
    assert read(tmp_path, told) == {"cpu": [30.0, 31.0, 32.0], "dram": [5.0, 5.0, 5.0]}


def test_nothing_but_watts_is_read_at_a_distance_that_is_said(tmp_path: Path) -> None:
    told = "PkgWatt\n30.00\n31.00\n32.00\n"
    assert read(tmp_path, told, Options(period_s=1.0)) == {"cpu": [30.0, 31.0, 32.0]}
    with pytest.raises(LogRefusedError, match="period_s"):
        read(tmp_path, told)


def test_states_and_clocks_beside_watts_are_no_columns_of_others(tmp_path: Path) -> None:
    told = "Bzy_MHz\tC1E%\tCPU%c7\tPkgTmp\tGFX%rc6\tPkg%pc8\tPkgWatt\n" + "".join(
        f"909\t1.37\t42.74\t45\t99.79\t21.61\t{30 + i}.00\n" for i in range(3)
    )
    assert read(tmp_path, told, Options(period_s=1.0)) == {"cpu": [30.0, 31.0, 32.0]}


@pytest.mark.parametrize("timed", [True, False])
def test_lines_below_the_whole_machine_are_its_packages(tmp_path: Path, *, timed: bool) -> None:
    """Without ``--Summary`` a round is the machine and each package, though no column numbers them: never three times one power."""
    title, told = ("Time_Of_Day_Seconds\tPkgWatt" if timed else "PkgWatt"), ""
    for i, watts in enumerate(WATTS):
        cells = (f"177244560{i}.000{k}00\t{w:.2f}" if timed else f"{w:.2f}" for k, w in enumerate(watts))
        told += "\n".join((title, *cells)) + "\n"
    assert read(tmp_path, told, Options() if timed else Options(period_s=1.0)) == BY_PACKAGE


def test_rounds_that_are_no_sums_are_rounds_each(tmp_path: Path) -> None:
    """With ``--Summary`` the titles may come again every so many rounds."""
    told = "".join(f"PkgWatt\n{30 + i}.00\n{40 + i}.00\n{35 + i}.00\n" for i in range(2))
    assert read(tmp_path, told, Options(period_s=1.0)) == {"cpu": [30.0, 40.0, 35.0, 31.0, 41.0, 36.0]}
