"""What a made-up training run does and when: steps cut into phases, stalls, checkpoints, a start that is slower."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

IDLE = "idle"
PHASES = (IDLE, "startup", "data_wait", "forward", "backward", "grad_sync", "optimizer", "checkpoint")
"""Phases of a made-up run; a cell of the truth holds the index into this tuple."""

_STEP_ORDER = ("data_wait", "forward", "backward", "grad_sync", "optimizer", "checkpoint")

BOARD_LOAD = {
    IDLE: 0.0, "startup": 0.22, "data_wait": 0.30, "forward": 0.82, "backward": 0.96, "grad_sync": 0.55,
    "optimizer": 0.62, "checkpoint": 0.18,
}  # fmt: skip
"""Board power of a phase between idle (0) and peak (1). With idle at a tenth of peak, waiting for data draws some 40 %
of peak, inside the 30 to 50 % that stalled boards are known to draw."""

UTILIZATION = {
    IDLE: 0.0, "startup": 0.12, "data_wait": 0.0, "forward": 1.0, "backward": 1.0, "grad_sync": 0.92,
    "optimizer": 0.97, "checkpoint": 0.04,
}  # fmt: skip
"""Share of a phase with a kernel on the board, as the driver counts it."""

SLOW_STEPS = 6
"""Steps at the start that allocate and compile."""

SLOW_FACTOR = 1.5
"""Length of a slow step over that of a usual one."""


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A loss that falls as a power of the tokens seen: floor + scale · (tokens / unit)^-exponent.

    Parameters
    ----------
    floor, scale
        Loss that stays, and what lies above it at one unit of tokens.
    exponent
        Power with which it falls.
    unit_tokens
        Tokens at which ``scale`` holds.
    noise
        Standard deviation between steps.
    """

    floor: float = 1.9
    scale: float = 6.0
    exponent: float = 0.35
    unit_tokens: float = 2.6e5
    noise: float = 0.01

    def at(self, tokens: Floats) -> Floats:
        """Return the loss without noise after that many tokens.

        Examples
        --------
        >>> float(Loss(floor=2.0, scale=6.0).at(np.array([2.6e5]))[0])
        8.0
        """
        fallen: Floats = self.floor + self.scale * (tokens / self.unit_tokens) ** -self.exponent
        return fallen


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What one step costs in time, and how hard it works the boards.

    Parameters
    ----------
    forward_s, backward_s, grad_sync_s, optimizer_s
        Lengths of the phases of a step [s].
    setup_s
        Communicator set-up before the first step [s].
    stall_s, stall_every
        Length of a wait for data [s], and steps from one to the next; 0 steps for none.
    checkpoint_s, checkpoint_every
        Length of a checkpoint [s], and steps from one to the next; 0 steps for none.
    load_factor
        Factor on the boards' load while they compute.
    jitter_ratio, wait_jitter_ratio
        Standard deviations of a step's length, and of the lengths of set-up and stalls, relative.
    batch_size
        Samples in a step.
    tokens_per_sample
        Tokens in a sample.
    loss
        How the loss falls.
    """

    forward_s: float = 0.9
    backward_s: float = 1.5
    grad_sync_s: float = 0.45
    optimizer_s: float = 0.15
    setup_s: float = 12.0
    stall_s: float = 0.0
    stall_every: int = 0
    checkpoint_s: float = 0.0
    checkpoint_every: int = 0
    load_factor: float = 1.0
    jitter_ratio: float = 0.01
    wait_jitter_ratio: float = 0.1
    batch_size: int = 128
    tokens_per_sample: int = 2048
    loss: Loss = field(default_factory=Loss)

    @property
    def tokens_per_step(self) -> int:
        """Tokens in one step."""
        return self.batch_size * self.tokens_per_sample

    @property
    def compute_step_s(self) -> float:
        """Length of a step without stalls and checkpoints [s]."""
        return self.forward_s + self.backward_s + self.grad_sync_s + self.optimizer_s

    @property
    def mean_step_s(self) -> float:
        """Mean length of a step, with its share of stalls and checkpoints [s]."""
        stall_s = self.stall_s / self.stall_every if self.stall_every else 0.0
        checkpoint_s = self.checkpoint_s / self.checkpoint_every if self.checkpoint_every else 0.0
        return self.compute_step_s + stall_s + checkpoint_s

    def steady(self) -> Workload:
        """Return the same work without its jitter."""
        return replace(self, jitter_ratio=0.0, wait_jitter_ratio=0.0, loss=replace(self.loss, noise=0.0))

    def steps_within(self, duration_s: float) -> int:
        """Return how many steps fit into a run of that length, at least one.

        Examples
        --------
        >>> Workload(setup_s=12.0).steps_within(312.0)
        97
        """
        slow_s = SLOW_STEPS * (SLOW_FACTOR - 1) * self.compute_step_s
        return max(1, int(np.floor((duration_s - self.setup_s - slow_s) / self.mean_step_s + 1e-9)))


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run that shall happen.

    Parameters
    ----------
    run_id
        Name.
    workload
        What it does.
    duration_s
        About how long it lasts [s]; it ends with a whole step.
    idle_before_s
        Quiet time before it [s].
    labels
        Further labels.
    power_factor, time_factor
        What is peculiar to this run: factors on its load and on the length of its steps.
    """

    run_id: str
    workload: Workload
    duration_s: float
    idle_before_s: float
    labels: Mapping[str, str | int] = field(default_factory=dict)
    power_factor: float = 1.0
    time_factor: float = 1.0


