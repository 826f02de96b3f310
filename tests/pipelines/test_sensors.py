"""Names of sensors as vendors print them, to device, scope and quantity."""

from __future__ import annotations

import pytest

from joulebook_pipelines.logs import sensors


@pytest.mark.parametrize(("name", "device", "scope"), [
    ("Pwr Consumption", "node", "node"),
    ("System Board Pwr Consumption", "node", "node"),
    ("Total_Power", "node", "node"),
    ("Avg Power", "node", "node"),
    ("Sys Power", "node", "node"),
    ("HSC Input Power", "node", "node"),
    ("System Level", "node", "node"),
    ("Power Meter", "node", "node"),
    ("PS1 Input Power", "psu:1", "node"),
    ("PSU2_PIN", "psu:2", "node"),
    ("PS3 AC Power", "psu:3", "node"),
    ("PS1 Output Power", "psu:1/out", "dc"),
    ("PSU2_POUT", "psu:2/out", "dc"),
    ("CPU Power", "cpu", "package"),
    ("CPU1 Power", "cpu:1", "package"),
    ("CPU1_VR_Power", "cpu1-vr-power", "part"),
    ("MEM Power", "dram", "dram"),
    ("GPU3 Power", "gpu:3", "board"),
    ("GPU_PWR_4", "gpu:4", "board"),
    ("HGX_GPU_SXM_2_Power_0", "gpu:2", "board"),
    ("OAM Slot 5 Power", "gpu:5", "board"),
    ("Total GPU Power", "total-gpu-power", "part"),
    ("FAN_Power", "fan-power", "part"),
    ("HDD Power", "hdd-power", "part"),
    ("Max Sys Power", "max-sys-power", "part"),
])  # fmt: skip
def test_power(name: str, device: str, scope: str) -> None:
    sensor = sensors.classify(name, "Watts")
    assert sensor is not None
    assert (sensor.device, sensor.scope, sensor.quantity, sensor.unit) == (device, scope, "power_w", "W")


@pytest.mark.parametrize(("name", "unit", "entity", "device", "quantity"), [
    ("Inlet Temp", "degrees C", "", "inlet", "temperature_c"),
    ("Ambient Temp", "C", "", "inlet", "temperature_c"),
    ("Exhaust Temp", "degrees C", "", "outlet", "temperature_c"),
    ("Outlet 2 Temp", "degrees C", "", "outlet:2", "temperature_c"),
    ("CPU1 Temp", "degrees C", "", "cpu:1", "temperature_c"),
    ("Temp", "degrees C", "3.2", "cpu:2", "temperature_c"),
    ("CPU1 VR Temp", "degrees C", "", "cpu1-vr-temp", "temperature_c"),
    ("PS1 Temperature", "degrees C", "", "psu:1", "temperature_c"),
    ("Fan1", "RPM", "", "fan:1", "fan_speed_rpm"),
    ("Fan 1A Tach", "RPM", "", "fan:1a", "fan_speed_rpm"),
    ("SYS_FAN_2", "RPM", "", "fan:2", "fan_speed_rpm"),
    ("Fan 3 DutyCycle", "percent", "", "fan:3", "fan_ratio"),
    ("Current 2", "Amps", "10.2", "psu:2", "current_a"),
    ("Planar 3.3V", "Volts", "7.1", "planar-3-3v", "voltage_v"),
    ("Pwr Cap", "Watts", "", "node", "power_limit_w"),
])  # fmt: skip
def test_other_quantities(name: str, unit: str, entity: str, device: str, quantity: str) -> None:
    sensor = sensors.classify(name, unit, entity)
    assert sensor is not None and (sensor.device, sensor.quantity) == (device, quantity)


@pytest.mark.parametrize(("name", "unit"), [("Altitude", "feet"), ("PS1 Curr Out %", "percent"), ("CPU 1", "discrete")])
def test_what_is_not_kept(name: str, unit: str) -> None:
    assert sensors.classify(name, unit) is None


def test_a_supply_without_a_side_says_so() -> None:
    bare, named = sensors.classify("Power Supply 1", "Watts"), sensors.classify("PS1 Power In", "Watts")
    assert bare is not None and bare.side_unnamed
    assert named is not None and not named.side_unnamed


def test_a_state_is_not_taken_for_a_power() -> None:
    assert sensors.says_power("Pwr Consumption") and sensors.says_power("PS1 Input Power")
    assert (
        not sensors.says_power("Power Supply 1")
        and not sensors.says_power("CPU 1")
        and not sensors.says_power("Pwr Cap")
    )
