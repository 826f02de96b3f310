"""Every witness tells of the same truth: rendered logs, read back with the plainest means, give its numbers."""

from __future__ import annotations

import json
import re
from datetime import datetime

import numpy as np
import polars as pl
import pytest

from joulebook import (
    synthetic,
    synthetic_codecarbon,
    synthetic_ipmi,
    synthetic_meter,
    synthetic_nvidia_smi,
    synthetic_trainlog,
)
from joulebook.synthetic_truth import Truth
from joulebook.synthetic_witness import Clock

RUN = "pretrain-1"


@pytest.fixture(scope="module")
def truth() -> Truth:
    return synthetic.node(11)


def test_gpu_window_means_hold_the_whole_energy(truth: Truth) -> None:
    text = synthetic_nvidia_smi.query_csv(truth, jitter_s=0.0, fields=("timestamp", "index", "power.draw"), units=False)
    rows = [line.split(", ") for line in text.splitlines()[1:]]
    first = sum(float(r[2]) for r in rows if r[1] == "0")
    whole = truth.boards.filter(pl.col("device") == "gpu:0")["power_w"].sum() * truth.cell_s
    # Readings end each second, so the last second of the record is not among them and the first counts twice.
    assert first == pytest.approx(whole, abs=2 * 70.0)


def test_gpu_flaws_are_as_many_as_asked(truth: Truth) -> None:
    clean = synthetic_nvidia_smi.query_csv(truth)
    flawed = synthetic_nvidia_smi.query_csv(
        truth, restarts=((700.5, 4.0),), gaps=((900.5, 10.0),), missing=9, cut_characters=5
    )
    assert flawed.count("[N/A]") == 9
    assert flawed.count("timestamp") == 2
    assert len(clean.splitlines()) - len(flawed.splitlines()) == 2 * 14 - 1
    assert not flawed.endswith("\n")
    assert flawed.splitlines()[0] == clean.splitlines()[0]


def test_gpu_columns_come_in_the_asked_order_with_units(truth: Truth) -> None:
    text = synthetic_nvidia_smi.query_csv(truth, fields=("index", "power.draw.instant", "timestamp"), decimals=1)
    assert text.splitlines()[0] == "index, power.draw.instant [W], timestamp"
    assert re.fullmatch(r"0, \d+\.\d W, 2026/11/02 01:00:00\.\d{3}", text.splitlines()[1])
    with pytest.raises(ValueError, match="'power'"):
        synthetic_nvidia_smi.query_csv(truth, fields=("power",))


def test_meter_counter_and_power_agree_with_the_truth(truth: Truth) -> None:
    text = synthetic_meter.csv(truth, counter_decimals=6, noise_w=0.0)
    frame = pl.read_csv(text.encode())
    start, end = 600, 1400
    counted = (frame["energy_kwh"][end] - frame["energy_kwh"][start]) * 3.6e6
    true = truth.node["power_w"][start * 20 : end * 20].sum() * truth.cell_s
    assert counted == pytest.approx(true, abs=4.0)
    assert frame["power_w"][start + 1 : end + 1].sum() == pytest.approx(true, rel=1e-4)


def test_meter_dialects_say_the_same(truth: Truth) -> None:
    iso = synthetic_meter.csv(truth, seed=3).splitlines()
    german = synthetic_meter.csv(truth, seed=3, dialect=synthetic_meter.GERMAN).split("\r\n")
    kilo = synthetic_meter.csv(truth, seed=3, dialect=synthetic_meter.Dialect(power="power_kw", kilowatts=True))
    watts = [line.split(",")[1] for line in iso[1:]]
    assert [line.split(";")[1].replace(",", ".") for line in german[4:-1]] == watts
    assert [float(line.split(",")[1]) for line in kilo.splitlines()[1:]] == pytest.approx(
        [float(w) / 1000 for w in watts], abs=6e-5
    )
    assert german[3] == "Datum Uhrzeit;Leistung [W];Energie [kWh]"


def test_meter_clock_is_late_by_its_offset(truth: Truth) -> None:
    text = synthetic_meter.csv(truth, clock=Clock(offset_s=-71.3))
    assert text.splitlines()[1].startswith("2026-11-02 00:58:48.700,")
    assert synthetic_meter.csv(truth, counter_decimals=None).startswith("time,power_w\n")