@dataclass(frozen=True)
class Schedule:
    """A run cut into stretches of one phase each, in whole cells of the truth.

    Parameters
    ----------
    phase
        Index into ``PHASES`` for each stretch.
    cells
        Length of each stretch [cells].
    step_end
        Cells from the run's start to the end of each step.
    setup_cells
        Length of the set-up [cells]; the first step starts there.
    """

    phase: Ints
    cells: Ints
    step_end: Ints
    setup_cells: int

    @property
    def total_cells(self) -> int:
        """Length of the run [cells]."""
        return int(self.cells.sum())


def schedule(run: PlannedRun, *, cell_s: float, rng: np.random.Generator) -> Schedule:
    """Return when the run does what.

    Edges are rounded to cells from the accumulated time, so that rounding does not add up and every phase is known
    exactly.

    Parameters
    ----------
    run
        The run.
    cell_s
        Length of a cell [s].
    rng
        Source of the jitter.

    Returns
    -------
    Schedule
        Stretches in order, none empty.

    Examples
    --------
    >>> plan = PlannedRun(run_id="a", workload=Workload(), duration_s=60.0, idle_before_s=0.0)
    >>> made = schedule(plan, cell_s=0.1, rng=np.random.default_rng(1))
    >>> int(made.step_end[-1]) == made.total_cells
    True
    """
    lengths = _step_lengths_s(run, rng=rng)
    setup_s = run.workload.setup_s * float(np.exp(run.workload.wait_jitter_ratio * rng.standard_normal()))
    edges = np.rint((setup_s + np.cumsum(lengths.ravel())) / cell_s).astype(np.int64)
    setup_cells = round(setup_s / cell_s)
    codes = np.tile([PHASES.index(p) for p in _STEP_ORDER], len(lengths))
    phase = np.concatenate([[PHASES.index("startup")], codes])
    cells = np.diff(np.concatenate([[0, setup_cells], edges]))
    return Schedule(phase[cells > 0], cells[cells > 0], edges[len(_STEP_ORDER) - 1 :: len(_STEP_ORDER)], setup_cells)


def _step_lengths_s(run: PlannedRun, *, rng: np.random.Generator) -> Floats:
    """Return the lengths of the phases of each step [s], shape (steps, phases in the order of a step)."""
    w = run.workload
    steps = w.steps_within(run.duration_s)
    number = np.arange(1, steps + 1)
    stretch = run.time_factor * (1.0 + w.jitter_ratio * rng.standard_normal(steps))
    stretch = np.where(number <= SLOW_STEPS, SLOW_FACTOR, 1.0) * np.clip(stretch, 0.5, 2.0)
    stalled = (number % w.stall_every == 0) if w.stall_every else np.zeros(steps, dtype=bool)
    saved = (number % w.checkpoint_every == 0) if w.checkpoint_every else np.zeros(steps, dtype=bool)
    wait_s = w.stall_s * (1.0 + w.wait_jitter_ratio * rng.standard_normal(steps))
    return np.column_stack(
        [
            np.where(stalled, np.maximum(wait_s, 0.0), 0.0),
            w.forward_s * stretch,
            w.backward_s * stretch,
            w.grad_sync_s * stretch,
            w.optimizer_s * stretch,
            np.where(saved, w.checkpoint_s, 0.0),
        ]
    )
