"""A meter that is said to share the machine's clock, and does not, is told; one that does is not."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from joulebook_pipelines import config, open_store, run
from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.filling import Told, fill
from joulebook_pipelines.stages import clocks, runs
from joulebook_pipelines.stages.context import Context

T0 = datetime(2026, 3, 2, 10, tzinfo=UTC)


def written(folder: Path, meter_ahead_s: int) -> list[float]:
    """Write a board and a meter of one load whose changes never repeat themselves; return the load [W]."""
    draw = random.Random(7)
    load: list[float] = []
    while len(load) < 900:
        load += [draw.choice((80.0, 200.0, 320.0, 400.0))] * draw.randint(15, 70)
    board = "".join(
        f"{T0 + timedelta(seconds=i):%Y/%m/%d %H:%M:%S.000}, 0, A100, {load[i] + draw.gauss(0, 2):.2f} W\n"
        for i in range(900)
    )
    meter = "".join(
        f"{T0 + timedelta(seconds=i + meter_ahead_s):%Y-%m-%dT%H:%M:%SZ},{1.1 * load[i] + 120 + draw.gauss(0, 2):.1f}\n"
        for i in range(900)
    )
    (folder / "gpu.csv").write_text("timestamp, index, name, power.draw [W]\n" + board)
    (folder / "meter.csv").write_text("timestamp,power_w\n" + meter)
    sources = '[[source]]\npath = "gpu.csv"\n[[source]]\npath = "meter.csv"\nscope = "node"\n'
    (folder / "study.toml").write_text('[study]\ntimezone = "UTC"\n' + sources)
    return load


@pytest.mark.parametrize(("meter_ahead_s", "told"), [(47, True), (0, False)])
def test_a_meter_on_a_shared_clock_is_tried(tmp_path: Path, meter_ahead_s: int, told: bool) -> None:
    written(tmp_path, meter_ahead_s)
    study = config.load(tmp_path, adapters=[a.name for a in ADAPTERS])
    filled = fill(study, tmp_path / "out", Told())
    with open_store(filled.store, read_only=False) as store:
        context = Context(store, study)
        runs.STAGE.work(context)
        found = [f for _, f in clocks.STAGE.work(context).findings if f.code == "clocks-differ"]
    assert bool(found) is told
    if told:
        assert found[0].evidence["offset_s"] == pytest.approx(meter_ahead_s, abs=1.5)
        assert "ahead" in found[0].message


def test_phases_and_steps_of_a_host_whose_clock_is_not_the_reference_are_moved(tmp_path: Path) -> None:
    """Logs of a training tell times on the clock of their host; the meter, whose clock is the reference, is 47 s ahead."""
    load = written(tmp_path, 47)
    begins = [0, *(i for i in range(1, 900) if load[i] != load[i - 1]), 900]
    spans = [(f"at-{load[a]:.0f}", a, b) for a, b in itertools.pairwise(begins)]

    def stamp(second: int) -> str:
        return f"{T0 + timedelta(seconds=second):%Y-%m-%dT%H:%M:%SZ}"

    (tmp_path / "phases.csv").write_text(
        "run,phase,start,end\n" + "".join(f"r,{name},{stamp(a)},{stamp(b)}\n" for name, a, b in spans)
    )
    toml = tmp_path / "study.toml"
    more = f"""[[source]]