def test_dcmi_blocks_hold_the_power_of_the_past_second(truth: Truth) -> None:
    text = synthetic_ipmi.dcmi(truth, jitter_s=0.0, bmc_clock=Clock(offset_s=-37.0))
    now = [int(w) for w in re.findall(r"Instantaneous power reading: +(\d+) Watts", text)]
    cells = truth.node["power_w"].to_numpy()
    true = [cells[max(t * 20 - 20, 0) : max(t * 20, 1)].mean() for t in range(0, len(now) * 5, 5)]
    assert np.abs(np.array(now) - true).max() <= 0.5 + 1e-6
    first = re.search(r"IPMI timestamp: +(.*)", text)
    assert first is not None
    assert datetime.strptime(first[1], "%a %b %d %H:%M:%S %Y").isoformat() == "2026-11-02T00:59:23"
    stamped = synthetic_ipmi.dcmi(truth, collector_clock=Clock(zone="Asia/Shanghai"))
    assert stamped.startswith("2026-11-02T09:00:0")


def test_sdr_supplies_sum_to_the_wall(truth: Truth) -> None:
    text = synthetic_ipmi.sdr(truth, resolution_w=1.0, jitter_s=0.0)
    one, two = (np.array(re.findall(rf"PS{k} Input Power  \| (\d+) Watts", text), dtype=float) for k in (1, 2))
    at = np.arange(len(one)) * 200
    cells = truth.node["power_w"].to_numpy()
    true = np.array([cells[max(a - 20, 0) : max(a, 1)].mean() for a in at])
    assert np.abs(one + two - true).max() <= 1.0 + 1e-6
    with pytest.raises(ValueError, match="resolution_w is 0"):
        synthetic_ipmi.sdr(truth, resolution_w=0.0)


@pytest.mark.parametrize("version", ["1.2.0", "2.1.4", "2.2.1", "2.3.5", "2.8.3", "3.0.8", "3.1.2", "3.3.2"])
def test_codecarbon_energy_is_true_in_every_version(truth: Truth, version: str) -> None:
    site = synthetic_codecarbon.Site(pue=1.25)
    text = synthetic_codecarbon.emissions_csv(truth, version=version, site=site, clock=Clock(zone="Asia/Shanghai"))
    frame = pl.read_csv(text.encode())
    assert tuple(frame.columns) == synthetic_codecarbon.columns(version)
    assert frame["timestamp"][0].startswith("2026-11-02T09:2")
    if "gpu_energy" in frame.columns:
        assert frame["gpu_energy"][0] * 3.6e6 / 1.25 == pytest.approx(truth.energy_j(RUN, "board"), rel=1e-9)
        parts = frame.select(pl.sum_horizontal("cpu_energy", "gpu_energy", "ram_energy")).item()
        assert frame["energy_consumed"][0] == pytest.approx(parts)


def test_codecarbon_power_columns_change_their_meaning(truth: Truth) -> None:
    site = synthetic_codecarbon.Site(pue=1.25)
    power = {
        v: pl.read_csv(synthetic_codecarbon.emissions_csv(truth, version=v, site=site).encode())["gpu_power"][0]
        for v in ("3.1.1", "3.1.2", "3.3.1")
    }
    seconds = truth.energies.filter((pl.col("run_id") == RUN) & (pl.col("phase") == ""))["duration_s"][0]
    mean = truth.energy_j(RUN, "board") / seconds
    assert power["3.1.2"] == pytest.approx(mean)
    assert power["3.3.1"] == pytest.approx(1.25 * mean)
    assert power["3.1.1"] != pytest.approx(mean, rel=1e-3)
    with pytest.raises(ValueError, match="three numbers"):
        synthetic_codecarbon.columns("3.x")
    with pytest.raises(ValueError, match=r"1\.0\.0 or later"):
        synthetic_codecarbon.columns("0.9.0")


def test_training_log_and_phases_are_those_of_the_truth(truth: Truth) -> None:
    rows = [json.loads(line) for line in synthetic_trainlog.jsonl(truth).splitlines()]
    assert sum(r["tokens"] for r in rows) == truth.runs["tokens"][0]
    assert [r["step"] for r in rows] == list(range(1, len(rows) + 1))
    assert datetime.fromisoformat(rows[-1]["time"]) == truth.runs["end_utc"][0]
    assert np.abs(np.array([r["loss"] for r in rows]) - truth.steps["loss"].to_numpy()).max() <= 5.1e-6
    local = synthetic_trainlog.jsonl(truth, clock=Clock(zone="Asia/Shanghai")).splitlines()
    assert datetime.fromisoformat(json.loads(local[0])["time"]) == datetime.fromisoformat(rows[0]["time"])
    phases = pl.read_csv(synthetic_trainlog.phases_csv(truth).encode(), try_parse_dates=True)
    assert phases["phase"].to_list() == truth.phases["phase"].to_list()
    assert phases["end"].dt.epoch("us").to_list() == truth.phases["end_utc"].dt.epoch("us").to_list()


def test_inlet_is_within_noise_of_the_truth(truth: Truth) -> None:
    frame = pl.read_csv(synthetic_meter.inlet_csv(truth).encode())
    true = truth.node["inlet_c"].gather_every(600).head(frame.height)
    assert (frame["inlet_c"] - true).abs().max() < 0.3
