"""What the rejects of a whole source mean: devices that never give a power, rows whose stamps name no time."""

from __future__ import annotations

import polars as pl
import pytest

from joulebook.findings import Severity
from joulebook_pipelines import cli
from joulebook_pipelines.ingest import SourceFile, ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import open_store

pytestmark = pytest.mark.usefixtures("energy_stages")


def _found(folder, tmp_path, code, zone="UTC"):
    source = SourceFile(folder / "gpu.csv", "gpu.csv", "node", None, Options(timezone=zone))
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        (outcome,) = ingest((source,), store)
    return [f for f in outcome.findings if f.code == code]


@pytest.mark.parametrize(
    ("cell", "rule", "says"),
    [
        ("[N/A]", "no-value", "no line holds a power (first line 3: '[N/A]')"),
        ("0.00 W", "zero-power", "exactly 0 (first line 3: '0.00 W')"),
        ("15000.00 W", "beyond-physical", "a thousand times smaller would make it 15"),
        ("-3.00 W", "negative-power", "never gives power back"),
    ],
)
def test_a_card_that_never_gives_a_power_is_told_beside_one_that_does(
    gpu_log, study_folder, tmp_path, cell, rule, says
):
    rows = [(s, g, "200.00 W" if g == 0 else cell) for s in range(5) for g in range(2)]
    (found,) = _found(study_folder({"gpu.csv": gpu_log(rows)}), tmp_path, "device-without-power")
    assert found.severity == Severity.WARNING
    assert found.evidence["devices"] == ["gpu:1"]
    assert (found.evidence["rule"], found.evidence["cells"]) == (rule, 5)
    assert says in found.message


def test_a_card_that_lost_only_some_of_its_powers_is_not_called_without(gpu_log, study_folder, tmp_path):
    rows = [(s, 0, "200.00 W" if s == 3 else "[N/A]") for s in range(5)]
    assert not _found(study_folder({"gpu.csv": gpu_log(rows)}), tmp_path, "device-without-power")


def test_an_hour_that_summer_time_skips_puts_the_zone_in_doubt(gpu_log, study_folder, tmp_path):
    rows = [(600 * i, 0, "200.00 W") for i in range(18)]
    folder = study_folder({"gpu.csv": gpu_log(rows, start="2026-03-29T01:00:00")})
    (found,) = _found(folder, tmp_path, "no-such-time", zone="Europe/Berlin")
    assert (found.evidence["rows"], found.evidence["line"]) == (6, 8)
    assert "Europe/Berlin" in found.message
    (tmp_path / "utc").mkdir()
    assert not _found(folder, tmp_path / "utc", "no-such-time", zone="UTC")


def test_a_run_without_any_power_ends_with_a_status_that_says_so(gpu_log, study_folder, tmp_path, capsys):
    folder = study_folder({"gpu.csv": gpu_log([(s, 0, "0.00 W") for s in range(5)])})
    for words in (["check", folder], ["run", folder, "-o", tmp_path / "out", "--no-report", "-q"]):
        assert cli.run_command([str(w) for w in words]) == cli.NOT_GOOD_ENOUGH
        assert "exactly 0" in capsys.readouterr().out


def test_a_run_that_only_the_row_of_another_touches_has_no_energy(study_folder, tmp_path):
    # Stamps are whole seconds, so the second row reaches 0.4 s back into the first, which measured nothing.
    row = "2026-03-02T10:00:{end:02d},demo,{id},{s},0.0,{kwh},{kwh},2.3.3,machine"
    text = (
        "timestamp,project_name,run_id,duration,emissions,cpu_energy,energy_consumed,codecarbon_version,tracking_mode\n"
    )
    text += row.format(end=6, id="00000000-0000-4000-8000-000000000001", s=6.2, kwh=0.0) + "\n"
    text += row.format(end=12, id="00000000-0000-4000-8000-000000000002", s=6.4, kwh=0.0002) + "\n"
    out = tmp_path / "out"
    cli.run_command(["run", str(study_folder({"emissions.csv": text})), "-o", str(out), "--no-report", "-q"])
    with open_store(out / "study.duckdb") as store:
        energy = store.results().filter((pl.col("metric") == "energy_j") & (pl.col("device") == ""))
        assert energy.select("run_id", "scope", "value").rows() == [
            ("00000000-0000-4000-8000-000000000002", "components", pytest.approx(720.0)),
            ("00000000-0000-4000-8000-000000000002", "package", pytest.approx(720.0)),
        ]
        assert "no-readings-in-run" in set(store.findings()["code"])


