"""Tools that print one moment, asked again and again: the energy of what they said, against the sum by hand."""

from datetime import UTC, datetime, timedelta

import pytest

from joulebook_pipelines import config, run
from joulebook_pipelines.store import open_store

START = datetime(2026, 3, 3, 9, 0, 0)

pytestmark = pytest.mark.usefixtures("energy_stages")
EPOCH_S = 1_772_528_400
EVERY_S = 5
POWERS = [100.0, 140.0, 140.0, 220.0, 180.0, 100.0]
BY_HAND_J = EVERY_S * (100 / 2 + 140 + 140 + 220 + 180 + 100 / 2)
"""Trapezoids between the powers."""


def _at(k):
    return START + timedelta(seconds=EVERY_S * k)


def _npu_smi(k, watts):
    line = "+---------------------------+---------------+----------------------------------------------------+\n"
    return (
        f"{_at(k):%Y-%m-%d %H:%M:%S}\n{line}"
        "| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|\n"
        f"| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |\n{line}"
        f"| 0     910B3               | OK            | {watts:<11} 43                0    / 0             |\n"
        f"| 0                         | 0000:C1:00.0  | 37          0    / 0          64   / 65536         |\n{line}"
    )


def _promtool(k, watts):
    head = 'DCGM_FI_DEV_POWER_USAGE{gpu="0", instance="n1:9400"} =>\n' if k == 0 else ""
    return f"{head}{watts:g} @[{EPOCH_S + EVERY_S * k}]\n"


def _typeperf(k, watts):
    head = (
        '"(PDH-CSV 4.0) (W. Europe Standard Time)(-60)","\\\\PC\\Energy Meter(RAPL_Package0_PKG)\\Power"\r\n'
        if k == 0
        else ""
    )
    return f'{head}"{_at(k) + timedelta(hours=1):%m/%d/%Y %H:%M:%S}.000","{1000 * watts}"\r\n'


def _upsc(k, watts):
    return (
        f"{_at(k):%Y-%m-%dT%H:%M:%S}Z\nbattery.charge: 100\noutlet.1.realpower: {watts / 2:g}\nups.load: 46\nups.power: 900\n"
        f"ups.power.nominal: 1500\nups.realpower: {watts:g}\nups.realpower.nominal: 1350\nups.status: OL\n"
    )


def _nvtop(k, watts):
    return (
        f'{_at(k):%Y-%m-%d %H:%M:%S}\n[\n {{\n  "device_name": "AMD Radeon",\n  "gpu_clock": "1000MHz",\n'
        f'  "power_draw": "{watts:g}W",\n  "gpu_util": "50%",\n  "processes" : [\n  ]\n }}\n]\n'
    )


def _liquidctl(k, watts):
    return (
        f"{_at(k):%Y-%m-%dT%H:%M:%S}Z\nCorsair HX1500i\n├── +12V output power                {watts / 2:.2f}  W\n"
        f"├── Total power output          {watts:10.2f}  W\n├── Estimated input power      {2 * watts:10.2f}  W\n"
    )


LOGS = {
    "psu.txt": (_liquidctl, "dc"),
    "nvtop.txt": (_nvtop, "board"),
    "upsc.txt": (_upsc, "node"),
    "npu.txt": (_npu_smi, "board"),
    "range.txt": (_promtool, "board"),
    "counters.csv": (_typeperf, "package"),
}
SAID = {"upsc.txt": 'scope = "node"\n'}


def test_energy_of_what_was_printed_is_the_sum_by_hand(tmp_path):
    told = '[study]\ntimezone = "UTC"\n'
    for name, (written, _) in LOGS.items():
        (tmp_path / name).write_text("".join(written(k, w) for k, w in enumerate(POWERS)), encoding="utf-8")
        told += f'[[source]]\npath = "{name}"\nhost = "{name}"\n{SAID.get(name, "")}'
    (tmp_path / "study.toml").write_text(told)
    result = run.analyse(config.load(tmp_path), tmp_path / "out")
    assert all(o.status == "read" for o in result.outcomes), [o.reason for o in result.outcomes]
    with open_store(result.store) as store:
        assert set(store.table("sources")["first_utc"]) == {START.replace(tzinfo=UTC)}
        rows = store.results().filter(metric="energy_j", device="")
    assert dict(rows.select("run_id", "scope").iter_rows()) == {
        f"whole-log-{n}": scope for n, (_, scope) in LOGS.items()
    }
    assert rows["value"].to_list() == pytest.approx([BY_HAND_J] * len(LOGS))
    assert rows["coverage_ratio"].to_list() == pytest.approx([1.0] * len(LOGS))


def test_series_one_after_the_other_are_no_clock_that_was_set_back(tmp_path):
    first = "".join(_promtool(k, w) for k, w in enumerate(POWERS))
    (tmp_path / "range.txt").write_text(first + first.replace('gpu="0"', 'gpu="1"'))
    (tmp_path / "study.toml").write_text('[study]\n[[source]]\npath = "range.txt"\n')
    result = run.analyse(config.load(tmp_path), tmp_path / "out")
    with open_store(result.store) as store:
        energies = store.results().filter(metric="energy_j", scope="board").select("device", "value")
        assert "time-goes-back" not in store.findings()["code"].to_list()
    each = {"gpu:0": BY_HAND_J, "gpu:1": BY_HAND_J, "": 2 * BY_HAND_J}
    assert dict(energies.iter_rows()) == pytest.approx(each)


def test_means_over_samples_without_times_are_added_up_by_their_lengths(tmp_path):
    sample = '{{"period": {{"duration": {0}}}, "rc6": {{}}, "power": {{"GPU": 2, "Package": {1}, "unit": "W"}}, "engines": {{}}}}'
    samples = [(500, 10), (1000, 40), (1500, 20), (1000, 30)]
    (tmp_path / "top.json").write_text("[\n" + ",\n".join(sample.format(*s) for s in samples) + "\n]\n")
    (tmp_path / "study.toml").write_text('[study]\n[[source]]\npath = "top.json"\n')
    result = run.analyse(config.load(tmp_path), tmp_path / "out")
    with open_store(result.store) as store:
        row = store.results().filter(metric="energy_j", scope="package", device="").row(0, named=True)
    assert row["value"] == pytest.approx(0.5 * 10 + 1 * 40 + 1.5 * 20 + 1 * 30)
    assert row["coverage_ratio"] == pytest.approx(1.0)