path = "phases.csv"
[[run]]
id = "r"
start = {stamp(0)}
end = {stamp(899)}
"""
    toml.write_text(toml.read_text().replace('scope = "node"\n', 'scope = "node"\nclock = "meter"\n') + more)
    result = run.analyse(config.load(tmp_path), tmp_path / "out")
    with open_store(result.store) as store:
        references = store.table("alignments").filter(clock="node")["reference_clock"].to_list()
        found = store.results("r").filter(scope="node", metric="phase_power_w").select("phase", "value").rows()
        context = Context(store, config.load(tmp_path))
        moved = (context.phases()["start_utc"] - store.table("phases")["start_utc"]).dt.total_seconds().to_list()
    assert references == ["meter"]
    assert moved == pytest.approx([47] * len(spans), abs=1.5)
    assert len(found) >= 4
    for phase, watts in found:
        if phase.startswith("at-"):
            assert watts == pytest.approx(1.1 * float(phase.removeprefix("at-")) + 120, rel=0.02), phase


@pytest.mark.parametrize("meter_ahead_s", [-3600, 3600])
def test_a_run_of_a_host_an_hour_from_the_reference_is_found_in_all_of_its_logs(
    tmp_path: Path, meter_ahead_s: int
) -> None:
    """The meter was set to another zone than its log is said to be of; a run is told by the clock of its host."""
    load = written(tmp_path, meter_ahead_s)
    toml = tmp_path / "study.toml"
    told = (
        f'[[run]]\nid = "r"\nstart = {T0:%Y-%m-%dT%H:%M:%SZ}\nend = {T0 + timedelta(seconds=899):%Y-%m-%dT%H:%M:%SZ}\n'
    )
    level = next(
        i for i in range(1, 900) if load[i] != load[i - 1]
    )  # called idle, though it is none: its power is known
    told += f"[[idle]]\nstart = {T0:%Y-%m-%dT%H:%M:%SZ}\nend = {T0 + timedelta(seconds=level - 1):%Y-%m-%dT%H:%M:%SZ}\n"
    toml.write_text(toml.read_text().replace('scope = "node"', 'scope = "node"\nclock = "meter"') + told)
    result = run.analyse(config.load(tmp_path), tmp_path / "out")
    with open_store(result.store) as store:
        found = {
            r["scope"]: r
            for r in store.results("r").iter_rows(named=True)
            if r["metric"] == "energy_j" and not r["device"] and not r["phase"]
        }
        codes = set(store.findings()["code"])
        idle = (
            store.results("r")
            .filter((pl.col("metric") == "idle_power_w") & (pl.col("scope") == "board"))["value"]
            .item()
        )
    assert idle == pytest.approx(load[0], abs=2.0)
    board_j = sum((a + b) / 2 for a, b in itertools.pairwise(load[:900]))
    assert found["board"]["value"] == pytest.approx(board_j, rel=2e-3)
    assert found["node"]["value"] == pytest.approx(1.1 * board_j + 120 * 899, rel=2e-3)
    assert found["node"]["coverage_ratio"] > 0.99
    assert "clock-zone-slip" in codes


def test_machines_of_one_study_are_calibrated_each_by_its_own_meter(tmp_path: Path) -> None:
    """The loads of the two have nothing to do with each other, so their clocks cannot be found by power: nor is that needed."""
    toml = '[study]\ntimezone = "UTC"\n'
    for host, gain, offset_w, seed in (("n1", 1.1, 120.0, 3), ("n2", 1.25, 400.0, 4)):
        draw = random.Random(seed)
        load: list[float] = []
        while len(load) < 2400:
            load += [draw.choice((80.0, 200.0, 320.0, 400.0))] * draw.randint(90, 200)
        at = [T0 + timedelta(seconds=i) for i in range(2400)]
        board = "".join(
            f"{t:%Y/%m/%d %H:%M:%S.000}, 0, A100, {w + draw.gauss(0, 1):.2f} W\n"
            for t, w in zip(at, load, strict=False)
        )
        meter = "".join(
            f"{t:%Y-%m-%dT%H:%M:%SZ},{gain * w + offset_w + draw.gauss(0, 1):.1f}\n"
            for t, w in zip(at, load, strict=False)
        )
        (tmp_path / f"gpu-{host}.csv").write_text("timestamp, index, name, power.draw [W]\n" + board)
        (tmp_path / f"meter-{host}.csv").write_text("timestamp,power_w\n" + meter)
        toml += f'[[source]]\npath = "gpu-{host}.csv"\nhost = "{host}"\n'
        toml += f'[[source]]\npath = "meter-{host}.csv"\nhost = "{host}"\nscope = "node"\n'
        toml += f'[[run]]\nid = "{host}"\nhost = "{host}"\nstart = {at[60]:%Y-%m-%dT%H:%M:%SZ}\nend = {at[-60]:%Y-%m-%dT%H:%M:%SZ}\n'
    (tmp_path / "study.toml").write_text(toml)
    result = run.analyse(config.load(tmp_path), tmp_path / "out")
    with open_store(result.store) as store:
        found = {r["host"]: r for r in store.table("calibrations").iter_rows(named=True) if r["scope"] == "board"}
        widened = store.table("uncertainties").filter((pl.col("part") == "alignment") & (pl.col("hi") > 0))
    for host, gain, offset_w in (("n1", 1.1, 120.0), ("n2", 1.25, 400.0)):
        assert found[host]["gain_lo"] <= gain <= found[host]["gain_hi"]
        assert found[host]["offset_lo"] <= offset_w <= found[host]["offset_hi"]
    assert widened.is_empty()


def test_jobs_share_the_machine_that_they_ran_on_and_no_other(tmp_path: Path) -> None:
    """Two machines of two cards: on the first, jobs a and b draw 100 and 300 W of boards in a node of 600 W."""
    at = [T0 + timedelta(seconds=i) for i in range(601)]
    toml = '[study]\ntimezone = "UTC"\n'
    for host, node_w in (("n1", 600.0), ("n2", 5000.0)):
        rows = [f"{t:%Y/%m/%d %H:%M:%S.000}, {g}, A100, {w:.2f} W\n" for t in at for g, w in enumerate((100.0, 300.0))]
        (tmp_path / f"gpu-{host}.csv").write_text("timestamp, index, name, power.draw [W]\n" + "".join(rows))
        meter = "".join(f"{t:%Y-%m-%dT%H:%M:%SZ},{node_w}\n" for t in at)
        (tmp_path / f"meter-{host}.csv").write_text("timestamp,power_w\n" + meter)
        toml += f'[[source]]\npath = "gpu-{host}.csv"\nhost = "{host}"\n'
        toml += f'[[source]]\npath = "meter-{host}.csv"\nhost = "{host}"\nscope = "node"\n'
        for card, job in enumerate("ab"):
            toml += f'[[run]]\nid = "{host}-{job}"\nhost = "{host}"\ndevices = ["gpu:{card}"]\n'
            toml += f"start = {at[0]:%Y-%m-%dT%H:%M:%SZ}\nend = {at[-1]:%Y-%m-%dT%H:%M:%SZ}\n"
    (tmp_path / "study.toml").write_text(toml)
    result = run.analyse(config.load(tmp_path), tmp_path / "out")
    with open_store(result.store) as store:
        shares = {
            r["run_id"]: r["energy_j"] for r in store.table("shares").iter_rows(named=True) if r["run_id"][:1] == "n"
        }
    # 600 s of each node, split as the boards of its jobs: one part to three.
    expected = {"n1-a": 90_000.0, "n1-b": 270_000.0, "n2-a": 750_000.0, "n2-b": 2_250_000.0}
    assert shares == pytest.approx(expected, rel=1e-6)
