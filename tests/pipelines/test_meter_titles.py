"""Titles of tables: what quantity, in which unit, of which device."""

import pytest

from joulebook_pipelines.logs import meter_titles


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
