import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import cli, config_errors, fleet, fleet_pools, fleet_studies, fleet_tables, open_store

DASK_STUDIES = int(os.environ.get("JOULEBOOK_FLEET_STUDIES", "3"))
"""Studies of the test with real Dask workers; a fleet of forty takes minutes."""

TOML = """[study]
timezone = "UTC"
[[run]]
id = "r1"
start = 2026-03-03T09:00:05Z
end = 2026-03-03T09:01:35Z
tokens = 1e6
"""


@pytest.fixture
def studies(tmp_path, gpu_log):
    """Write small studies and return their folders."""

    def write(count, folder="fleet", bad=()):
        made = []
        for i in range(count):
            path = tmp_path / folder / f"n{i}"
            path.mkdir(parents=True)
            rows = [(s, 0, f"{300 + 10 * i + s % 3} W") for s in range(101)]
            (path / "gpu.csv").write_text(gpu_log(rows))
            (path / "study.toml").write_text("[stduy]\n" if i in bad else TOML)
            made.append(path)
        return made

    return write


def exported(out):
    """The bytes of every table, but for the hash of the code, which a colleague may be editing."""
    files = {p.relative_to(out).as_posix(): p for p in sorted((Path(out) / "tables").rglob("*.parquet")) if p.is_file()}
    assert files
    return {n: pl.read_parquet(p).drop("fingerprint") if "stage_log" in n else p.read_bytes() for n, p in files.items()}


def assert_same(a, b):
    one, other = exported(a), exported(b)
    assert one.keys() == other.keys()
    for name, content in one.items():
        same = content.equals(other[name]) if isinstance(content, pl.DataFrame) else content == other[name]
        assert same, name


def test_a_failed_study_is_told_and_does_not_stop_the_rest(studies, tmp_path):
    told = []
    outcomes = fleet.map_over(
        studies(3, bad=[1]), str(tmp_path / "out"), fleet_pools.here, workers=1, report=False, told=told.append
    )
    assert [(o.study, o.status) for o in outcomes] == [("n0", "done"), ("n1", "failed"), ("n2", "done")]
    assert "stduy" in outcomes[1].reason
    assert len(told) == 3
    frame = fleet.open(tmp_path / "out")
    assert frame.columns[0] == "study"
    energy = frame.filter((pl.col("metric") == "energy_j") & (pl.col("device") == "")).sort("study")
    assert energy["study"].to_list() == ["n0", "n2"]
    assert energy["value"].to_list() == pytest.approx([90 * 301, 90 * 321], rel=2e-3)
    assert json.loads((tmp_path / "out" / "fleet.json").read_text())["studies"][1]["status"] == "failed"
    together = "select study, count(*) as n from findings join runs using (study) group by all order by all"
    assert fleet_tables.query(tmp_path / "out", together)["study"].to_list() == ["n0", "n2"]


def test_doing_it_again_changes_no_byte_and_a_study_that_fails_now_loses_its_old_numbers(studies, tmp_path):
    folders, out = studies(2), tmp_path / "out"
    fleet.map_over(folders, str(out), fleet_pools.here, workers=1, report=False)
    fleet.map_over(folders, str(tmp_path / "again"), fleet_pools.here, workers=1, report=False)
    assert_same(out, tmp_path / "again")
    assert "ingested_utc" not in fleet.open(out, "sources").columns, "it differs from one execution to the next"
    assert not [p for p in out.rglob(".*") if p.is_file()], "no half-written file stays"
    (folders[0] / "study.toml").write_text("[stduy]\n")
    fleet.map_over(folders, str(out), fleet_pools.here, workers=1, report=False)
    assert fleet.open(out)["study"].unique().to_list() == ["n1"]
    with pytest.raises(config_errors.ConfigError, match="no tables"):
        fleet.open(tmp_path / "nowhere")


def test_results_may_go_to_any_store_that_fsspec_knows(studies):
    fsspec = pytest.importorskip("fsspec")
    out = "memory://fleet-test"
    outcomes = fleet.map_over(studies(1), out, fleet_pools.here, workers=1, report=False)
    assert [o.status for o in outcomes] == ["done"]
    assert fleet.open(out)["study"].unique().sort().to_list() == ["n0"]
    assert fsspec.filesystem("memory").exists("/fleet-test/n0/study.duckdb")
    again = fleet.map_over(studies(1, "other"), out, fleet_pools.here, workers=1, report=False)
    assert [o.status for o in again] == ["done"]
    fsspec.filesystem("memory").rm("/fleet-test", recursive=True)


class Deadly(Executor):
    """An executor whose worker dies of one study, and takes the others with it."""

    def __init__(self, poison, given):
        self.poison, self.given, self.broken = poison, given, False

    def submit(self, function, task):
        self.given.append(task.study)
        future = Future()
        self.broken |= task.study == self.poison
        if self.broken:
            future.set_exception(BrokenProcessPool("a worker died"))
        else:
            future.set_result(fleet.Outcome(task.study, task.path, "done"))
        return future


