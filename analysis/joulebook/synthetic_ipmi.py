"""What a collector loop around ``ipmitool`` would have written of a made-up record."""

from __future__ import annotations

import numpy as np
import polars as pl

from joulebook.synthetic_truth import Truth
from joulebook.synthetic_witness import UTC_CLOCK, Clock, decimal, lines, mean_before, stamps, ticks_s

DCMI_WINDOW_S = 1.0
"""Window over which a management controller averages what it calls instantaneous [s]."""

_SENSORS = (
    ("PS1 Input Power", "first", "Watts"), ("PS2 Input Power", "second", "Watts"), ("CPU Power", "cpu", "Watts"),
    ("Inlet Temp", "inlet", "degrees C"), ("Fan 1", "fan", "RPM"),
)  # fmt: skip

_STAMPED = "%Y-%m-%dT%H:%M:%S%:z"


def dcmi(
    truth: Truth,
    *,
    period_s: float = 5.0,
    window_s: float = DCMI_WINDOW_S,
    jitter_s: float = 0.05,
    bmc_clock: Clock = UTC_CLOCK,
    collector_clock: Clock | None = None,
    resolution_w: float = 1.0,
    seed: int = 0,
) -> str:
    """Return blocks of ``ipmitool dcmi power reading``, one a look.

    Parameters
    ----------
    truth
        What happened.
    period_s, jitter_s
        From one look to the next, and by how much a look is late [s].
    window_s
        Averaging window of the reading [s].
    bmc_clock
        Clock of the controller, which stamps every block to the second.
    collector_clock
        Clock of the machine that asks; where given, ``date -Is`` stands before each block.
    resolution_w
        Smallest step of the reading [W].
    seed
        Seed of the jitter.

    Returns
    -------
    str
        The file's text.

    Raises
    ------
    ValueError
        The resolution is not positive.

    Examples
    --------
    >>> from joulebook import synthetic
    >>> print(dcmi(synthetic.node(1)).splitlines()[1].strip())
    Instantaneous power reading:                   394 Watts
    """
    at = ticks_s(truth, period_s=period_s, jitter_s=jitter_s, seed=seed)
    now = _stepped(mean_before(truth.node["power_w"], at, window_s=window_s, cell_s=truth.cell_s), resolution_w)
    count = np.arange(1, now.size + 1)
    watts = pl.DataFrame(
        {
            "now": now,
            "least": np.minimum.accumulate(now),
            "most": np.maximum.accumulate(now),
            "mean": np.cumsum(now) / count,
        }
    ).select(decimal(c, 0).str.pad_start(5) for c in ("now", "least", "most", "mean"))
    table = watts.with_columns(
        stamps(truth, at, clock=bmc_clock).dt.strftime("%a %b %e %H:%M:%S %Y").alias("bmc"),
        _collected(truth, at, collector_clock),
    )
    block = (
        "{}\n    Instantaneous power reading:                 {} Watts\n"
        "    Minimum during sampling period:              {} Watts\n"
        "    Maximum during sampling period:              {} Watts\n"
        "    Average power reading over sample period:    {} Watts\n"
        "    IPMI timestamp:                           {}\n"
        "    Sampling period:                          00000001 Seconds.\n"
        "    Power reading state is:                   activated\n\n"
    )
    return lines(table.select(pl.format(block, "collected", "now", "least", "most", "mean", "bmc")), "")


def sdr(
    truth: Truth,
    *,
    period_s: float = 10.0,
    window_s: float = DCMI_WINDOW_S,
    jitter_s: float = 0.1,
    collector_clock: Clock = UTC_CLOCK,
    resolution_w: float = 14.0,
    seed: int = 0,
) -> str:
    """Return dumps of ``ipmitool sdr``, each below the collector's ``date -Is``.

    Parameters
    ----------
    truth
        What happened.
    period_s, jitter_s
        From one dump to the next, and by how much a dump is late [s].
    window_s
        Averaging window of the power sensors [s].
    collector_clock
        Clock of the machine that asks.
    resolution_w
        Smallest step of the power sensors [W]; sensor records have 8 bits, so steps are coarse.
    seed
        Seed of the jitter.

    Returns
    -------
    str
        Two supplies (inputs, which share the load), their sum, processors, inlet temperature, a fan.

    Raises
    ------
    ValueError
        The resolution is not positive.

    Examples
    --------
    >>> from joulebook import synthetic
    >>> print(sdr(synthetic.node(1)).splitlines()[4])
    Inlet Temp       | 23 degrees C      | ok
    """
    at = ticks_s(truth, period_s=period_s, jitter_s=jitter_s, seed=seed)
    wall = mean_before(truth.node["power_w"], at, window_s=window_s, cell_s=truth.cell_s)
    cpu = mean_before(truth.node["cpu_power_w"], at, window_s=window_s, cell_s=truth.cell_s)
    fan = mean_before(truth.node["fan_power_w"], at, window_s=0.0, cell_s=truth.cell_s)
    inlet = mean_before(truth.node["inlet_c"], at, window_s=0.0, cell_s=truth.cell_s)
    table = pl.DataFrame(
        {
            "first": _stepped(0.52 * wall, resolution_w),
            "second": _stepped(0.48 * wall, resolution_w),
            "cpu": _stepped(cpu, 2.0),
            "inlet": inlet,
            "fan": _stepped(12600.0 * np.cbrt(fan / truth.machine.fan_full_w), 120.0),
        }
    )
    texts = table.select(*(decimal(c, 0) for c in table.columns), _collected(truth, at, collector_clock))
    row_texts = [
        pl.concat_str(pl.lit(f"{name:<16} | "), (pl.col(c) + f" {unit}").str.pad_end(17), pl.lit(" | ok"))
        for name, c, unit in _SENSORS
    ]
    return lines(texts.select(pl.concat_str("collected", *row_texts, separator="\n")), "")


def _stepped(power: np.ndarray, resolution: float) -> np.ndarray:
    if resolution <= 0:
        raise ValueError(f"resolution_w is {resolution}; it must be positive")
    stepped: np.ndarray = np.rint(power / resolution) * resolution
    return stepped


def _collected(truth: Truth, at_s: np.ndarray, clock: Clock | None) -> pl.Series:
    if clock is None:
        return pl.Series("collected", [""] * at_s.size)
    return stamps(truth, at_s, clock=clock).dt.strftime(_STAMPED).alias("collected")
