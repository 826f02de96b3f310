import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulebook_pipelines.logs import cells


def _number(text, quantity="power_w", unit="W", **options):
    frame = pl.DataFrame({"c": [text]})
    fast = frame.select(cells.number(pl.col("c"), quantity, unit, **options)).item()
    own = frame.select(cells.with_own_unit(pl.col("c"), quantity, **options)).item()
    return fast if fast is not None else own


@pytest.mark.parametrize(
    ("text", "watts"),
    [
        ("62.48 W", 62.48), (" 62.48", 62.48), ("0.95 kW", 950.0), ("300 mW", 0.3), ("1.2e3", 1200.0), ("7 W", 7.0),
        ("2505 dW", 250.5), ("25 daW", 250.0),
        ("nan", None), ("[N/A]", None), ("", None), ("9.99999999e+37", None), ("inf", None), ("12 kWh", None), ("1 2", None),
    ],
)  # fmt: skip
def test_a_cell_is_a_number_in_watts_or_nothing(text, watts):
    assert _number(text) == (pytest.approx(watts) if watts is not None else None)


def test_decimal_commas_and_thousands_dots():
    assert _number("1.234,5", decimal=",") == 1234.5
    assert _number("987,0 W", decimal=",") == 987.0


def test_a_bare_number_without_unit_is_nothing():
    assert _number("300", unit="") is None
    assert _number("300 W", unit="") == 300.0


def test_percent_becomes_a_ratio_and_mebibytes_bytes():
    assert _number("97 %", "utilization_ratio", "%") == pytest.approx(0.97)
    assert _number("3000 MiB", "memory_used_bytes", "MiB") == 3000 * 2**20
    assert _number("1980 MHz", "sm_clock_hz", "MHz") == 1.98e9


@pytest.mark.parametrize(
    "marker", ["[N/A]", "N/A", "[Not Supported]", "ERR!", "-", "nan", "[Unknown Error]", "[GPU requires reset]"]
)
def test_a_marker_is_named_as_one(marker):
    assert pl.DataFrame({"c": [marker]}).select(cells.why_null(pl.col("c"))).item() == "no-value"


@given(st.floats(0.001, 1e5), st.sampled_from(["W", "kW", "mW"]))
def test_units_change_the_number_and_not_the_watts(watts, unit):
    text = f"{watts / cells.factor('power_w', unit)!r} {unit}"
    assert _number(text, unit="") == pytest.approx(watts)
