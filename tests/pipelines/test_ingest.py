import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pytest

from joulebook.findings import Severity
from joulebook_pipelines import config, filling, run
from joulebook_pipelines.ingest import SourceFile, ingest
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import open_store

HOUR = [(s, g, f"{100 + g + s % 7}.00 W") for s in range(60) for g in range(2)]


def _facts(store):
    return [store.table(t).drop("ingested_utc", strict=False) for t in ("sources", "channels", "readings", "rejects")]


def _same(a, b):
    return all(x.equals(y) for x, y in zip(a, b, strict=True))


def _sources(folder):
    return tuple(SourceFile(p, p.name, "node", None, Options(timezone="UTC")) for p in sorted(folder.glob("*.csv")))


def test_a_store_that_another_version_made_is_made_again(gpu_log, study_folder, tmp_path):
    folder, out, said = study_folder({"a.csv": gpu_log(HOUR)}), tmp_path / "out", []
    out.mkdir()
    with duckdb.connect(str(out / "study.duckdb")) as old:
        old.execute("create table reading_rows (source_id integer, line bigint, device varchar, ts_utc timestamptz)")
    (outcome,) = filling.fill(config.load(folder), out, filling.Told(step=said.append)).outcomes
    assert (outcome.status, outcome.readings) == ("read", len(HOUR))
    assert said == ["reading all logs again: another version made the store"]


def test_what_another_version_read_is_read_again(gpu_log, study_folder, tmp_path, monkeypatch):
    folder = study_folder({"a.csv": gpu_log(HOUR)})
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        ingest(_sources(folder), store)
        monkeypatch.setattr("joulebook_pipelines.ingest.__version__", "99.0")
        assert [o.status for o in ingest(_sources(folder), store)] == ["read"]
        assert [o.status for o in ingest(_sources(folder), store)] == ["unchanged"]
        assert store.table("readings").height == len(HOUR)


def test_reading_again_changes_nothing_and_a_changed_file_is_read_anew(gpu_log, study_folder, tmp_path):
    folder = study_folder({"a.csv": gpu_log(HOUR), "b.csv": gpu_log(HOUR, start="2026-03-03T10:00:00")})
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        first = ingest(_sources(folder), store)
        before = _facts(store)
        again = ingest(_sources(folder), store)
        assert [o.status for o in first] == ["read", "read"]
        assert [o.status for o in again] == ["unchanged", "unchanged"]
        assert _same(before, _facts(store))
        (folder / "b.csv").write_text(gpu_log(HOUR[:10], start="2026-03-03T10:00:00"))
        assert [o.status for o in ingest(_sources(folder), store)] == ["unchanged", "read"]
        assert store.table("readings").height == len(HOUR) + 10
        (folder / "a.csv").unlink()
        ingest(_sources(folder), store)
        assert store.table("sources")["path"].to_list() == ["b.csv"]


GROWTH = {
    "more of the same": ("", "grown"),
    "a bad cell": (
        "2026/03/03 11:00:00.000, 0, SIM, oops, 50 %\n2026/03/03 11:00:00.000, 1, SIM, 95.0 W, 50 %\n",
        "grown",
    ),
    "the beginning of a line": ("2026/03/03 11:00:00.000, 0, S", "grown"),
    "a line that stood before": ("2026/03/03 09:00:59.000, 1, SIM, 102.00 W, 50 %\n", "read"),
    "a clock set back": ("2026/03/03 08:00:00.000, 0, SIM, 104.00 W, 50 %\n", "read"),
    "another card": ("2026/03/03 11:00:00.000, 7, SIM, 104.00 W, 50 %\n", "read"),
    "a message": ("NVIDIA-SMI has failed\n", "grown"),
}


