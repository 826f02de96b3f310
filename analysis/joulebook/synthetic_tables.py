"""The tables of a made-up record: power by cell, runs, steps and phases, exact energies, and when runs are warm."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from joulebook import schema
from joulebook.synthetic_grid import Cells, Stamps, per_phase
from joulebook.synthetic_power import Machine, Physics
from joulebook.synthetic_workload import PHASES, UTILIZATION, PlannedRun, Schedule

ORIGIN = "synthetic"

IDLE_MEMORY_BYTES = 3.0 * 2**30
BUSY_MEMORY_BYTES = 61.0 * 2**30

STEADY_RATIO_LO, STEADY_RATIO_HI = 0.02, 0.005
"""A run counts as warm between the moment that its power has come within 2 % of its level, and within 0.5 %."""


def node_frame(plan: Sequence[PlannedRun], cells: Cells, physics: Physics, when: Stamps) -> pl.DataFrame:
    """Return the power of the node and its parts, one row a cell."""
    return pl.DataFrame(
        {
            "ts_utc": when.at(np.arange(cells.phase.size)),
            "power_w": physics.node.power_w,
            "board_power_w": physics.board_w,
            "cpu_power_w": physics.node.cpu_power_w,
            "dram_power_w": physics.node.dram_power_w,
            "fan_power_w": physics.node.fan_power_w,
            "inlet_c": physics.inlet_c,
            "run_id": pl.Series(["", *(r.run_id for r in plan)]).gather(cells.run + 1),
            "phase": pl.Series(PHASES).gather(cells.phase),
        }
    )


def board_frame(cells: Cells, physics: Physics, ts_utc: pl.Series) -> pl.DataFrame:
    """Return what is true of each board, one row a board and cell."""
    memory = np.where(cells.phase > 0, BUSY_MEMORY_BYTES, IDLE_MEMORY_BYTES)
    return pl.concat(
        pl.DataFrame(
            {
                "ts_utc": ts_utc,
                "power_w": b.power_w,
                "utilization_ratio": per_phase(UTILIZATION)[cells.phase],
                "memory_used_bytes": memory,
                "temperature_c": b.temperature_c,
                "sm_clock_hz": b.sm_clock_hz,
            }
        ).select(pl.lit(f"gpu:{number}").alias("device"), pl.all())
        for number, b in enumerate(physics.boards)
    )


def work(
    plan: Sequence[PlannedRun], cells: Cells, when: Stamps, *, host: str, rng: np.random.Generator
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return runs, steps and phases as the store has them."""
    laid = list(zip(plan, cells.starts, cells.schedules, strict=True))
    runs = pl.DataFrame([_run(planned, start, made, when, host) for planned, start, made in laid])
    steps = pl.concat(_steps(planned, start, made, when, rng) for planned, start, made in laid)
    phases = pl.concat(_phases(planned, start, made, when) for planned, start, made in laid)
    return schema.conform(runs, "runs"), schema.conform(steps, "steps"), schema.conform(phases, "phases")


def _run(planned: PlannedRun, start: int, made: Schedule, when: Stamps, host: str) -> Mapping[str, object]:
    edges = when.at(np.array([start, start + made.total_cells]))
    steps = made.step_end.size
    return {
        "run_id": planned.run_id,
        "host": host,
        "start_utc": edges[0],
        "end_utc": edges[1],
        "origin": ORIGIN,
        "tokens": float(steps * planned.workload.tokens_per_step),
        "samples": float(steps * planned.workload.batch_size),
        "batch_size": float(planned.workload.batch_size),
        "labels": json.dumps(dict(planned.labels)),
    }


