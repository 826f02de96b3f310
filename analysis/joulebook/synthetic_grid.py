"""A plan laid on a fine grid of cells: which phase of which run each cell belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook.synthetic_workload import PHASES, PlannedRun, Schedule, schedule

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)

BREATH_C, BREATH_S = 0.15, 240.0
"""Machine rooms breathe as their coolers switch: amplitude [°C] and period [s]."""


@dataclass(frozen=True)
class Cells:
    """The plan laid on the grid.

    Parameters
    ----------
    phase
        Index into ``PHASES``, per cell.
    run
        Number of the run in the plan, -1 between runs, per cell.
    power_factor
        Factor on the boards' load, per cell.
    starts
        First cell of each run.
    schedules
        What each run does when.
    """

    phase: Ints
    run: Ints
    power_factor: Floats
    starts: tuple[int, ...]
    schedules: tuple[Schedule, ...]


@dataclass(frozen=True)
class Stamps:
    """Turns numbers of cells into stamps.

    Parameters
    ----------
    start_utc
        Start of the first cell, with a zone.
    cell_s
        Length of a cell [s], whole microseconds.
    """

    start_utc: datetime
    cell_s: float

    def __post_init__(self) -> None:
        if self.start_utc.tzinfo is None:
            raise ValueError(f"start_utc {self.start_utc} has no zone; give one, e.g. UTC")

    def at(self, cells: Ints) -> pl.Series:
        """Return the stamps at the start of the cells, UTC."""
        first = (self.start_utc - EPOCH_UTC) // timedelta(microseconds=1)
        micros = first + cells.astype(np.int64) * round(self.cell_s * 1e6)
        return pl.Series(micros).cast(pl.Datetime("us")).dt.replace_time_zone("UTC")


def per_phase(values: Mapping[str, float]) -> Floats:
    """Return the values in the order of ``PHASES``, to be looked up by a cell's phase."""
    return np.array([values[p] for p in PHASES])


def inlet_c(points: Sequence[tuple[float, float]], n: int, *, cell_s: float) -> Floats:
    """Return the temperature at the inlet of each cell [°C], from points (seconds, °C) with straight lines between."""
    at_s, value_c = np.array(points, dtype=np.float64).T
    at: Floats = np.interp(np.arange(n) * cell_s, at_s, value_c)
    breathed: Floats = at + BREATH_C * np.sin(2.0 * np.pi * np.arange(n) * cell_s / BREATH_S)
    return breathed


def lay_out(plan: Sequence[PlannedRun], *, cell_s: float, idle_after_s: float, rng: np.random.Generator) -> Cells:
    """Return the phase, run and peculiarities of every cell."""
    phase, run, factor, starts, schedules = [], [], [], [], []
    at = 0
    for number, planned in enumerate(plan):
        idle = round(planned.idle_before_s / cell_s)
        made = schedule(planned, cell_s=cell_s, rng=rng)
        starts.append(at + idle)
        schedules.append(made)
        phase += [np.zeros(idle, dtype=np.int64), np.repeat(made.phase, made.cells)]
        run += [np.full(idle, -1), np.full(made.total_cells, number)]
        factor += [np.ones(idle), np.full(made.total_cells, planned.power_factor * planned.workload.load_factor)]
        at += idle + made.total_cells
    tail = round(idle_after_s / cell_s)
    return Cells(
        np.concatenate([*phase, np.zeros(tail, dtype=np.int64)]),
        np.concatenate([*run, np.full(tail, -1)]),
        np.concatenate([*factor, np.ones(tail)]),
        tuple(starts),
        tuple(schedules),
    )
