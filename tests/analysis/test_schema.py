import polars as pl
import pytest

from joulebook import schema

UNITS = (
    "_s",
    "_w",
    "_j",
    "_ratio",
    "_bytes",
    "_c",
    "_hz",
    "_va",
    "_var",
    "_v",
    "_a",
    "_rpm",
    "_utc",
    "_ppm",
    "_lo",
    "_hi",
    "_kg",
)


def test_names_are_unique_and_every_column_says_what_it_is():
    for table in schema.TABLES:
        names = [c.name for c in table.columns]
        assert len(set(names)) == len(names)
        assert all(c.doc for c in table.columns)


def test_a_quantity_carries_its_unit():
    numbers = [c.name for c in schema.QUANTITIES if c.dtype == pl.Float64]
    assert len(numbers) > 10
    assert all(n.endswith(UNITS) for n in numbers)


def test_conform_orders_fills_and_refuses():
    frame = schema.conform(pl.DataFrame({"x": [8.0], "sweep": ["b"]}), "sweeps")
    assert frame.columns == list(schema.table("sweeps").schema)
    assert frame["repeats"].to_list() == [None]
    with pytest.raises(ValueError, match="wrong"):
        schema.conform(pl.DataFrame({"wrong": [1]}), "sweeps")
