"""What truly happened in a made-up log: power on a fine grid of cells, runs, steps and phases, and exact energies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import synthetic_grid, synthetic_tables
from joulebook.synthetic_grid import EPOCH_UTC, Cells, Stamps, per_phase
from joulebook.synthetic_power import Machine, Physics, board, node
from joulebook.synthetic_workload import BOARD_LOAD, PlannedRun

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CELL_S = 0.1
"""Length of a cell [s]: short against every phase, long enough for an hour to stay small."""

CPU_BUSY = {
    "idle": 0.0, "startup": 0.9, "data_wait": 1.0, "forward": 0.7, "backward": 0.7, "grad_sync": 0.75,
    "optimizer": 0.7, "checkpoint": 0.95,
}  # fmt: skip
"""How busy the processors are in a phase: they feed data throughout, and do little else than wait for it."""


@dataclass(frozen=True)
class Truth:
    """What truly happened, on the clock that every other clock is measured against.

    Parameters
    ----------
    start_utc
        Start of the first cell.
    cell_s
        Length of a cell [s]; powers are means over it, so energies are plain sums.
    machine
        The machine.
    host
        Name of the node.
    boards
        One row a board and cell: ``device``, ``ts_utc`` (start of the cell), ``power_w``, ``utilization_ratio``,
        ``memory_used_bytes``, ``temperature_c``, ``sm_clock_hz``.
    node
        One row a cell: ``ts_utc``, ``power_w`` (at the wall), ``board_power_w``, ``cpu_power_w``, ``dram_power_w``,
        ``fan_power_w``, ``inlet_c``, ``run_id`` ('' between runs), ``phase``.
    runs, steps, phases
        Tables of these names as the store has them.
    energies
        Exact energies [J]: ``run_id`` ('' between runs), ``scope``, ``device`` ('' = all), ``phase`` ('' = all),
        ``duration_s``, ``energy_j``.
    warmups
        One row a run: ``run_id``, ``setup_s``, and ``steady_lo_s``, ``steady_hi_s`` between which the boards become
        steady [s after the run's start].
    """

    start_utc: datetime
    cell_s: float
    machine: Machine
    host: str
    boards: pl.DataFrame
    node: pl.DataFrame
    runs: pl.DataFrame
    steps: pl.DataFrame
    phases: pl.DataFrame
    energies: pl.DataFrame
    warmups: pl.DataFrame

    @property
    def duration_s(self) -> float:
        """Length of the whole record [s]."""
        return self.node.height * self.cell_s

    def energy_j(self, run_id: str, scope: str, *, device: str = "", phase: str = "") -> float:
        """Return the exact energy of a run [J].

        Raises
        ------
        KeyError
            There is no such run, scope, device or phase.
        """
        want = {"run_id": run_id, "scope": scope, "device": device, "phase": phase}
        found = self.energies.filter(*(pl.col(k) == v for k, v in want.items()))
        if found.is_empty():
            raise KeyError(f"no energy for {want}")
        return float(found["energy_j"][0])


def simulate(
    plan: Sequence[PlannedRun],
    *,
    seed: int,
    start_utc: datetime,
    machine: Machine | None = None,
    inlet_points: Sequence[tuple[float, float]] = ((0.0, 23.0),),
    idle_after_s: float = 60.0,
    cell_s: float = CELL_S,
    host: str = "node",
) -> Truth:
    """Return what happens when the plan is carried out.

    Parameters
    ----------
    plan
        Runs in order.
    seed
        Seed of all randomness.
    start_utc
        Start, with a zone.
    machine
        The machine; default a server with two boards.
    inlet_points
        Temperature at the inlet: (seconds after the start, °C), straight lines between.
    idle_after_s
        Quiet time after the last run [s].
    cell_s
        Length of a cell [s], whole microseconds.
    host
        Name of the node.

    Returns
    -------
    Truth
        The same for the same arguments.

    Raises
    ------
    ValueError
        ``start_utc`` has no zone.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> from joulebook.synthetic_workload import PlannedRun, Workload
    >>> plan = [PlannedRun(run_id="a", workload=Workload(), duration_s=60.0, idle_before_s=10.0)]
    >>> truth = simulate(plan, seed=1, start_utc=datetime(2026, 11, 2, tzinfo=UTC))
    >>> truth.energy_j("a", "node") > truth.energy_j("a", "board")
    True
    """
    machine = machine or Machine()
    streams = np.random.SeedSequence(seed).spawn(3 + machine.boards)
    rngs = [np.random.Generator(np.random.PCG64(s)) for s in streams]
    cells = synthetic_grid.lay_out(plan, cell_s=cell_s, idle_after_s=idle_after_s, rng=rngs[0])
    inlet_c = synthetic_grid.inlet_c(inlet_points, cells.phase.size, cell_s=cell_s)
    gains = 1.0 + machine.board_spread_ratio * rngs[1].standard_normal(machine.boards)
    physics = _physics(cells, inlet_c, machine, gains, cell_s=cell_s, board_rngs=rngs[3:], node_rng=rngs[2])
    return _truth(plan, cells, physics, Stamps(start_utc, cell_s), machine=machine, host=host, rng=rngs[1])


def expected(
    run: PlannedRun,
    *,
    machine: Machine | None = None,
    inlet_c: float = 23.0,
    cell_s: float = CELL_S,
) -> Truth:
    """Return what happens on average in one run: no noise, no jitter, boards alike, the inlet at one temperature.

    Examples
    --------
    >>> from joulebook.synthetic_workload import PlannedRun, Workload
    >>> plan = PlannedRun(run_id="a", workload=Workload(), duration_s=60.0, idle_before_s=10.0)
    >>> expected(plan).runs["run_id"].to_list()
    ['a']
    """
    machine = machine or Machine()
    rng = np.random.Generator(np.random.PCG64(0))
    plan = [replace(run, workload=run.workload.steady(), power_factor=1.0, time_factor=1.0)]
    cells = synthetic_grid.lay_out(plan, cell_s=cell_s, idle_after_s=0.0, rng=rng)
    inlet = np.full(cells.phase.size, inlet_c)
    none = [None] * machine.boards
    physics = _physics(cells, inlet, machine, np.ones(machine.boards), cell_s=cell_s, board_rngs=none, node_rng=None)
    return _truth(plan, cells, physics, Stamps(EPOCH_UTC, cell_s), machine=machine, host="node", rng=rng)


def _physics(
    cells: Cells,
    inlet_c: Floats,
    machine: Machine,
    gains: Floats,
    *,
    cell_s: float,
    board_rngs: Sequence[np.random.Generator | None],
    node_rng: np.random.Generator | None,
) -> Physics:
    """Return the power of boards and node for the phases of the cells."""
    load = per_phase(BOARD_LOAD)[cells.phase] * cells.power_factor
    boards = tuple(
        board(load, inlet_c, machine, gain=gain, cell_s=cell_s, rng=rng)
        for gain, rng in zip(gains, board_rngs, strict=True)
    )
    board_w = np.sum([b.power_w for b in boards], axis=0)
    wall = node(board_w, per_phase(CPU_BUSY)[cells.phase], inlet_c, machine, cell_s=cell_s, rng=node_rng)
    return Physics(boards, board_w, wall, inlet_c)


def _truth(
    plan: Sequence[PlannedRun],
    cells: Cells,
    physics: Physics,
    when: Stamps,
    *,
    machine: Machine,
    host: str,
    rng: np.random.Generator,
) -> Truth:
    """Return the frames of what happened."""
    grid = synthetic_tables.node_frame(plan, cells, physics, when)
    runs, steps, phases = synthetic_tables.work(plan, cells, when, host=host, rng=rng)
    return Truth(
        start_utc=when.start_utc,
        cell_s=when.cell_s,
        machine=machine,
        host=host,
        boards=synthetic_tables.board_frame(cells, physics, grid["ts_utc"]),
        node=grid,
        runs=runs,
        steps=steps,
        phases=phases,
        energies=synthetic_tables.energies(grid, physics, cell_s=when.cell_s),
        warmups=synthetic_tables.warmups(plan, cells, physics, machine, cell_s=when.cell_s),
    )
