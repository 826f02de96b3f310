"""Titles of tables: what quantity, in which unit, of which device."""

import pytest

from joulebook_pipelines.logs import meter_columns, meter_titles


@pytest.mark.parametrize(
    ("title", "quantity", "unit"),
    [
        ("Мощность, Вт", "power_w", "W"), ("Активная мощность (кВт)", "power_w", "kW"), ("Энергия, кВт·ч", "energy_j", "kWh"),
        ("Энергия [кВт*ч]", "energy_j", "kWh"), ("PowerW", "power_w", "W"),
    ],
)  # fmt: skip
def test_units_of_other_scripts_and_behind_no_gap(title, quantity, unit):
    found = meter_titles.meaning(title)
    assert (found.quantity, found.unit) == (quantity, unit)


@pytest.mark.parametrize("title", ["PowerA", "PhaseA", "NodeB", "powers"])
def test_a_letter_behind_other_words_is_no_unit(title):
    assert meter_titles.meaning(title).unit == ""


@pytest.mark.parametrize(
    ("energy", "power", "counts"),
    [
        ("nvml_integrated_energy_joules", "nvml_power_watts", "counter"), ("energy_since_start_j", "power_w", "counter"),
        ("node energy calculated [J]", "node power [W]", ""), ("gpu_energy_integrated_j", "gpu_power_w", "counter"),
        ("nvml_joules_energy", "nvml_power_watts", ""),
    ],
)  # fmt: skip
def test_how_an_energy_came_about_makes_no_second_device(energy, power, counts):
    found = meter_titles.meaning(energy)
    assert found.quantity == "energy_j"
    assert found.place == meter_titles.meaning(power).place
    assert found.counts == counts


def test_an_integrated_gpu_is_a_thing():
    assert meter_titles.meaning("integrated_gpu_energy_j").place == "integrated gpu"


@pytest.mark.parametrize(
    ("title", "quantity", "unit", "place"),
    [
        ("GPUPower(W)", "power_w", "W", "gpu"), ("GPU0Power", "power_w", "", "gpu 0"), ("RAMWatt", "power_w", "Watt", "ram"),
        ("CPUEnergy(J)", "energy_j", "J", "cpu"), ("DCVoltage(V)", "voltage_v", "V", "dc"), ("PDUPowerKW", "power_w", "KW", "pdu"),
    ],
)  # fmt: skip
def test_words_behind_an_abbreviation_are_words(title, quantity, unit, place):
    found = meter_titles.meaning(title)
    assert (found.quantity, found.unit, found.place) == (quantity, unit, place)


@pytest.mark.parametrize(
    ("title", "place", "total"),
    [
        ("Power (CPU)", "cpu", False),
        ("Power [GPU 1]", "gpu 1", False),
        ("Power (total)", "", True),
        ("Power (avg)", "", False),
    ],
)
def test_brackets_may_say_what_a_column_is_about(title, place, total):
    found = meter_titles.meaning(title)
    assert (found.quantity, found.unit, found.place, found.total) == ("power_w", "", place, total)


@pytest.mark.parametrize(
    ("title", "unit"), [("Current (A)", "A"), ("Time (s)", "s"), ("Power (mW)", "mW"), ("Temp (C)", "C")]
)
def test_units_in_brackets_stay_units(title, unit):
    assert meter_titles.meaning(title).unit == unit


@pytest.mark.parametrize(
    "title",
    ["powerProduction (W)", "Returned energy Wh", "Exported energy (kWh)", "fund_act_energy", "a_total_act_ret_energy"],
)
def test_what_is_given_back_or_inside_of_another_is_no_reading(title):
    assert meter_titles.meaning(title).quantity == ""


def test_a_count_of_epochs_is_no_time():
    assert meter_titles.meaning("EPOCH_COUNT").role == ""


def test_signals_of_geopm_are_in_si_units_of_the_machine():
    found = meter_columns.meanings(["TIME", "EPOCH_COUNT", "CPU_ENERGY", "BOARD_POWER", "GPU_POWER-gpu-1"])
    assert [(m.role, m.unit, m.place) for m in found[2:]] == [
        ("quantity", "J", "cpu"), ("quantity", "W", "node"), ("quantity", "W", "gpu gpu 1")
    ]  # fmt: skip


def test_the_load_of_a_jetson_is_no_power():
    found = meter_columns.meanings(["time", "jetson_clocks", "GPU1", "power cur", "power avg"])
    assert [m.unit for m in found] == ["", "", "", "mW", "mW"]
    assert found[3].place == found[4].place == ""


def test_a_chip_of_apple_is_one_package():
    titles = ["time", "CPU Power (mW)", "GPU Power (mW)", "ANE Power (mW)", "Combined Power (CPU + GPU + ANE) (mW)"]
    assert [m.place for m in meter_columns.meanings(titles)[1:]] == ["cores", "igpu", "ane", "package"]
    assert [m.place for m in meter_columns.meanings(titles[:3])[1:]] == ["cpu", "gpu"]


def test_of_the_statistics_of_nvitop_the_mean_is_read():
    titles = ["run/timestamp", *(f"run/cuda:0 (gpu:3)/power_usage (W)/{s}" for s in ("mean", "min", "max", "last"))]
    found = meter_columns.meanings(titles)
    assert [m.role for m in found] == ["time", "quantity", "", "", ""]
    assert (found[1].quantity, found[1].unit, found[1].place) == ("power_w", "W", "gpu 3")


@pytest.mark.parametrize("bounds", [("from", "to"), ("von", "bis")])
def test_a_span_is_told_by_its_two_ends(bounds):
    assert [m.role for m in meter_columns.meanings([*bounds, "Verbrauch (kWh)"])] == ["start", "end", "quantity"]


@pytest.mark.parametrize("title", ["Energie in Euro", "gpu_0_power_usage_percentage", "energy cost eur"])
def test_money_and_shares_are_no_readings(title):
    assert meter_titles.meaning(title).quantity == ""


@pytest.mark.parametrize("title", ["NPU ID", "card", "aip", "HPU index"])
def test_a_column_of_accelerators_names_devices(title):
    assert meter_titles.meaning(title).role == "device"
