"""Metrics of exporters: device, boundary, quantity and unit by name and labels."""

from __future__ import annotations

import pytest

from joulebook_pipelines.logs import prometheus_names

CASES = [
    ("DCGM_FI_DEV_POWER_USAGE", {"gpu": "0"}, ("gpu:", "board", "power_w", "W")),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", {"gpu": "0"}, ("gpu:", "board", "energy_counter_j", "mJ")),
    ("nvidia_gpu_power_usage_milliwatts", {"minor_number": "2"}, ("gpu:", "board", "power_w", "mW")),
    ("ipmi_dcmi_power_consumption_watts", {}, ("node", "node", "power_w", "W")),
    ("ipmi_power_watts", {"name": "PS2 Input Power"}, ("psu:2", "node", "power_w", "W")),
    ("ipmi_power_watts", {"name": "PS2 Output Power"}, ("psu:2/out", "dc", "power_w", "W")),
    ("node_rapl_package_joules_total", {"index": "1"}, ("cpu:1", "package", "energy_counter_j", "J")),
    ("node_rapl_dram_joules_total", {"index": "0"}, ("dram:0", "dram", "energy_counter_j", "J")),
    ("node_rapl_core_joules_total", {"index": "0"}, ("cpu:0/core", "part", "energy_counter_j", "J")),
    ("node_rapl_psys_joules_total", {"index": "0"}, ("platform", "dc", "energy_counter_j", "J")),
    (
        "node_rapl_package_joules_total", {"index": "0", "path": "/sys/class/powercap/intel-rapl-mmio:0"},
        ("cpu:0/mmio", "part", "energy_counter_j", "J"),
    ),
    ("kepler_node_package_joules_total", {"package": "0", "mode": "idle"}, ("cpu:0/idle", "package", "energy_counter_j", "J")),
    ("kepler_node_platform_joules_total", {"mode": "dynamic"}, ("node/dynamic", "node", "energy_counter_j", "J")),
    ("kepler_node_cpu_watts", {"zone": "package", "path": "/x/intel-rapl:1"}, ("cpu:1", "package", "power_w", "W")),
    ("kepler_node_cpu_idle_watts", {"zone": "package", "path": "/x/intel-rapl:1"}, ("cpu:1/idle", "part", "power_w", "W")),
    ("node_package_energy_millijoule", {"pkg_id": "1"}, ("cpu:1", "package", "energy_counter_j", "mJ")),
    ("scaph_host_power_microwatts", {}, ("components", "components", "power_w", "uW")),
    ("scaph_socket_power_microwatts", {"socket_id": "0"}, ("cpu:0", "package", "power_w", "uW")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "labels", "want"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_a_metric_is_known_by_name_and_labels(name, labels, want):
    (meaning,) = prometheus_names.classify(name, labels)
    assert (meaning.device, meaning.scope, meaning.quantity, meaning.unit) == want


@pytest.mark.parametrize(
    "name", ["http_requests_total", "kepler_container_joules_total", "pod_energy_stat", "ipmi_temperature_celsius"]
)
def test_other_metrics_say_nothing(name):
    assert prometheus_names.classify(name, {}) == ()


def test_what_is_split_by_pod_is_told_apart():
    assert prometheus_names.about_processes("kepler_container_joules_total")
    assert not prometheus_names.about_processes("kepler_node_package_joules_total")


def test_the_first_kepler_carries_memory_in_a_label():
    told = prometheus_names.in_labels(
        "node_package_energy_millijoule", {"pkg_id": "1", "dram": "5", "core": "0", "uncore": "0"}
    )
    assert [(label, m.device, m.unit) for label, m in told] == [("dram", "dram:1", "mJ")]


def test_the_card_of_a_series():
    assert prometheus_names.card_key({"gpu": "3", "UUID": "GPU-AB"}) == ("ab", "3")
    assert prometheus_names.card_key({"device": "nvidia7"}) == ("", "7")
    assert prometheus_names.card_key({"uuid": "ab"}) == ("ab", "")
