"""Answers of a Prometheus: NaN, invented tails, slices of a card, several hosts; numbers worked out by hand."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from joulebook_pipelines import recognise
from joulebook_pipelines.logs import text
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Options

START = 1_793_581_200


def _read(tmp_path, results, **options):
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"status": "success", "data": {"resultType": "matrix", "result": results}}))
    head = text.head(path, path.name)
    assert recognise.adapter_for(head).name == "prometheus"
    (part,) = recognise.named("prometheus").parse(Log(path, head, Options(**options)))
    return part


def _series(name, values, step=15, **labels):
    metric = {"__name__": name, **labels} if name else labels
    return {"metric": metric, "values": [[START + step * i, v] for i, v in enumerate(values)]}


def _energy_j(readings):
    seconds = readings["ts_utc"].dt.timestamp("us").to_numpy() / 1e6
    return float(np.trapezoid(readings["power_w"].to_numpy(), seconds))


def test_nan_is_no_zero(tmp_path):
    part = _read(tmp_path, [_series("ipmi_power_watts", ["200", "NaN", "NaN", "210", "220"], step=60)])
    assert part.readings["power_w"].to_list() == [200.0, 210.0, 220.0]
    assert part.rejects.select("rule", "raw").rows() == [("no-value", "NaN")] * 2
    assert part.readings["power_w"].mean() == 210.0


def test_the_tail_that_repeats_the_last_value_is_set_aside(tmp_path):
    measured = ["301", "299", "303", "298", "300.5"]
    part = _read(tmp_path, [_series("DCGM_FI_DEV_POWER_USAGE", measured + ["300.5"] * 20, gpu="0")])
    assert part.readings["power_w"].to_list() == [float(v) for v in measured]
    assert _energy_j(part.readings) == 15 * (300 + 301 + 300.5 + 299.25)
    assert set(part.rejects["rule"]) == {"stale-tail"} and part.rejects.height == 20
    assert [f.code for f in part.findings] == ["stale-tail"]


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(["301", "299", "303"] + ["300"] * 10, id="a short stand-still"),
        pytest.param(["52"] * 60, id="a sensor that never moves"),
        pytest.param((["52"] * 30 + ["53"] * 25) * 2, id="an idle board in whole watts"),
    ],
)
def test_a_sensor_that_stands_still_is_believed(tmp_path, values):
    part = _read(tmp_path, [_series("DCGM_FI_DEV_POWER_USAGE", values, gpu="0")])
    assert part.readings.height == len(values) and part.rejects.is_empty()


def test_a_board_is_counted_once_whatever_its_slices(tmp_path):
    slices = [
        _series("DCGM_FI_DEV_POWER_USAGE", ["400", "410"], gpu="0", UUID="GPU-a", GPU_I_ID=str(i)) for i in range(1, 8)
    ]
    part = _read(tmp_path, slices)
    assert part.readings.select("device", "power_w").rows() == [("gpu:0", 400.0), ("gpu:0", 410.0)]
    assert part.rejects.height == 12 and set(part.rejects["rule"]) == {"repeated-series"}


def test_the_counter_of_dcgm_is_in_millijoules(tmp_path):
    part = _read(tmp_path, [_series("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", ["1000000", "7000000"], gpu="0")])
    assert part.readings["energy_counter_j"].to_list() == [1000.0, 7000.0]
    assert part.channels[0].kind == "counter"


def test_cards_of_several_hosts_are_kept_apart(tmp_path):
    both = [_series("DCGM_FI_DEV_POWER_USAGE", [str(w)], gpu="0", Hostname=h) for h, w in (("a", 100), ("b", 200))]
    part = _read(tmp_path, both)
    assert sorted(part.readings.select("device", "power_w").rows()) == [("gpu:0@a", 100.0), ("gpu:0@b", 200.0)]
    assert [f.code for f in part.findings] == ["several-hosts"]
    mine = _read(tmp_path, both, host="b")
    assert mine.readings.select("device", "power_w").rows() == [("gpu:0", 200.0)]


def test_one_machine_under_name_and_address_is_one_host(tmp_path):
    part = _read(tmp_path, [
        _series("DCGM_FI_DEV_POWER_USAGE", ["100"], gpu="0", Hostname="a", instance="10.0.0.1:9400"),
        _series("node_rapl_package_joules_total", ["5"], index="0", instance="10.0.0.1:9100"),
    ])  # fmt: skip
    assert {c.device for c in part.channels} == {"gpu:0", "cpu:0"}


def test_an_unknown_metric_is_refused_with_what_to_write(tmp_path):
    with pytest.raises(LogRefusedError, match=r'columns = \{ power_w = "pdu_watts" \}'):
        _read(tmp_path, [_series("pdu_watts", ["5"], outlet="1")])
    part = _read(
        tmp_path,
        [_series("pdu_watts", ["5"], outlet="1")],
        columns={"power_w": "pdu_watts"},
        scope="rack",
        device="rack",
    )
    assert part.readings.select("device", "power_w").rows() == [("rack", 5.0)]
    assert part.channels[0].scope == "rack"


def test_an_answer_on_one_long_line_is_read_whole(tmp_path):
    values = [f"{300 + i % 7}.123456" for i in range(170_000)]
    part = _read(tmp_path, [_series("DCGM_FI_DEV_POWER_USAGE", values, gpu="0", step=1)])
    assert (tmp_path / "answer.json").stat().st_size > 1 << 22
    assert part.readings.height == len(values)
    assert part.readings.select(pl.col("line").unique()).to_series().to_list() == [1]


def test_two_scrapers_of_one_target_tell_it_once(tmp_path):
    one = [_series("DCGM_FI_DEV_POWER_USAGE", ["400", "404", "408", "412"], gpu="0", prometheus_replica="a")]
    two = [_series("DCGM_FI_DEV_POWER_USAGE", ["400", "404", "408"], gpu="0", prometheus_replica="b")]
    two[0]["values"] = [[t + 2, v] for t, v in two[0]["values"]]
    part = _read(tmp_path, one + two)
    assert part.readings["power_w"].to_list() == [400.0, 404.0, 408.0, 412.0]
    assert _energy_j(part.readings) == 15 * (402 + 406 + 410)
    assert part.rejects["rule"].to_list() == ["repeated-series"] * 3
    assert "two-scrapers" in [f.code for f in part.findings]


def test_a_series_that_takes_over_from_another_stays(tmp_path):
    before = _series("DCGM_FI_DEV_POWER_USAGE", ["400", "404", "408"], gpu="0")
    after = _series("DCGM_FI_DEV_POWER_USAGE", ["412", "416"], gpu="0", exported_pod="train")
    after["values"] = [[t + 45, v] for t, v in after["values"]]
    part = _read(tmp_path, [before, after])
    assert part.readings["power_w"].to_list() == [400.0, 404.0, 408.0, 412.0, 416.0]
    assert part.rejects.height == 0


def test_the_firmware_meter_of_a_node_exporter_is_the_node(tmp_path):
    chip = {"chip": "LNXSYSTM:00_LNXSYBUS:00_ACPI000D:00", "sensor": "power1"}
    part = _read(tmp_path, [_series("node_hwmon_power_average_watt", ["310", "4294.967295", "312"], **chip)])
    assert part.readings["power_w"].to_list() == [310.0, 312.0]
    assert part.rejects.select("rule", "raw").rows() == [("error-code", "4294.967295")]
    assert [(c.device, c.scope) for c in part.channels] == [("node", "node")]


def test_another_chip_of_a_node_exporter_is_not_the_node(tmp_path):
    with pytest.raises(LogRefusedError, match="node_hwmon_power_average_watt"):
        _read(tmp_path, [_series("node_hwmon_power_average_watt", ["31", "32"], chip="pci0000:00", sensor="power1")])
