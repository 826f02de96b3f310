"""An hour of 100, 300 and 100 W in twenty-minute blocks, 600 kJ, damaged as real logs of several formats are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import config, run
from joulebook_pipelines.store import open_store

START = datetime(2026, 3, 3, 9, tzinfo=UTC)
TRUTH_J = 600_000.0
Rows = list[tuple[float, float]]
Outcome = tuple[dict[str, object], set[str], int]


pytestmark = pytest.mark.usefixtures("energy_stages")


@pytest.fixture
def hour(tmp_path: Path) -> Callable[..., Outcome]:
    """Analyse one file; return the row of its energy, the codes of findings and the number of rejects."""

    def work(text: str, name: str, scope: str, *, told: bool = True) -> Outcome:
        folder = tmp_path / "study"
        folder.mkdir()
        (folder / name).write_text(text)
        whole = '[[run]]\nid = "r"\nstart = 2026-03-03T09:00:00Z\nend = 2026-03-03T10:00:00Z\n' if told else ""
        source = f"[[source]]\npath = {json.dumps(name)}\nscope = {json.dumps(scope)}\n"
        (folder / "study.toml").write_text(f'[study]\ntimezone = "UTC"\n{source}{whole}')
        result = run.analyse(config.load(folder), tmp_path / "out")
        assert [o.status for o in result.outcomes] == ["read"], [o.reason for o in result.outcomes]
        with open_store(result.store) as store:
            energy = store.results().filter(
                (pl.col("metric") == "energy_j") & (pl.col("scope") == scope) & (pl.col("device") == "")
            )
            return energy.row(0, named=True), set(store.findings()["code"]), store.table("rejects").height

    return work


def _rows(step_s: float = 1.0) -> Rows:
    return [(t, 300.0 if 1200 <= t < 2400 else 100.0) for t in (k * step_s for k in range(int(3600 / step_s) + 1))]


def _iso(second: float) -> str:
    return f"{START + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ}"


def _meter(rows: Iterable[tuple[float, float]]) -> str:
    return "time,power_w\n" + "".join(f"{_iso(t)},{w:.1f}\n" for t, w in rows)


def _turbostat(rows: Iterable[tuple[float, float]]) -> list[str]:
    lines = [f"{(START + timedelta(seconds=t)).timestamp():.6f}\t50.0\t{w:.2f}\n" for t, w in rows]
    return ["Time_Of_Day_Seconds\tBusy%\tPkgWatt\n", *lines]


@pytest.mark.parametrize("failure", [0.0, -1.0])
def test_a_machine_in_a_run_never_draws_nothing(hour, failure):
    failed = {1300 + 90 * k for k in range(10)}
    energy, codes, _ = hour(_meter((t, failure if t in failed else w) for t, w in _rows()), "m.csv", "node")
    assert energy["value"] == pytest.approx(TRUTH_J, rel=5e-4)
    assert energy["coverage_ratio"] == 1.0
    assert "unpowered-in-run" in codes


def test_a_machine_never_feeds_back_many_times_what_it_draws(hour):
    """A logger that takes the first difference of its source for a power writes -13 kW now and then; without runs as well."""
    failed = {1300 + 90 * k for k in range(10)}
    rows = [(t, -12_977.0 if t in failed else w) for t, w in _rows()]
    energy, codes, _ = hour(_meter(rows), "meter.csv", "node", told=False)
    assert energy["value"] == pytest.approx(TRUTH_J, rel=1e-3)
    assert energy["lo"] > 0
    assert "unpowered-in-run" in codes


def test_power_that_is_fed_back_stays_in_a_log_without_runs(hour):
    rows = [(t, -w if t < 1200 else w) for t, w in _rows()]
    energy, _, _ = hour(_meter(rows), "meter.csv", "node", told=False)
    assert energy["value"] == pytest.approx(TRUTH_J - 2 * 120_000, rel=1e-3)


def test_a_meter_that_dies_leaves_the_rest_of_the_run_open(hour):
    energy, _, _ = hour(_meter((t, 0.0 if t > 2400 else w) for t, w in _rows()), "m.csv", "node")
    assert energy["value"] == pytest.approx(480_000.0, rel=1e-3)
    assert energy["lo"] <= energy["value"] < TRUTH_J <= energy["hi"]
    assert energy["coverage_ratio"] == pytest.approx(2 / 3, rel=1e-3)


def test_a_log_without_runs_may_hold_a_machine_that_is_off(hour):
    energy, codes, _ = hour(_meter((t, 0.0 if t > 2400 else w) for t, w in _rows()), "m.csv", "node", told=False)
    assert energy["value"] == pytest.approx(480_000.0, rel=1e-3)
    assert energy["coverage_ratio"] == 1.0
    assert "unpowered-in-run" not in codes


def test_a_logger_that_was_started_again_at_another_pace_leaves_no_gaps(hour):
    rows = [r for r in _rows() if r[0] < 1800 or r[0] % 10 == 0]
    energy, codes, _ = hour(_meter(rows), "m.csv", "node")
    # The edge at 2400 s lies anywhere within a step of 10 s: 2 kJ.
    assert energy["value"] == pytest.approx(TRUTH_J, abs=2_000)
    assert energy["lo"] <= TRUTH_J <= energy["hi"]
    assert energy["coverage_ratio"] == 1.0
    assert "gap-not-bridged" not in codes


def test_lines_of_a_counter_that_changed_places_are_no_energies_of_intervals(hour):
    rows, joules = _rows(), 0.0
    lines = []
    for (t, w), (before, _) in zip(rows, [(-1.0, 0.0), *rows], strict=False):
        joules += w * (t - before)
        lines.append(f"{_iso(t)},{int(1e6 * joules)}\n")
    swapped = [line for k in range(0, len(lines) - 1, 2) for line in (lines[k + 1], lines[k])] + lines[-1:]
    energy, codes, _ = hour("timestamp,package-0_uj\n" + "".join(swapped), "rapl.csv", "package")
    assert energy["value"] == pytest.approx(TRUTH_J, rel=1e-3)
    assert "time-goes-back" in codes


def test_a_gap_of_turbostat_is_a_gap(hour):
    lines = _turbostat(r for r in _rows() if not 1500 <= r[0] < 2100)
    energy, codes, _ = hour("".join(lines), "turbostat.tsv", "package")
    assert energy["value"] == pytest.approx(TRUTH_J - 180_000, rel=1e-3)
    assert energy["coverage_ratio"] == pytest.approx(5 / 6, rel=1e-3)
    assert "gap-not-bridged" in codes
    assert energy["lo"] <= TRUTH_J <= energy["hi"]


def test_a_spoilt_line_among_turbostats_rows_is_set_aside(hour):
    lines = _turbostat(_rows())
    lines[2000] = "x#!~%%@@\n"
    energy, _, rejects = hour("".join(lines), "turbostat.tsv", "package")
    assert rejects == 1
    assert energy["value"] == pytest.approx(TRUTH_J, rel=1e-3)


def test_blank_lines_between_the_lines_of_dmon(hour):
    head = "#Date       Time        gpu   pwr gtemp    sm\n#YYYYMMDD   HH:MM:SS    Idx     W     C     %\n"
    rows = "".join(
        f" {START + timedelta(seconds=t):%Y%m%d   %H:%M:%S}      0   {w:.0f}    40    50\n" for t, w in _rows()
    )
    energy, _, _ = hour((head + rows).replace("\n", "\n\n"), "dmon.log", "board")
    assert energy["value"] == pytest.approx(TRUTH_J, rel=1e-3)


def test_lines_of_a_register_that_changed_places_are_no_energies_of_intervals(hour):
    rows, joules, lines = _rows(), 3.6e9, []
    for t, w in rows:
        joules += w
        lines.append(f"{_iso(t)},{joules / 3.6e6:.5f}\n")
    swapped = [line for k in range(0, len(lines) - 1, 2) for line in (lines[k + 1], lines[k])] + lines[-1:]
    energy, _, _ = hour("timestamp,energy_kwh\n" + "".join(swapped), "meter.csv", "node")
    # A digit is 36 J.
    assert energy["value"] == pytest.approx(TRUTH_J - 200, abs=250)
    assert energy["hi"] - energy["lo"] == pytest.approx(2 * 1.96 * 36 / 6**0.5, rel=0.05)


def _perf(rows: Iterable[tuple[float, float]]) -> str:
    lines = [f"{t:16.9f} {w:16.2f} Joules power/energy-pkg/\n" for t, w in rows if t > 0]
    return "# started on Tue Mar  3 09:00:00 2026\n\n" + "".join(lines)


def test_a_gap_of_perfs_intervals_is_a_gap(hour):
    energy, codes, _ = hour(_perf(r for r in _rows() if not 1500 <= r[0] < 2100), "perf.txt", "package")
    assert energy["value"] == pytest.approx(TRUTH_J - 180_000, rel=1e-3)
    assert "gap-not-bridged" in codes


def test_perf_that_stalled_tells_the_energy_of_all_of_the_time(hour):
    rows = [(t, w * 600 if t == 2100 else w) for t, w in _rows() if not 1501 <= t < 2100]
    energy, codes, _ = hour(_perf(rows), "perf.txt", "package")
    assert energy["value"] == pytest.approx(TRUTH_J, rel=1e-3)
    assert "gap-not-bridged" not in codes


def test_an_energy_that_no_processor_can_use_is_set_aside(hour):
    energy, _, rejects = hour(_perf((t, 4294967.0 if t == 1700 else w) for t, w in _rows()), "perf.txt", "package")
    assert energy["value"] == pytest.approx(TRUTH_J, rel=1e-3)
    assert rejects == 1