def test_a_tracker_that_slept_is_told_by_the_constant_power_of_the_memory(study_folder, tmp_path):
    columns = (
        "timestamp,project_name,run_id,duration,emissions,ram_power,cpu_energy,ram_energy,energy_consumed,codecarbon_version,"
        "cpu_count,tracking_mode"
    )
    # 6 W for 3600 s are 0.006 kWh: the run lasted ten times as long.
    slept = "2026-03-02T22:00:00,demo,00000000-0000-4000-8000-000000000001,36000,0.0,6.0,0.0425,0.006,0.0485,2.3.3,16,machine"
    folder = study_folder({"emissions.csv": f"{columns}\n{slept}\n"})
    source = SourceFile(folder / "emissions.csv", "emissions.csv", "node", None, Options(timezone="UTC"))
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        (outcome,) = ingest((source,), store)
    told = {f.code: f for f in outcome.findings}
    assert told["tracker-missed-time"].evidence["measured_ratio"] == pytest.approx(0.1)
    assert "implausible-cpu-power" not in told


@pytest.mark.parametrize(("strange", "at"), [("1970/01/01", 2), ("2062/03/02", 4)])
def test_readings_of_a_clock_that_was_not_set_are_set_aside_and_told(study_folder, tmp_path, strange, at):
    rows = [f"2026/03/02 10:00:{s:02d}.000, 0, 100.00 W\n" for s in range(6)]
    wrong = [f"{strange} 00:00:0{s}.000, 0, 100.00 W\n" for s in range(2)]
    text = "timestamp, index, power.draw [W]\n" + "".join([*rows[: at - 2], *wrong, *rows[at - 2 :]])
    out = tmp_path / "out"
    cli.run_command(["run", str(study_folder({"gpu.csv": text})), "-o", str(out), "--no-report", "-q"])
    with open_store(out / "study.duckdb") as store:
        energy = store.results().filter((pl.col("metric") == "energy_j") & (pl.col("device") == "gpu:0"))
        assert energy.select("value", "coverage_ratio").row(0) == (pytest.approx(500.0), 1.0)
        assert store.rejects().select("line", "rule").rows() == [(at + i, "clock-not-set") for i in range(2)]
        (found,) = store.findings().filter(pl.col("code") == "clock-not-set")["message"]
        assert f"first line {at}" in found
        (source,) = store.table("sources").iter_rows(named=True)
        assert (source["readings"], source["rejects"], source["first_utc"].year) == (6, 2, 2026)


def test_dumps_of_two_machines_in_one_file_are_told(study_folder, tmp_path):
    dump = "2026-03-02T10:00:{s:02d}Z\n=== n1 ===\nPwr Consumption | 300 Watts | ok\n=== n2 ===\nPwr Consumption | 500 Watts | ok\n"
    folder = study_folder({"bmc.txt": "".join(dump.format(s=10 * i) for i in range(3))})
    source = SourceFile(folder / "bmc.txt", "bmc.txt", "node", None, Options(timezone="UTC"))
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        (outcome,) = ingest((source,), store)
        assert store.table("readings")["power_w"].to_list() == [300.0] * 3
    (told,) = (f for f in outcome.findings if f.code == "several-under-one-time")
    assert told.evidence == {"values": 3, "line": 5}
    assert "several machines" in told.message


