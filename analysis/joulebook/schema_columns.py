"""What a table of the store is made of: columns with their type, unit and meaning."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

UTC = pl.Datetime("us", "UTC")


@dataclass(frozen=True)
class Column:
    """One column: name (with its unit), polars type, meaning, and whether it belongs to the key."""

    name: str
    dtype: pl.DataType | type[pl.DataType]
    doc: str
    key: bool = False


@dataclass(frozen=True)
class Table:
    """One table of the store."""

    name: str
    doc: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> dict[str, pl.DataType | type[pl.DataType]]:
        """Column name to polars type, in order."""
        return {c.name: c.dtype for c in self.columns}

    def empty(self) -> pl.DataFrame:
        """Return a frame of this table without rows."""
        return pl.DataFrame(schema=self.schema)


def column(name: str, dtype: pl.DataType | type[pl.DataType], doc: str, *, key: bool = False) -> Column:
    """Return a column."""
    return Column(name, dtype, doc, key)


def estimate(name: str, doc: str) -> tuple[Column, Column, Column]:
    """Return a column and the two ends of its 95 % interval."""
    return (
        column(name, pl.Float64, doc),
        column(f"{name}_lo", pl.Float64, f"lower end of the 95 % interval of {name}"),
        column(f"{name}_hi", pl.Float64, f"upper end of the 95 % interval of {name}"),
    )


QUANTITIES = (
    column("power_w", pl.Float64, "electric power [W]; the mean over span_s where that is given"),
    column("energy_j", pl.Float64, "energy used within span_s [J], where the tool gives energy per span"),
    column("energy_counter_j", pl.Float64, "cumulative energy counter [J], as the tool counts it"),
    column("reported_power_w", pl.Float64, "a power the tool prints beside its energy [W], kept apart from power_w"),
    column("utilization_ratio", pl.Float64, "share of time with work on the device"),
    column("memory_utilization_ratio", pl.Float64, "share of time with memory traffic"),
    column("memory_used_bytes", pl.Float64, "memory in use [B]"),
    column("temperature_c", pl.Float64, "temperature [°C]"),
    column("memory_temperature_c", pl.Float64, "temperature of the memory [°C]"),
    column("sm_clock_hz", pl.Float64, "clock of the compute units [Hz]"),
    column("memory_clock_hz", pl.Float64, "clock of the memory [Hz]"),
    column("power_limit_w", pl.Float64, "power limit in force [W]"),
    column("fan_ratio", pl.Float64, "fan speed as a share of its maximum"),
    column("fan_speed_rpm", pl.Float64, "fan speed [1/min]"),
    column("voltage_v", pl.Float64, "voltage [V]"),
    column("current_a", pl.Float64, "current [A]"),
    column("power_factor_ratio", pl.Float64, "active over apparent power"),
    column("apparent_power_va", pl.Float64, "apparent power [VA]"),
    column("reactive_power_var", pl.Float64, "reactive power [var]"),
    column("performance_state", pl.String, "performance state as the tool names it, e.g. P0"),
    column("throttle_reasons", pl.String, "reasons for lowered clocks, as the tool names them"),
)  # fmt: skip
"""What a tool may say about one device at one instant."""

QUANTITY_NAMES = tuple(c.name for c in QUANTITIES)