@pytest.mark.parametrize("kind", GROWTH)
def test_a_file_that_grew_ends_as_if_it_had_been_read_at_once(gpu_log, study_folder, tmp_path, kind):
    added, status = GROWTH[kind]
    whole = gpu_log(HOUR)
    half = whole[: whole.index("\n", len(whole) // 2) + 1]
    folder = study_folder({"a.csv": half})
    with open_store(tmp_path / "grown.duckdb", read_only=False) as store:
        ingest(_sources(folder), store)
        (folder / "a.csv").write_text(whole + added)
        (outcome,) = ingest(_sources(folder), store)
        assert outcome.status == status
        grown = [*_facts(store), store.table("findings").drop("source_id")]
        assert [o.status for o in ingest(_sources(folder), store)] == ["unchanged"]
    with open_store(tmp_path / "whole.duckdb", read_only=False) as store:
        (at_once,) = ingest(_sources(folder), store)
        assert (outcome.lines, outcome.readings, outcome.rejects) == (at_once.lines, at_once.readings, at_once.rejects)
        for a, b in zip(grown, [*_facts(store), store.table("findings").drop("source_id")], strict=True):
            assert a.equals(b), (a, b)


def test_a_file_whose_beginning_changed_is_read_anew(gpu_log, study_folder, tmp_path):
    folder = study_folder({"a.csv": gpu_log(HOUR)})
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        ingest(_sources(folder), store)
        (folder / "a.csv").write_text(
            gpu_log(HOUR).replace("101.00 W", "102.00 W", 1) + gpu_log(HOUR, start="2026-03-02T11:00:00")
        )
        (outcome,) = ingest(_sources(folder), store)
        assert outcome.status == "read"


def test_what_cannot_be_read_is_refused_and_the_rest_is_kept(gpu_log, study_folder, tmp_path):
    folder = study_folder({"good.csv": gpu_log(HOUR), "noise.csv": "hello\nworld\n"})
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        outcomes = {o.name: o for o in ingest(_sources(folder), store)}
    assert outcomes["good.csv"].readings == len(HOUR)
    assert outcomes["noise.csv"].status == "refused"
    assert "noise.csv" in outcomes["noise.csv"].reason


def test_lines_that_stand_twice_are_set_aside_with_their_text(gpu_log, study_folder, tmp_path):
    folder = study_folder({"a.csv": gpu_log([*HOUR, *HOUR[20:30]])})
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        (outcome,) = ingest(_sources(folder), store)
        rejects = store.table("rejects")
        assert store.table("readings").height == len(HOUR)
        assert rejects["rule"].unique().to_list() == ["duplicate-reading"]
        assert rejects["line"].to_list() == list(range(len(HOUR) + 2, len(HOUR) + 12))
        text = (folder / "a.csv").read_text().split("\n")
        assert rejects["raw"].to_list() == [text[n - 1] for n in rejects["line"]]
    assert {f.code for f in outcome.findings} >= {"time-goes-back", "duplicate-readings"}


def test_a_second_with_two_readings_keeps_both_and_loses_only_the_line_that_stands_twice(
    gpu_log, study_folder, tmp_path
):
    rows = [(i if i % 40 else i + 1, 0, f"{200 + i % 7}.0 W") for i in range(1, 200)]
    folder = study_folder({"a.csv": gpu_log([*rows, rows[-1]])})
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        (outcome,) = ingest(_sources(folder), store)
        assert store.table("readings").height == len(rows)
        assert store.table("rejects")["rule"].to_list() == ["duplicate-reading"]
    kept = next(f for f in outcome.findings if f.code == "coarse-stamps")
    assert kept.severity == Severity.NOTE and kept.evidence == {"readings": 4}


def test_two_values_of_one_minute_are_a_conflict(gpu_log, study_folder, tmp_path):
    rows = [(60 * i, 0, f"{200 + i % 7}.0 W") for i in range(40)]
    rows.insert(21, (1200, 0, "333.0 W"))
    folder = study_folder({"a.csv": gpu_log(rows)})
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        ingest(_sources(folder), store)
        assert store.table("rejects")["rule"].to_list() == ["conflicting-duplicate"]


def test_a_logger_faster_than_its_stamps_loses_no_reading(gpu_log, study_folder, tmp_path):
    rows = [(i // 10, 0, f"{200 + i % 10}.0 W") for i in range(200)]
    folder = study_folder({"a.csv": gpu_log(rows)})
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        (outcome,) = ingest(_sources(folder), store)
        assert store.table("readings").height == len(rows)
    assert "coarse-stamps" in {f.code for f in outcome.findings}


def test_channels_tell_period_gaps_and_coverage(gpu_log, study_folder, tmp_path):
    rows = [(s, 0, "100 W") for s in range(61) if not 20 < s < 40]
    folder = study_folder({"a.csv": gpu_log(rows)})
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        ingest(_sources(folder), store)
        channel = store.table("channels").row(0, named=True)
    assert channel["period_s"] == 1.0
    assert channel["gaps"] == 1
    assert channel["coverage_ratio"] == pytest.approx(40 / 60)


KILLED = """
import os, sys
from pathlib import Path
from joulebook_pipelines import ingest
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.contract import Options
from joulebook_pipelines.store import Store, open_store

folder, store, at = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
text.BLOCK_BYTES = 2000
calls = 0
insert = Store.insert

def counting(self, name, frame):
    global calls
    calls += 1
    if calls == at:
        os._exit(9)
    insert(self, name, frame)

Store.insert = counting
files = tuple(ingest.SourceFile(p, p.name, "node", None, Options(timezone="UTC")) for p in sorted(folder.glob("*.csv")))
with open_store(store, read_only=False) as opened:
    ingest.ingest(files, opened)
"""


@pytest.mark.parametrize("at", [7])
def test_a_kill_during_ingest_leaves_the_store_as_before(gpu_log, study_folder, tmp_path, at):
    folder = study_folder({"a.csv": gpu_log(HOUR), "b.csv": gpu_log(HOUR, start="2026-03-03T10:00:00")})
    path, whole = tmp_path / "killed.duckdb", tmp_path / "whole.duckdb"
    died = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(path), str(at)], check=False)
    assert died.returncode == 9
    with open_store(path, read_only=False) as store:
        read = set(store.table("sources")["path"])
        # Each source is there whole or not at all.
        assert store.table("readings").height == len(HOUR) * len(read)
        ingest(_sources(folder), store)
        after = _facts(store)
    with open_store(whole, read_only=False) as store:
        ingest(_sources(folder), store)
        assert _same(after, _facts(store))


def test_a_rerun_without_changes_does_no_work(gpu_log, study_folder, tmp_path):
    folder = study_folder({"a.csv": gpu_log([(s, 0, f"{200 + s % 5} W") for s in range(200)])})
    study = config.load(folder)
    first = run.analyse(study, tmp_path / "out")
    with open_store(first.store) as store:
        before = store.results()
    assert first.worked
    assert run.analyse(study, tmp_path / "out").worked == ()
    with open_store(first.store) as store:
        assert store.results().equals(before)


def test_out_of_order_readings_are_integrated_in_order_of_time(gpu_log, study_folder, tmp_path):
    rows = [(s, 0, "300 W") for s in range(101)]
    folder = study_folder({"a.csv": gpu_log([*rows[50:], *rows[:50]])})
    result = run.analyse(config.load(folder), tmp_path / "out")
    with open_store(result.store) as store:
        energy = store.results().filter((pl.col("metric") == "energy_j") & (pl.col("device") == ""))
    assert energy["value"].to_list() == pytest.approx([30_000.0])


def test_the_same_folder_gives_the_same_numbers_wherever_it_lies(gpu_log, study_folder, tmp_path):
    folder = study_folder({"a.csv": gpu_log(HOUR)})
    frames = []
    for name in ("one", "two"):
        result = run.analyse(config.load(folder), tmp_path / name)
        with open_store(result.store) as store:
            frames.append(store.results())
    assert frames[0].equals(frames[1])


def test_a_path_outside_of_the_folder_is_harmless(gpu_log, study_folder, tmp_path):
    (tmp_path / "else where's.csv").write_text(gpu_log(HOUR))
    toml = '[study]\ntimezone = "UTC"\n[[source]]\npath = "../else where\'s.csv"\n'
    folder = study_folder({}, toml)
    result = filling.fill(config.load(folder), tmp_path / "out")
    assert Path(result.outcomes[0].name).name == "else where's.csv"
    assert result.outcomes[0].readings == len(HOUR)


def test_a_binary_file_is_refused_as_one(study_folder, tmp_path):
    folder = study_folder({"trace.csv": bytes(range(256)) * 40})
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        (outcome,) = ingest(_sources(folder), store)
    assert outcome.status == "refused"
    assert "not text" in outcome.reason
    assert "CSV" in outcome.reason


def test_readings_above_the_limit_are_counted_over_a_log_that_grew(study_folder, tmp_path):
    line = "2026/03/03 09:00:{:02d}.000, 0, {} W, 300.00 W\n"
    rows = [line.format(s, 310 if s % 7 == 0 else 200) for s in range(60)]
    header = "timestamp, index, power.draw [W], power.limit [W]\n"
    folder = study_folder({"a.csv": header + "".join(rows[:30])})
    with open_store(tmp_path / "s.duckdb", read_only=False) as store:
        ingest(_sources(folder), store)
        (folder / "a.csv").write_text(header + "".join(rows))
        (outcome,) = ingest(_sources(folder), store)
        assert outcome.status == "grown"
        (found,) = store.findings().filter(pl.col("code") == "above-power-limit")["message"]
    assert found.startswith("9 readings")
