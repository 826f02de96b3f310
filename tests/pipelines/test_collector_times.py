"""Times that a loop prints between the outputs of a tool that has none: tables of cards, reports of perf; by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import Store

AT = [datetime(2026, 3, 2, 23, 59, 55, tzinfo=UTC) + timedelta(seconds=2 * i) for i in range(6)]
STYLES = ["%H:%M:%S", "%I:%M:%S %p", "%a %b %e %H:%M:%S UTC %Y", "%Y-%m-%dT%H:%M:%SZ"]

TABLE = """+-----------------------------------------+----------------------+----------------------+
| {title}        Driver Version: 535.104.05   CUDA Version: 12.2     |
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
|   0  A100-SXM4-40GB                 On  | 00000000:07:00.0 Off |                    0 |
| 30%   35C    P0              {w}W / 400W |   1234MiB / 40960MiB |     90%      Default |
+-----------------------------------------+----------------------+----------------------+
"""
PERF = """
 Performance counter stats for 'system wide':

             {w}.00 Joules power/energy-pkg/

       1.500000000 seconds time elapsed

"""


def taken(store: Store, folder: Path, text: str, date: str | None = "2026-03-02") -> tuple[pl.DataFrame, str]:
    path = folder / "loop.log"
    path.write_text(text)
    options = Options(timezone="UTC", date=date)
    (outcome,) = ingest.ingest((ingest.SourceFile(path, path.name, "h", options=options),), store)
    return store.table("readings").sort("line"), outcome.reason or ""


def _loop(style: str, output: str) -> str:
    return "".join(f"{t.strftime(style)}\n" + output.replace("{w}", str(200 + i)) for i, t in enumerate(AT))


@pytest.mark.parametrize("title", ["NVIDIA-SMI 535.104.05", "HL-SMI Version: hl-1.13.0-fw-48.2.1.0"])
@pytest.mark.parametrize("style", STYLES)
def test_tables_of_cards(store: Store, tmp_path: Path, style: str, title: str) -> None:
    readings, reason = taken(store, tmp_path, _loop(style, TABLE.replace("{title}", title)))
    assert reason == ""
    assert readings["power_w"].to_list() == [200 + i for i in range(6)]
    assert readings["ts_utc"].to_list() == AT


def test_a_table_whose_time_is_lost_has_none(store: Store, tmp_path: Path) -> None:
    lines = _loop(STYLES[0], TABLE.replace("{title}", "NVIDIA-SMI 535.104.05")).splitlines(keepends=True)
    assert lines[14] == "23:59:59\n"
    readings, _ = taken(store, tmp_path, "".join([*lines[:14], "killed\n", *lines[15:]]))
    assert readings["ts_utc"].to_list() == [t for t in AT if t != AT[2]]
    assert store.table("rejects").filter(pl.col("line") == 15)["raw"].to_list() == ["killed"]


@pytest.mark.parametrize("style", STYLES)
def test_reports_of_perf_begin_at_the_time_above_them(store: Store, tmp_path: Path, style: str) -> None:
    readings, reason = taken(store, tmp_path, _loop(style, PERF))
    assert reason == ""
    assert readings["energy_j"].to_list() == [200 + i for i in range(6)]
    assert readings["ts_utc"].to_list() == [t + timedelta(seconds=1.5) for t in AT]
    assert set(readings["span_s"]) == {1.5}


def test_parts_of_a_second_of_a_start_count(store: Store, tmp_path: Path) -> None:
    text = "".join(f"{t.timestamp() + 0.25:.3f}\n" + PERF.replace("{w}", "200") for t in AT)
    readings, _ = taken(store, tmp_path, text)
    assert readings["ts_utc"].to_list() == [t + timedelta(seconds=1.75) for t in AT]


@pytest.mark.parametrize("output", [TABLE.replace("{title}", "NVIDIA-SMI 535.104.05"), PERF])
def test_times_of_day_need_a_date(store: Store, tmp_path: Path, output: str) -> None:
    readings, reason = taken(store, tmp_path, _loop(STYLES[0], output), date=None)
    assert readings.is_empty()
    assert "times of day without a date; add date = YYYY-MM-DD" in reason


def test_times_behind_the_reports_are_no_starts(store: Store, tmp_path: Path) -> None:
    text = "".join(PERF.replace("{w}", "200") + f"{t.strftime(STYLES[2])}\n" for t in AT)
    readings, reason = taken(store, tmp_path, text)
    assert readings.is_empty()
    assert "does not say when it began" in reason
