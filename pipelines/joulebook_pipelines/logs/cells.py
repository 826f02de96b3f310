"""Cells of text as numbers in canonical units. What is not a number of the quantity becomes null, never zero."""

from __future__ import annotations

import polars as pl

MISSING = (
    "", "-", "--", "n/a", "[n/a]", "na", "nan", "-nan", "+nan", "none", "null", "nil", "[not supported]", "not supported",
    "not available",
    "[unknown error]", "unknown error", "unknown", "err!", "error", "[error]", "[gpu requires reset]", "[gpu is lost]",
    "[insufficient permissions]", "insufficient permissions", "[function not found]", "[not found]", "disabled", "no reading",
    "requested functionality has been deprecated", "[requested functionality has been deprecated]", "ns", "inf", "-inf", "+inf",
    "n/a (secondary die)",
)  # fmt: skip
"""Spellings of "no value", in lower case."""

_FACTORS = {
    "power": {
        "w": 1.0, "watt": 1.0, "watts": 1.0, "kw": 1e3, "mw": 1e-3, "uw": 1e-6, "µw": 1e-6, "MW": 1e6,
        "kwatt": 1e3, "kwatts": 1e3, "kilowatt": 1e3, "kilowatts": 1e3, "milliwatt": 1e-3, "milliwatts": 1e-3,
        "microwatt": 1e-6, "microwatts": 1e-6, "megawatt": 1e6, "megawatts": 1e6, "dW": 0.1, "daW": 10.0,
    },
    "energy": {
        "j": 1.0, "joules": 1.0, "joule": 1.0, "kj": 1e3, "mj": 1e-3, "uj": 1e-6, "µj": 1e-6, "MJ": 1e6, "nj": 1e-9,
        "wh": 3.6e3, "kwh": 3.6e6, "MWh": 3.6e9, "mwh": 3.6, "ws": 1.0, "wmin": 60.0, "kwhs": 3.6e6,
        "millijoule": 1e-3, "millijoules": 1e-3, "microjoule": 1e-6, "microjoules": 1e-6, "kilojoule": 1e3, "kilojoules": 1e3,
        "megajoule": 1e6, "megajoules": 1e6,
    },
    "ratio": {"%": 0.01, "percent": 0.01, "ratio": 1.0, "1": 1.0},
    "bytes": {
        "b": 1.0, "kib": 2**10, "mib": 2**20, "gib": 2**30, "kb": 1e3, "mb": 1e6, "gb": 1e9, "bytes": 1.0,
    },
    "frequency": {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9},
    "temperature": {"c": 1.0, "°c": 1.0, "degrees c": 1.0, "degc": 1.0, "celsius": 1.0},
    "rpm": {"rpm": 1.0},
    "voltage": {"v": 1.0, "volts": 1.0, "mv": 1e-3, "volt": 1.0},
    "current": {"a": 1.0, "amps": 1.0, "ma": 1e-3, "amp": 1.0, "ampere": 1.0},
    "apparent": {"va": 1.0, "kva": 1e3},
    "reactive": {"var": 1.0, "kvar": 1e3},
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "sec": 1.0, "seconds": 1.0, "min": 60.0, "h": 3600.0},
}  # fmt: skip

_FAMILIES = {
    "power_w": "power", "reported_power_w": "power", "power_limit_w": "power",
    "energy_j": "energy", "energy_counter_j": "energy",
    "utilization_ratio": "ratio", "memory_utilization_ratio": "ratio", "fan_ratio": "ratio", "power_factor_ratio": "ratio",
    "memory_used_bytes": "bytes", "temperature_c": "temperature", "memory_temperature_c": "temperature",
    "sm_clock_hz": "frequency", "memory_clock_hz": "frequency", "fan_speed_rpm": "rpm",
    "voltage_v": "voltage", "current_a": "current", "apparent_power_va": "apparent", "reactive_power_var": "reactive",
    "span_s": "time",
}  # fmt: skip

TEXT_QUANTITIES = frozenset({"performance_state", "throttle_reasons"})

_COMMA_DECIMAL = r"^[+-]?(\d{1,3}(\.\d{3})+|\d*)(,\d*)?([eE][+-]?\d+)?$"
_GROUPED = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"

OVER_RANGE = 9.9e37
"""Instruments write over-range as 9.99999999e+37 (SCPI); nothing real is as large."""