def test_phases_in_another_zone_than_the_power_are_told_with_the_hours(gpu_log, study_folder, tmp_path):
    log = gpu_log([(s, 0, "200.00 W") for s in range(60)])
    phases = "phase,start,end\ntrain,{0}T17:00:10,{0}T17:00:50\n".format("2026-03-03")
    out = tmp_path / "out"
    folder = study_folder({"gpu.csv": log, "phases.csv": phases})
    cli.run_command(["run", str(folder), "-o", str(out), "--no-report", "-q"])
    with open_store(out / "study.duckdb") as store:
        (found,) = store.findings().filter(pl.col("code") == "phases-outside-runs")["message"]
    assert "It begins 8 h after the run" in found


@pytest.mark.parametrize(("watts", "totals"), [(200.0, 0), (0.0, 1)])
def test_a_total_without_a_card_that_drew_power_is_none(study_folder, tmp_path, watts, totals):
    columns = (
        "timestamp,project_name,run_id,duration,emissions,gpu_power,cpu_energy,gpu_energy,energy_consumed,codecarbon_version,"
        "gpu_count,tracking_mode"
    )
    row = f"2026-03-02T11:00:00,demo,00000000-0000-4000-8000-000000000001,3600,0.0,{watts},0.0425,0.0,0.0425,3.2.1,1,machine"
    out = tmp_path / "out"
    folder = study_folder({"emissions.csv": f"{columns}\n{row}\n"})
    cli.run_command(["run", str(folder), "-o", str(out), "--no-report", "-q"])
    with open_store(out / "study.duckdb") as store:
        energy = store.results().filter((pl.col("metric") == "energy_j") & (pl.col("device") == ""))
        assert energy.filter(pl.col("scope") == "package")["value"].to_list() == [pytest.approx(153_000.0)]
        assert energy.filter(pl.col("scope") == "components").height == totals
        assert "not-measured" in set(store.findings()["code"])


def test_a_unit_that_changes_within_a_log_is_told_and_what_came_before_is_kept(gpu_log, study_folder, tmp_path):
    # From the eleventh second on milliwatts under a title that says watts: 200 W become 200000.
    rows = [(s, 0, "200.00 W" if s < 10 else "200000.00 W") for s in range(30)]
    (found,) = _found(study_folder({"gpu.csv": gpu_log(rows)}), tmp_path, "powers-too-large")
    assert found.severity == Severity.WARNING
    assert (found.evidence["cells"], found.evidence["line"]) == (20, 12)
    assert "a thousand times smaller would make it 200;" in found.message
    few = [(s, 0, "200.00 W" if s % 10 else "71234.50 W") for s in range(30)]
    (tmp_path / "few").mkdir()
    assert _found(study_folder({"gpu.csv": gpu_log(few)}), tmp_path / "few", "powers-too-large") == []


def test_a_run_whose_energy_was_rejected_is_told_with_its_cell(study_folder, tmp_path):
    # 201 kWh in 20 minutes: the second row is in Wh under a title that says kWh.
    rows = "".join(f"r{i},2026-10-06T{8 + i:02d}:00:00Z,1200,{e}\n" for i, e in enumerate((0.2, 201.0, 0.2)))
    table = {"runs.csv": "run,start,duration_s,energy_kwh\n" + rows}
    folder = study_folder(table, '[[source]]\npath = "runs.csv"\nscope = "node"\n')
    out = tmp_path / "out"
    cli.run_command(["run", str(folder), "-o", str(out), "--no-report", "-q"])
    with open_store(out / "study.duckdb") as store:
        (told,) = store.findings().filter(pl.col("code") == "no-readings-in-run")["message"]
    assert "40 min before it and 40 min after it" in told
    assert "runs.csv:3: '201.0' (beyond-physical)" in told