def test_work_of_a_dead_worker_is_given_out_again_and_what_kills_it_is_named(tmp_path):
    given = []

    @contextmanager
    def pool(_workers):
        yield Deadly("b", given)

    paths = [tmp_path / n for n in "abcd"]
    outcomes = fleet.map_over(paths, str(tmp_path / "out"), pool, workers=2)
    assert [o.status for o in outcomes] == ["done", "failed", "done", "done"]
    assert "died" in outcomes[1].reason
    assert given.count("a") == 1, "what is done is not done again"
    assert given.count("b") == fleet_pools.RETRIES + 1


def test_names_are_told_apart():
    assert fleet_studies.names([Path("/x/a/node"), Path("/x/b/node"), Path("/x/c/study.toml")]) == [
        "a-node",
        "b-node",
        "c",
    ]
    with pytest.raises(config_errors.ConfigError, match="twice"):
        fleet_studies.names([Path("/x/a"), Path("/x/a")])


def test_a_glob_is_expanded_and_the_results_are_no_study(studies, tmp_path):
    folders = studies(2)
    (tmp_path / "fleet" / "out").mkdir()
    assert fleet_studies.studies([str(tmp_path / "fleet" / "*")], out=str(tmp_path / "fleet" / "out")) == folders
    with pytest.raises(config_errors.ConfigError, match="matches no"):
        fleet_studies.studies([str(tmp_path / "none*")])


def test_the_command_line_runs_a_fleet_on_processes(studies, tmp_path, capsys):
    studies(3, bad=[2])
    pattern, out = str(tmp_path / "fleet" / "*"), tmp_path / "out"
    assert cli.run_command(["run", pattern]) == cli.USAGE
    assert "-o" in capsys.readouterr().err
    assert (
        cli.run_command(["run", pattern, "-o", str(out), "--no-report", "--workers", "2", "--json"])
        == cli.NOT_GOOD_ENOUGH
    )
    captured = capsys.readouterr()
    assert [r["status"] for r in json.loads(captured.out)] == ["done", "done", "failed"]
    assert "failed n2" in captured.err
    with open_store(out / "n0") as store:
        assert store.runs().height == 1


def test_without_a_scheduler_it_is_said(studies, tmp_path, capsys, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(fleet_pools, "CONNECT_S", 0.2)
    assert (
        cli.run_command(
            ["run", str(studies(1)[0]), "-o", str(tmp_path / "out"), "--dask", f"tcp://127.0.0.1:{_free_port()}"]
        )
        == cli.USAGE
    )
    assert "no scheduler answers" in capsys.readouterr().err


def _free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture
def cluster(tmp_path):
    """Start a Dask scheduler and two worker processes on loopback; give its address and the workers."""
    pytest.importorskip("distributed")
    address = f"tcp://127.0.0.1:{_free_port()}"
    log = (tmp_path / "dask.log").open("wb")

    def start(*arguments):
        return subprocess.Popen([sys.executable, "-m", *arguments], stdout=log, stderr=log, cwd=tmp_path)

    scheduler = start(
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        address.rpartition(":")[2],
        "--no-dashboard",
        "--no-jupyter",
    )
    workers = [
        start("distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1",
              "--local-directory", str(tmp_path), "--death-timeout", "60")
        for _ in range(2)
    ]  # fmt: skip
    yield address, workers
    for process in [*workers, scheduler]:
        process.kill()
        process.wait()
    log.close()


def _wait_for_workers(address, count):
    distributed = pytest.importorskip("distributed")

    end = time.monotonic() + 60
    while True:
        try:
            with distributed.Client(address, timeout=5) as client:
                client.wait_for_workers(count, timeout=max(end - time.monotonic(), 1))
                return
        except OSError:
            if time.monotonic() > end:
                raise


@pytest.mark.filterwarnings("default")
def test_dask_gives_the_same_bytes_though_a_worker_is_killed_in_the_middle(studies, tmp_path, cluster):
    address, workers = cluster
    folders = studies(DASK_STUDIES)
    fleet.map_over(folders, str(tmp_path / "serial"), fleet_pools.here, workers=1, report=False)
    _wait_for_workers(address, 2)

    def told(_outcome):
        if workers[0].poll() is None:
            workers[0].kill()
            workers[0].wait()

    outcomes = fleet.map_over(
        folders, str(tmp_path / "dask"), fleet_pools.dask(address), workers=2, report=False, staged=True, told=told
    )
    assert [o.status for o in outcomes] == ["done"] * DASK_STUDIES, [o.reason for o in outcomes]
    assert workers[0].poll() is not None
    assert_same(tmp_path / "serial", tmp_path / "dask")
    with open_store(tmp_path / "dask" / f"n{DASK_STUDIES - 1}") as store:
        assert store.runs().height == 1
