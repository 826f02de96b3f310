"""What a meter at the wall and a thermometer at the inlet would have logged of a made-up record."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from joulebook.synthetic_truth import Truth
from joulebook.synthetic_witness import (
    UTC_CLOCK,
    Clock,
    decimal,
    energy_before,
    lines,
    mean_before,
    stamps,
    ticks_s,
)

JOULE_PER_KWH = 3.6e6


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a meter writes its CSV.

    Parameters
    ----------
    delimiter, comma, newline
        Between cells; between whole and fraction; at the end of lines.
    stamp
        Format of stamps.
    time, power, energy
        Names of the columns.
    kilowatts
        Whether power is in kW rather than W.
    preamble
        Lines before the header.
    """

    delimiter: str = ","
    comma: str = "."
    newline: str = "\n"
    stamp: str = "%Y-%m-%d %H:%M:%S%.3f"
    time: str = "time"
    power: str = "power_w"
    energy: str = "energy_kwh"
    kilowatts: bool = False
    preamble: tuple[str, ...] = ()


ISO = Dialect()
"""ISO stamps, commas, decimal points, W."""

GERMAN = Dialect(
    delimiter=";",
    comma=",",
    newline="\r\n",
    stamp="%d.%m.%Y %H:%M:%S",
    time="Datum Uhrzeit",
    power="Leistung [W]",
    energy="Energie [kWh]",
    preamble=("sep=;", "Gerät: Steckdose Labor", ""),
)
"""Semicolons, decimal commas, day first, whole seconds, a preamble."""


def csv(
    truth: Truth,
    *,
    period_s: float = 1.0,
    window_s: float = 1.0,
    jitter_s: float = 0.0,
    first_s: float = 0.0,
    clock: Clock = UTC_CLOCK,
    dialect: Dialect = ISO,
    decimals: int = 1,
    counter_decimals: int | None = 3,
    counter_start_kwh: float = 1234.567,
    gain: float = 1.0,
    noise_w: float = 0.4,
    seed: int = 0,
) -> str:
    """Return the log of a meter at the node's inlet.

    Parameters
    ----------
    truth
        What happened.
    period_s, jitter_s, first_s
        From one reading to the next, by how much a reading is late, and when the first is [s].
    window_s
        Averaging window [s]; 0 = instantaneous.
    clock
        Clock and zone of the stamps.
    dialect
        How it is written.
    decimals
        Decimals of the power in W (three more in kW).
    counter_decimals
        Decimals of the energy counter in kWh; ``None`` for no counter.
    counter_start_kwh
        Where the counter stands at the start [kWh].
    gain
        Error of the meter: reading over truth.
    noise_w
        Noise of a reading [W].
    seed
        Seed of jitter and noise.

    Returns
    -------
    str
        The file's text.

    Examples
    --------
    >>> from joulebook import synthetic
    >>> print(csv(synthetic.node(1), period_s=600.0), end="")
    time,power_w,energy_kwh
    2026-11-02 01:00:00.000,394.3,1234.567
    2026-11-02 01:10:00.000,395.1,1234.632
    2026-11-02 01:20:00.000,1167.4,1234.880
    """
    at = ticks_s(truth, period_s=period_s, jitter_s=jitter_s, first_s=first_s, seed=seed)
    power = gain * mean_before(truth.node["power_w"], at, window_s=window_s, cell_s=truth.cell_s)
    rng = np.random.Generator(np.random.PCG64([seed, 13]))
    power = power + noise_w * rng.standard_normal(power.size)
    counter = counter_start_kwh + gain * energy_before(truth.node["power_w"], at, cell_s=truth.cell_s) / JOULE_PER_KWH
    table = pl.DataFrame({"power": power / 1000.0 if dialect.kilowatts else power, "energy": counter}).select(
        stamps(truth, at, clock=clock).dt.strftime(dialect.stamp).alias("time"),
        decimal("power", decimals + 3 if dialect.kilowatts else decimals).str.replace(".", dialect.comma, literal=True),
        # A counter shows what it has counted in full, so it is cut, not rounded.
        decimal("energy", 9).str.head(-(9 - (counter_decimals or 0))).str.replace(".", dialect.comma, literal=True),
    )
    names = [dialect.time, dialect.power, dialect.energy]
    if counter_decimals is None:
        table, names = table.drop("energy"), names[:-1]
    head = (*dialect.preamble, dialect.delimiter.join(names))
    return "".join(line + dialect.newline for line in head) + lines(table, dialect.delimiter, end=dialect.newline)


def inlet_csv(
    truth: Truth,
    *,
    period_s: float = 30.0,
    clock: Clock = UTC_CLOCK,
    decimals: int = 1,
    noise_c: float = 0.04,
    seed: int = 0,
) -> str:
    """Return the log of a thermometer at the node's air inlet, with an offset in every stamp.

    Parameters
    ----------
    truth
        What happened.
    period_s
        From one reading to the next [s].
    clock
        Clock and zone of the stamps.
    decimals
        Decimals of the temperature.
    noise_c
        Noise of a reading [°C].
    seed
        Seed of the noise.

    Returns
    -------
    str
        Columns ``time`` and ``inlet_c``.

    Examples
    --------
    >>> from joulebook import synthetic
    >>> print(inlet_csv(synthetic.node(1)).splitlines()[1])
    2026-11-02T01:00:00+00:00,22.6
    """
    at = ticks_s(truth, period_s=period_s)
    rng = np.random.Generator(np.random.PCG64([seed, 14]))
    seen = mean_before(truth.node["inlet_c"], at, window_s=0.0, cell_s=truth.cell_s)
    table = pl.DataFrame({"inlet_c": seen + noise_c * rng.standard_normal(at.size)}).select(
        stamps(truth, at, clock=clock).dt.strftime("%Y-%m-%dT%H:%M:%S%:z").alias("time"), decimal("inlet_c", decimals)
    )
    return "time,inlet_c\n" + lines(table, ",")
