"""Names and defaults that study.toml knows."""

from __future__ import annotations

from joulebook.schema import QUANTITY_NAMES

DEFAULT_HOST = "node"

DEFAULT_MEMORY = "750MB"
"""Of the database: with the text in flight a whole ingest stays below 1.5 GB, however long the log."""

COLUMN_NAMES = ("time", "date", "start", "end", "span_s", "device", *QUANTITY_NAMES)
"""What a column of a file may be said to hold: its time, its device, or any quantity of ``readings``."""

KNOBS = ("batch_size", "power_limit_w", "sm_clock_hz", "memory_clock_hz")
"""What a sweep may vary without a label for it."""

METRICS = (
    "energy_j", "marginal_energy_j", "mean_power_w", "stable_power_w", "idle_power_w", "peak_power_w", "duration_s",
    "warmup_s", "cv_ratio", "energy_per_token_j", "tokens_per_j", "tokens_per_s", "mfu_ratio", "facility_energy_j",
    "carbon_kg", "cost",
)  # fmt: skip
"""Numbers of a whole run that the steps of a campaign may be compared by."""

_UNITS = {
    "_s": ("s", "ms", "us", "min", "h"), "_w": ("W", "kW", "MW", "mW", "uW", "dW", "daW"), "_va": ("VA", "kVA"),
    "_var": ("var", "kvar"),
    "_j": ("J", "kJ", "MJ", "mJ", "uJ", "Wh", "kWh", "MWh", "mWh"), "_ratio": ("%", "1"), "_rpm": ("rpm",),
    "_bytes": ("B", "KiB", "MiB", "GiB", "kB", "MB", "GB"), "_hz": ("Hz", "kHz", "MHz", "GHz"), "_c": ("°C",),
    "_v": ("V", "mV"), "_a": ("A", "mA"),
}  # fmt: skip


def usual_units(column: str) -> tuple[str, ...]:
    """Return the units that a column may be said to have, as they are usually written; none for text.

    Examples
    --------
    >>> usual_units("power_w")
    ('W', 'kW', 'MW', 'mW', 'uW', 'dW', 'daW')
    """
    return next((units for ending, units in _UNITS.items() if column.endswith(ending)), ())