def _steps(planned: PlannedRun, start: int, made: Schedule, when: Stamps, rng: np.random.Generator) -> pl.DataFrame:
    work, ends = planned.workload, start + made.step_end
    tokens = np.full(ends.size, float(work.tokens_per_step))
    return pl.DataFrame(
        {
            "run_id": [planned.run_id] * ends.size,
            "step": np.arange(1, ends.size + 1),
            "start_utc": when.at(np.concatenate([[start + made.setup_cells], ends[:-1]])),
            "end_utc": when.at(ends),
            "tokens": tokens,
            "loss": work.loss.at(np.cumsum(tokens)) + work.loss.noise * rng.standard_normal(ends.size),
            "batch_size": np.full(ends.size, float(work.batch_size)),
        }
    )


def _phases(planned: PlannedRun, start: int, made: Schedule, when: Stamps) -> pl.DataFrame:
    edges = when.at(start + np.concatenate([[0], np.cumsum(made.cells)]))
    return pl.DataFrame(
        {
            "run_id": [planned.run_id] * made.phase.size,
            "phase": pl.Series(PHASES).gather(made.phase),
            "start_utc": edges[:-1],
            "end_utc": edges[1:],
            "origin": [ORIGIN] * made.phase.size,
        }
    )


_SCOPES = {"board_power_w": "board", "cpu_power_w": "package", "dram_power_w": "dram", "power_w": "node"}


def energies(grid: pl.DataFrame, physics: Physics, *, cell_s: float) -> pl.DataFrame:
    """Return exact energies by run, scope, board and phase, and over all phases."""
    wide = grid.select("run_id", "phase", *_SCOPES).with_columns(
        pl.Series(f"gpu:{number}", b.power_w) for number, b in enumerate(physics.boards)
    )
    powers = [c for c in wide.columns if c not in ("run_id", "phase")]
    by_phase = wide.group_by("run_id", "phase", maintain_order=True).agg(
        (pl.len() * cell_s).alias("duration_s"), *(pl.col(c).sum() * cell_s for c in powers)
    )
    whole = by_phase.group_by("run_id", maintain_order=True).agg(pl.exclude("phase").sum())
    both = pl.concat([whole.with_columns(phase=pl.lit("")).select(by_phase.columns), by_phase])
    long = both.unpivot(on=powers, index=["run_id", "phase", "duration_s"], value_name="energy_j")
    device = pl.when(pl.col("variable").str.starts_with("gpu:")).then("variable").otherwise(pl.lit(""))
    return long.select(
        "run_id",
        pl.col("variable").replace_strict(_SCOPES, default="board").alias("scope"),
        device.alias("device"),
        "phase",
        "duration_s",
        "energy_j",
    )


def warmups(
    plan: Sequence[PlannedRun], cells: Cells, physics: Physics, machine: Machine, *, cell_s: float
) -> pl.DataFrame:
    """Return when the boards of each run are steady: the rise with heat is an exponential of known size."""
    rows = []
    for planned, start, laid in zip(plan, cells.starts, cells.schedules, strict=True):
        end = start + laid.total_cells
        setup_end = start + laid.setup_cells
        level_w = float(physics.board_w[(setup_end + end) // 2 : end].mean())
        already_c = float(np.mean([b.temperature_c[setup_end] - b.temperature_c[start] for b in physics.boards]))
        rest_c = machine.heating_c_per_w * machine.idle_w
        # Heat follows the power without leakage, which in turn grows with heat: solved for the level with both.
        cool_w = level_w / machine.boards + machine.leakage_w_per_c * rest_c
        heat_c = cool_w / (1.0 / machine.heating_c_per_w + machine.leakage_w_per_c)
        rise = machine.leakage_w_per_c * machine.boards * max(heat_c - rest_c - already_c, 0.0) / level_w
        lo, hi = (machine.heating_s * np.log(max(rise / r, 1.0)) for r in (STEADY_RATIO_LO, STEADY_RATIO_HI))
        setup_s = laid.setup_cells * cell_s
        rows.append(
            {"run_id": planned.run_id, "setup_s": setup_s, "steady_lo_s": setup_s + lo, "steady_hi_s": setup_s + hi}
        )
    return pl.DataFrame(rows)
