"""A log of counters alone gets what a log of powers gets: idle, marginal energy, steady state, stalls, phases."""

from __future__ import annotations

import datetime as dt
import random

import numpy as np
import polars as pl
import pytest

from joulebook_pipelines import config, open_store, run

T0 = dt.datetime(2026, 3, 3, 9, tzinfo=dt.UTC)
FIRST, LAST = 900, 1800
"""The run, in seconds of the log, which goes on as long before it and after it."""


def stamp(second):
    return (T0 + dt.timedelta(seconds=second)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Analyse a poll a second of a package's counter, whose load is known to a millisecond; return numbers and truth."""
    rng, at, marks = random.Random(4), float(FIRST), []
    watts = np.full((FIRST + LAST) * 1000, 55.0)
    true_j = dict.fromkeys(("forward", "backward"), 0.0)
    while at < LAST - 1:
        for phase, power_w, mean_s in (("forward", 220.0, 0.33), ("backward", 150.0, 0.5)):
            end = round(at + mean_s * rng.uniform(0.9, 1.1), 3)
            watts[round(at * 1000) : round(end * 1000)] = power_w
            true_j[phase] += power_w * (end - at)
            marks.append(f"r1,{phase},{stamp(at)},{stamp(end)}")
            at = end
    watts += np.random.default_rng(1).normal(0.0, 20.0, watts.size)
    counter_uj = 5e9 + np.concatenate([[0.0], np.cumsum(watts) * 1e3])
    polls = [f"{stamp(s)},{counter_uj[s * 1000]:.0f}" for s in range(FIRST + LAST)]
    folder = tmp_path_factory.mktemp("counting")
    (folder / "rapl.csv").write_text("timestamp,package-0_uj\n" + "\n".join(polls) + "\n")
    (folder / "phases.csv").write_text("run,phase,start,end\n" + "\n".join(marks) + "\n")
    (folder / "study.toml").write_text(f'[[run]]\nid = "r1"\nstart = {stamp(FIRST)}\nend = {stamp(at)}\ntokens = 1e6\n')
    result = run.analyse(config.load(folder), folder / "out")
    with open_store(result.store) as store:
        yield store, true_j, float(watts[FIRST * 1000 : round(at * 1000)].sum() / 1000), at - FIRST


def row(store, metric, phase=""):
    of = (pl.col("metric") == metric) & (pl.col("device") == "") & (pl.col("phase") == phase)
    (found,) = store.results().filter(of).to_dicts()
    return found


def test_idle_and_marginal_energy_are_known(told):
    store, _, energy_j, seconds = told
    whole = row(store, "energy_j")
    assert whole["lo"] < energy_j < whole["hi"]
    assert whole["value"] == pytest.approx(energy_j, rel=1e-3)
    idle, above = row(store, "idle_power_w"), row(store, "marginal_energy_j")
    assert idle["lo"] < 55.0 < idle["hi"]
    assert idle["value"] == pytest.approx(55.0, rel=0.01)
    assert above["lo"] < energy_j - 55.0 * seconds < above["hi"]


def test_the_steady_state_is_found(told):
    store, true_j, _, seconds = told
    steady = row(store, "stable_power_w")
    assert steady["value"] == pytest.approx(sum(true_j.values()) / seconds, rel=0.01)
    assert store.table("segments").filter((pl.col("kind") == "stable") & (pl.col("device") == "")).height == 1


@pytest.mark.parametrize("phase", ["forward", "backward"])
def test_phases_shorter_than_the_poll_are_told_apart(told, phase):
    store, true_j, _, _ = told
    energy = row(store, "phase_energy_j", phase)
    assert energy["value"] == pytest.approx(true_j[phase], rel=0.01)
    assert energy["lo"] < true_j[phase] < energy["hi"]


def test_the_picture_shows_the_power(told):
    store, _, _, _ = told
    line = store.timeline("package")
    assert line.height > 1000
    assert line["mean_w"].min() > 50
    assert line["mean_w"].max() < 225


def test_a_register_of_watt_hours_calibrates_nothing(study_folder, gpu_log, tmp_path):
    board = [300.0 if 300 <= s < 900 else 60.0 for s in range(1200)]
    kwh = np.floor(np.cumsum([100 + 1.2 * w for w in board]) / 3600) / 1000
    register = [f"{stamp(s)},{value:.3f}" for s, value in enumerate(kwh)]
    files = {
        "gpu.csv": gpu_log((s, 0, f"{w:.2f} W") for s, w in enumerate(board)),
        "meter.csv": "time,energy_kwh\n" + "\n".join(register) + "\n",
    }
    toml = (
        '[study]\ntimezone = "UTC"\n[[source]]\npath = "gpu.csv"\n[[source]]\npath = "meter.csv"\nscope = "node"\n'
        f'[[run]]\nid = "r1"\nstart = {stamp(300)}\nend = {stamp(900)}\n'
    )
    result = run.analyse(config.load(study_folder(files, toml)), tmp_path / "out")
    with open_store(result.store) as store:
        (refused,) = store.table("calibrations").to_dicts()
        assert refused["status"] == "refused"
        assert "counts so coarsely" in refused["reason"]
        energy = store.results().filter(
            pl.col("metric") == "energy_j", pl.col("scope") == "node", pl.col("device") == ""
        )
        assert energy["lo"][0] < 600 * (100 + 1.2 * 300) < energy["hi"][0]


def test_a_card_that_tells_only_its_counter_has_its_energy(study_folder, tmp_path):
    """300 J a second; the driver is loaded anew in between, and what the counter lost there nobody knows."""
    counter_mj = [100_000 + 300_000 * s for s in range(60)] + [50_000 + 300_000 * s for s in range(60)]
    lines = [f"2026/05/11 08:{30 + s // 60}:{s % 60:02d}.000, 0, {v}" for s, v in enumerate(counter_mj)]
    log = "timestamp, index, total_energy_consumption [mJ]\n" + "\n".join(lines) + "\n"
    result = run.analyse(config.load(study_folder({"gpu.csv": log})), tmp_path / "out")
    with open_store(result.store) as store:
        found = store.results().filter(
            pl.col("metric") == "energy_j", pl.col("scope") == "board", pl.col("device") == ""
        )
        assert found["value"][0] == pytest.approx(118 * 300.0, rel=1e-3)
        assert found["lo"][0] < 119 * 300.0 < found["hi"][0]
        codes = set(store.findings()["code"])
    assert "counter-reset" in codes
    assert "no-power-column" not in codes
