"""A clock that was not set when a log began, and again for a moment inside of it, whatever wrote the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import cli, ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import open_store

START, BOOT = datetime(2026, 3, 2, 10, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)
STAMPS = [BOOT, BOOT + timedelta(seconds=10)] + [START + timedelta(seconds=10 * i) for i in range(6)]
STAMPS.insert(5, BOOT + timedelta(seconds=3))
UNSET = (0, 1, 5)

LOGS = {
    "gpu.csv": ("timestamp, index, power.draw [W]", "{t:%Y/%m/%d %H:%M:%S}.000, 0, 100.00 W"),
    "dmon.log": ("#Date       Time        gpu    pwr\n#YYYYMMDD   HH:MM:SS    Idx      W", " {t:%Y%m%d}   {t:%H:%M:%S}      0    100"),
    "plug.csv": ("timestamp,power_w", "{t:%Y-%m-%dT%H:%M:%SZ},100"),
    "plug.jsonl": (None, '{{"timestamp": "{t:%Y-%m-%dT%H:%M:%SZ}", "power_w": 100.0}}'),
    "bmc.txt": (None, "{t:%Y-%m-%dT%H:%M:%SZ}\nPwr Consumption  | 100 Watts         | ok"),
    "powers.log": (None, "{t:%Y-%m-%d %H:%M:%S} GPU 0: 100.0 W"),
    "influx.csv": ("time,name,field,value,unit", "{t:%Y-%m-%dT%H:%M:%SZ},node1,power,100,W"),
    "joular.csv": ("Date,CPU Utilization,Total Power,CPU Power,GPU Power", "{t:%Y-%m-%d %H:%M:%S},0.5,100.0,60.0,40.0"),
}  # fmt: skip


def taken(folder: Path, name: str, text: str) -> tuple[dict[str, pl.DataFrame], list[str]]:
    (folder / name).write_text(text)
    source = ingest.SourceFile(folder / name, name, "node", options=Options(scope=None, timezone="UTC"))
    with open_store(folder / "study.duckdb", read_only=False) as store:
        (outcome,) = ingest.ingest((source,), store)
        assert outcome.status == "read", outcome.reason
        found = {t: store.table(t) for t in ("readings", "rejects", "steps", "logged_runs")}
    return found, [f.message for f in outcome.findings if f.code == "clock-not-set"]


@pytest.mark.parametrize("name", LOGS)
def test_readings_of_a_clock_that_was_not_set_are_rejected_and_the_others_kept(tmp_path: Path, name: str) -> None:
    head, row = LOGS[name]
    lines = [row.format(t=t) for t in STAMPS]
    found, told = taken(tmp_path, name, "\n".join([*([head] if head else []), *lines]) + "\n")
    first, each = 1 + (head.count("\n") + 1 if head else 0), row.count("\n") + 1
    good = found["readings"].filter(pl.col("power_w") == 100.0)
    assert sorted(good["ts_utc"]) == [t for i, t in enumerate(STAMPS) if i not in UNSET]
    gone = found["rejects"].filter(pl.col("rule") == "clock-not-set")
    assert sorted(set(gone["line"])) == [first + i * each + each - 1 for i in UNSET]
    assert len(told) == 1
    assert "stamped 1970-01-01" in told[0]
    assert "a file of their own" in told[0]


def test_steps_of_a_clock_that_was_not_set_make_no_run_of_decades(tmp_path: Path) -> None:
    row = '{{"time": "{t:%Y-%m-%dT%H:%M:%SZ}", "step": {i}, "loss": 2.5, "tokens": 1000}}'
    found, told = taken(tmp_path, "train.jsonl", "".join(row.format(t=t, i=i) + "\n" for i, t in enumerate(STAMPS, 1)))
    assert found["steps"]["step"].sort().to_list() == [3, 4, 5, 7, 8, 9]
    (run,) = found["logged_runs"].iter_rows(named=True)
    assert (run["start_utc"], run["end_utc"], run["tokens"]) == (STAMPS[2], STAMPS[-1], 6000.0)
    assert found["rejects"].select("line", "rule").sort("line").rows() == [(i + 1, "clock-not-set") for i in UNSET]
    assert len(told) == 1


def test_a_row_years_ahead_that_is_added_to_a_log_is_judged_beside_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "gpu.csv"
    rows = [f"{START + timedelta(seconds=i):%Y/%m/%d %H:%M:%S}.000, 0, 100.00 W\n" for i in range(5)]
    path.write_text("timestamp, index, power.draw [W]\n" + "".join(rows))
    source = ingest.SourceFile(path, path.name, "node", options=Options(timezone="UTC"))
    with open_store(tmp_path / "study.duckdb", read_only=False) as store:
        ingest.ingest((source,), store)
        with path.open("a") as file:
            file.write("2106/02/07 06:28:15.000, 0, 100.00 W\n")
        ingest.ingest((source,), store)
        assert store.table("readings").height == 5
        assert store.table("rejects").select("line", "rule").rows() == [(7, "clock-not-set")]


def test_what_is_set_aside_turns_no_clock_back(tmp_path: Path) -> None:
    stamps = [START + timedelta(seconds=10 * i) for i in range(8)]
    strange = [*stamps[:3], datetime(2106, 2, 7, 6, 28, 15, tzinfo=UTC), *stamps[3:]]
    path = tmp_path / "plug.csv"
    for given, codes in ((strange, set()), ([*strange, stamps[1]], {"time-goes-back", "duplicate-readings"})):
        path.write_text("timestamp,power_w\n" + "".join(f"{t:%Y-%m-%dT%H:%M:%SZ},100\n" for t in given))
        source = ingest.SourceFile(path, path.name, "node", options=Options(scope="node"))
        with open_store(tmp_path / "study.duckdb", read_only=False) as store:
            (outcome,) = ingest.ingest((source,), store)
            assert store.table("readings").height == 8
        assert {f.code for f in outcome.findings} & {"time-goes-back", "duplicate-readings"} == codes


def test_a_meter_of_years_with_a_line_twice_keeps_all_its_years(tmp_path: Path) -> None:
    stamps = [datetime(2023, 1, 1, tzinfo=UTC) + timedelta(days=7 * i) for i in range(170)]
    stamps.insert(90, stamps[40])
    text = "timestamp,power_w\n" + "".join(f"{t:%Y-%m-%dT%H:%M:%SZ},{400 + i}\n" for i, t in enumerate(stamps))
    found, told = taken(tmp_path, "meter.csv", text)
    assert set(found["readings"]["ts_utc"]) == set(stamps)
    assert told == []


def test_a_run_under_a_clock_that_was_not_set_is_no_run(tmp_path: Path) -> None:
    columns = (
        "timestamp,project_name,run_id,duration,emissions,cpu_energy,energy_consumed,codecarbon_version,tracking_mode"
    )
    row = "{t:%Y-%m-%dT%H:%M:%S},demo,00000000-0000-4000-8000-00000000000{i},600,0.0,0.01,0.01,3.2.2,machine"
    ends = [BOOT + timedelta(hours=1), START + timedelta(hours=1), START + timedelta(hours=2)]
    found, told = taken(
        tmp_path, "emissions.csv", "\n".join([columns, *(row.format(t=t, i=i) for i, t in enumerate(ends))]) + "\n"
    )
    assert sorted(found["logged_runs"]["end_utc"]) == ends[1:]
    assert set(found["rejects"]["line"]) == {2}
    assert len(told) == 1


def test_a_silence_of_years_divides_what_is_taken_for_one_run(study_folder, tmp_path: Path) -> None:
    late = [START + timedelta(seconds=10 * i) for i in range(60)]
    early = [datetime(2015, 1, 1, tzinfo=UTC) + timedelta(seconds=10 * i) for i in range(6)]
    text = "timestamp,power_w\n" + "".join(
        f"{t:%Y-%m-%dT%H:%M:%SZ},{400 + i % 2}\n" for i, t in enumerate([*early, *late])
    )
    folder = study_folder({"plug.csv": text}, '[[source]]\npath = "plug.csv"\nscope = "node"\n')
    cli.run_command(["run", str(folder), "-o", str(tmp_path / "out"), "--no-report", "-q"])
    with open_store(tmp_path / "out" / "study.duckdb") as store:
        runs = store.table("runs").sort("start_utc").select("run_id", "start_utc", "end_utc").rows()
        energy = store.results().filter((pl.col("metric") == "energy_j") & (pl.col("device") == ""))
    assert runs == [("whole-log-2015", early[0], early[-1]), ("whole-log-2026", late[0], late[-1])]
    assert dict(energy.select("run_id", "value").rows()) == pytest.approx(
        {"whole-log-2015": 400.5 * 50, "whole-log-2026": 400.5 * 590}
    )
    assert energy["coverage_ratio"].to_list() == [1.0, 1.0]