def factor(quantity: str, unit: str) -> float | None:
    """Return what a number of that unit is multiplied by, ``None`` for a unit that does not fit the quantity.

    Case decides only between milli and mega.

    Examples
    --------
    >>> factor("power_w", "kW"), factor("power_w", "MW"), factor("power_w", "mW"), factor("power_w", "kWh")
    (1000.0, 1000000.0, 0.001, None)
    """
    table = _FACTORS.get(_FAMILIES.get(quantity, ""), {})
    unit = unit.strip().strip("[]()").replace("μ", "µ")
    return table.get(unit, table.get(unit.lower()))


def units_of(quantity: str) -> dict[str, float]:
    """Return the units of a quantity and their factors."""
    return dict(_FACTORS.get(_FAMILIES.get(quantity, ""), {}))


def plain_number(column: pl.Expr, decimal: str = ".") -> pl.Expr:
    """Return finite floats of cells that hold nothing but a number; null elsewhere.

    Parameters
    ----------
    column
        Text cells.
    decimal
        ``"."``, ``","`` (with points between thousands or without), or ``".,"`` (a point, commas between thousands).
    """
    text = column.str.strip_chars()
    if decimal == ",":
        # A point is read only between thousands: 12.5 in such a file is no number, and surely not 125.
        text = (
            pl.when(text.str.contains(_COMMA_DECIMAL))
            .then(text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True))
        )  # fmt: skip
    elif decimal == ".,":
        text = pl.when(text.str.contains(_GROUPED)).then(text.str.replace_all(",", "", literal=True)).otherwise(text)
    number = text.cast(pl.Float64, strict=False)
    return pl.when(number.is_finite() & (number.abs() < OVER_RANGE)).then(number)


def scaled(column: pl.Expr, quantity: str, unit: str) -> pl.Expr:
    """Return a column of numbers in canonical units; text quantities stay."""
    if quantity in TEXT_QUANTITIES:
        return column.str.strip_chars()
    by = factor(quantity, unit)
    return column if by == 1.0 or by is None else column * by


def number(column: pl.Expr, quantity: str, unit: str, *, decimal: str = ".") -> pl.Expr:
    """Return the quantity in canonical units where the cell is a bare number or carries the unit of its header.

    Parameters
    ----------
    column
        Text cells.
    quantity
        A name of :data:`joulebook.schema.QUANTITIES` or ``span_s``.
    unit
        Unit of bare numbers; ``""`` where none is known: everything is then null.
    decimal
        Decimal sign of the file.
    """
    if quantity in TEXT_QUANTITIES:
        text = column.str.strip_chars()
        return pl.when(~text.str.to_lowercase().is_in(MISSING)).then(text)
    if not unit:
        return pl.lit(None, dtype=pl.Float64)
    bare = factor(quantity, unit)
    if bare is None:
        raise ValueError(f"{unit!r} is no unit of {quantity}; one of {', '.join(units_of(quantity))} is")
    return plain_number(column.str.strip_chars().str.strip_suffix(unit), decimal) * bare


def with_own_unit(column: pl.Expr, quantity: str, *, decimal: str = ".") -> pl.Expr:
    """Return the quantity of cells that are a number followed by its own unit, any unit of the quantity; else null."""
    if quantity in TEXT_QUANTITIES:
        return pl.lit(None, dtype=pl.String)
    parts = column.str.strip_chars().str.extract_groups(r"^([+-]?[\d.,]+(?:[eE][+-]?\d+)?)\s*([^\d\s.,][^\d]*)$")
    unit = parts.struct.field("2").str.strip_chars().str.strip_chars("[]()")
    table = units_of(quantity)
    exact = unit.replace_strict(table, default=None, return_dtype=pl.Float64)
    folded = unit.str.to_lowercase().replace_strict(table, default=None, return_dtype=pl.Float64)
    return plain_number(parts.struct.field("1"), decimal) * pl.coalesce(exact, folded)


def why_null(column: pl.Expr) -> pl.Expr:
    """Return the name of the rule that a cell without a number broke."""
    text = column.str.strip_chars().str.to_lowercase()
    over = column.str.strip_chars().cast(pl.Float64, strict=False).abs() >= OVER_RANGE
    return (
        pl.when(text == "").then(pl.lit("empty"))
        .when(text.is_in(MISSING)).then(pl.lit("no-value"))
        .when(over.fill_null(value=False)).then(pl.lit("over-range"))
        .otherwise(pl.lit("not-a-number"))
    )  # fmt: skip
