"""What ``nvidia-smi --query-gpu=… --format=csv -l`` would have logged of a made-up record, with its usual flaws."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import polars as pl

from joulebook.synthetic_truth import Truth
from joulebook.synthetic_witness import UTC_CLOCK, Clock, decimal, lines, mean_before, stamps, ticks_s

FIELDS = (
    "timestamp", "index", "uuid", "name", "power.draw", "utilization.gpu", "temperature.gpu", "clocks.current.sm",
    "memory.used",
)  # fmt: skip
"""Fields that can be asked for, in their usual order."""

_UNITS = {
    "power.draw": "W", "power.draw.instant": "W", "power.draw.average": "W", "utilization.gpu": "%",
    "clocks.current.sm": "MHz", "memory.used": "MiB",
}  # fmt: skip

_MAY_BE_MISSING = ("power.draw", "power.draw.instant", "power.draw.average", "utilization.gpu", "temperature.gpu")

CARD_LAG_S = 0.002
"""The tool asks one card after the other [s]."""


def query_csv(
    truth: Truth,
    *,
    period_s: float = 1.0,
    window_s: float = 1.0,
    jitter_s: float = 0.002,
    clock: Clock = UTC_CLOCK,
    fields: Sequence[str] = FIELDS,
    units: bool = True,
    decimals: int = 2,
    restarts: Sequence[tuple[float, float]] = (),
    gaps: Sequence[tuple[float, float]] = (),
    missing: int = 0,
    cut_characters: int = 0,
    seed: int = 0,
) -> str:
    """Return the log.

    Parameters
    ----------
    truth
        What happened.
    period_s, jitter_s
        From one look to the next, and by how much a look is late [s].
    window_s
        Averaging window of the power reading [s]; 0 = instantaneous.
    clock
        Clock and zone of the stamps.
    fields
        What is asked for, in this order; also ``power.draw.instant`` and ``power.draw.average``.
    units
        Whether cells carry their unit, as without ``nounits``.
    decimals
        Decimals of the power.
    restarts
        (at, pause): the tool stopped at that time and was started again after the pause [s], which repeats the header.
    gaps
        (at, length): nothing was written [s].
    missing
        How many cells say ``[N/A]``.
    cut_characters
        How many characters of the last line were never written.
    seed
        Seed of jitter and of the missing cells.

    Returns
    -------
    str
        The file's text.

    Raises
    ------
    ValueError
        A field is unknown.

    Examples
    --------
    >>> from joulebook import synthetic
    >>> print(query_csv(synthetic.node(1), fields=("timestamp", "index", "power.draw")).splitlines()[1])
    2026/11/02 01:00:00.002, 0, 67.44 W
    """
    known = {*FIELDS, *_UNITS}
    unknown = [f for f in fields if f not in known]
    if unknown:
        raise ValueError(f"fields has {unknown[0]!r}; it may have {', '.join(sorted(known))}")
    at = ticks_s(truth, period_s=period_s, jitter_s=jitter_s, first_s=jitter_s, seed=seed)
    out = np.zeros(at.size, dtype=bool)
    for start_s, length_s in (*restarts, *gaps):
        out |= (at >= start_s) & (at < start_s + length_s)
    at = at[~out]
    cards = [
        _card(truth, number, at + CARD_LAG_S * number, window_s=window_s, clock=clock, decimals=decimals)
        for number in range(truth.machine.boards)
    ]
    table = pl.concat(c.with_row_index("tick") for c in cards).sort("tick", "index", maintain_order=True)
    tick_s = at[table["tick"].to_numpy()]
    cells = _with_units(table.select(fields), units=units)
    cells = _with_missing(cells, missing, seed=seed)
    header = ", ".join(f"{f} [{_UNITS[f]}]" if f in _UNITS else f for f in fields) + "\n"
    edges = [0, *(int(np.searchsorted(tick_s, start_s)) for start_s, _ in sorted(restarts)), cells.height]
    parts = (header + lines(cells[a:b], ", ") for a, b in pairwise(edges))
    text = "".join(parts)
    return text[:-cut_characters] if cut_characters else text


def _card(truth: Truth, number: int, at_s: np.ndarray, *, window_s: float, clock: Clock, decimals: int) -> pl.DataFrame:
    """Return the cells of one card, as texts without units."""
    board = truth.boards.filter(pl.col("device") == f"gpu:{number}")
    power = mean_before(board["power_w"], at_s, window_s=window_s, cell_s=truth.cell_s)
    now = {
        c: mean_before(board[c], at_s, window_s=0.0, cell_s=truth.cell_s)
        for c in ("temperature_c", "sm_clock_hz", "memory_used_bytes")
    }
    # The driver counts utilisation over the past second or sixth of it; a second is what data-centre cards do.
    busy = mean_before(board["utilization_ratio"], at_s, window_s=1.0, cell_s=truth.cell_s)
    instant = mean_before(board["power_w"], at_s, window_s=0.0, cell_s=truth.cell_s)
    values = pl.DataFrame(
        {
            "power.draw": power,
            "power.draw.average": power,
            "power.draw.instant": instant,
            "utilization.gpu": busy * 100.0,
            "temperature.gpu": now["temperature_c"],
            "clocks.current.sm": now["sm_clock_hz"] / 1e6,
            "memory.used": now["memory_used_bytes"] / 2**20,
        }
    )
    watts = [c for c in values.columns if c.startswith("power")]
    return values.select(
        stamps(truth, at_s, clock=clock).dt.strftime("%Y/%m/%d %H:%M:%S%.3f").alias("timestamp"),
        pl.lit(str(number)).alias("index"),
        pl.lit(f"GPU-{number:08x}-5eed-4a11-8c0d-{number:012x}").alias("uuid"),
        pl.lit(truth.machine.model).alias("name"),
        *(decimal(c, decimals if c in watts else 0) for c in values.columns),
    )


def _with_units(cells: pl.DataFrame, *, units: bool) -> pl.DataFrame:
    return cells.with_columns(pl.col(f) + f" {_UNITS[f]}" for f in cells.columns if units and f in _UNITS)


def _with_missing(cells: pl.DataFrame, missing: int, *, seed: int) -> pl.DataFrame:
    """Return the cells with some of them, drawn without replacement, saying that there is no value."""
    at_risk = [f for f in cells.columns if f in _MAY_BE_MISSING]
    rng = np.random.Generator(np.random.PCG64([seed, 12]))
    hit = np.zeros(cells.height * len(at_risk), dtype=bool)
    hit[rng.choice(hit.size, size=missing, replace=False)] = True
    mask = hit.reshape(cells.height, len(at_risk))
    return cells.with_columns(
        pl.when(pl.Series(mask[:, k])).then(pl.lit("[N/A]")).otherwise(pl.col(f)).alias(f)
        for k, f in enumerate(at_risk)
    )
