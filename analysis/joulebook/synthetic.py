"""Made-up studies with known truth: a node in training, a sweep over batch sizes, a campaign of changes.

Everything follows from a seed. What tools would have logged of it is rendered by the ``synthetic_…`` modules of the
formats; every one of them tells of the same truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.optimize import minimize_scalar

from joulebook.synthetic_power import Machine
from joulebook.synthetic_truth import CELL_S, Truth, expected, simulate
from joulebook.synthetic_workload import Loss, PlannedRun, Workload

START_UTC = datetime(2026, 11, 2, 1, 0, tzinfo=UTC)
"""Start of made-up records, where none is given."""

TRAINING = Workload(stall_s=3.2, stall_every=10, checkpoint_s=8.0, checkpoint_every=80)
"""A step of some three seconds that waits for data every half minute and saves every four."""

RUN_SPREAD_RATIO = 0.004
"""Standard deviation between repeats, of power and of step time each."""


def node(
    seed: int,
    *,
    runs: Sequence[PlannedRun] = (
        PlannedRun(run_id="pretrain-1", workload=TRAINING, duration_s=900.0, idle_before_s=600.0),
    ),
    start_utc: datetime = START_UTC,
    machine: Machine | None = None,
    idle_after_s: float = 300.0,
    cell_s: float = 0.05,
) -> Truth:
    """Return a node that idles, trains and idles.

    Parameters
    ----------
    seed
        Seed of all randomness.
    runs
        What is trained when.
    start_utc
        Start of the record.
    machine
        The machine; default a server with two boards.
    idle_after_s
        Quiet time at the end [s].
    cell_s
        Length of a cell of the truth [s].

    Returns
    -------
    Truth
        Power, phases, steps and exact energies.

    Examples
    --------
    >>> truth = node(7)
    >>> truth.runs["run_id"].to_list(), truth.boards["device"].unique().sort().to_list()
    (['pretrain-1'], ['gpu:0', 'gpu:1'])
    """
    drift = ((0.0, 22.6), (900.0, 23.4), (1800.0, 24.1), (3600.0, 24.4))
    return simulate(
        runs,
        seed=seed,
        start_utc=start_utc,
        machine=machine,
        inlet_points=drift,
        idle_after_s=idle_after_s,
        cell_s=cell_s,
    )


@dataclass(frozen=True)
class Sweep:
    """A sweep over batch sizes and what is true of it.

    Parameters
    ----------
    truth
        The record of all runs.
    curve
        One row a batch size, on average over repeats: ``batch_size``, ``step_time_s``, ``energy_per_token_j`` (boards,
        whole run), ``tokens_to_target``, ``energy_to_target_j``, ``mean_power_w``.
    tokens_to_target
        One row a run: ``run_id``, ``tokens_to_target``, as it came out in this repeat.
    best_batch_size
        Where energy to the target is least, between the tested sizes too.
    best_tested
        Where it is least among the tested sizes.
    """

    truth: Truth
    curve: pl.DataFrame
    tokens_to_target: pl.DataFrame
    best_batch_size: float
    best_tested: int


def sweep(
    seed: int,
    *,
    batch_sizes: Sequence[int] = (16, 32, 64, 128, 256, 512, 1024),
    repeats: int = 3,
    critical_batch_size: float = 90.0,
    least_tokens: float = 4.2e8,
    fixed_step_s: float = 0.9,
    per_sample_s: float = 0.0024,
    spread_ratio: float = RUN_SPREAD_RATIO,
    tokens_spread_ratio: float = 0.015,
    duration_s: float = 125.0,
    idle_s: float = 25.0,
    start_utc: datetime = START_UTC,
    cell_s: float = CELL_S,
) -> Sweep:
    """Return runs at several batch sizes: larger batches use the boards better, but need more tokens.

    Parameters
    ----------
    seed
        Seed of all randomness.
    batch_sizes
        Samples in a step, one setting each.
    repeats
        Runs at each setting; the order of runs is drawn.
    critical_batch_size
        Batch size at which twice the least number of tokens is needed [samples].
    least_tokens
        Tokens to the target at the smallest batches.
    fixed_step_s, per_sample_s
        Length of a step [s]: a fixed part, and one in proportion to the batch [s per sample].
    spread_ratio
        Standard deviation between repeats, of power and of step time each, relative.
    tokens_spread_ratio
        Standard deviation between repeats of the tokens to the target, relative; seeds differ by more than machines.
    duration_s, idle_s
        Length of a run and of the quiet before it [s].
    start_utc
        Start of the record.
    cell_s
        Length of a cell of the truth [s].

    Returns
    -------
    Sweep
        One board; runs are called ``bs64-r1`` and the like.

    References
    ----------
    Tokens to the target grow as 1 + b / b_crit: McCandlish et al. 2018, arXiv:1812.06162.

    Examples
    --------
    >>> made = sweep(3, batch_sizes=(32, 128, 512), repeats=1)
    >>> made.truth.runs.height, made.best_tested
    (3, 128)
    """
    machine = Machine(boards=1, board_spread_ratio=0.0)
    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    law = _BatchLaw(critical_batch_size, least_tokens, fixed_step_s, per_sample_s, duration_s)
    settings = [(b, r) for b in batch_sizes for r in range(1, repeats + 1)]
    spreads = np.array([spread_ratio, spread_ratio, tokens_spread_ratio])
    draws = 1.0 + spreads * rng.standard_normal((len(settings), 3))
    runs = [law.run(b, r, d, idle_s=idle_s) for (b, r), d in zip(settings, draws, strict=True)]
    order = rng.permutation(len(runs))
    truth = simulate(
        [runs[i] for i in order], seed=seed, start_utc=start_utc, machine=machine, idle_after_s=idle_s, cell_s=cell_s
    )
    needed = [law.tokens_to_target(b) * float(d[2]) for (b, _), d in zip(settings, draws, strict=True)]
    curve = pl.DataFrame([law.point(b, machine, cell_s) for b in batch_sizes])
    tested = curve.sort("energy_to_target_j")["batch_size"][0]
    return Sweep(
        truth,
        curve,
        pl.DataFrame({"run_id": [r.run_id for r in runs], "tokens_to_target": needed}),
        law.best(machine, cell_s, between=(min(batch_sizes), max(batch_sizes))),
        int(tested),
    )


@dataclass(frozen=True)
class _BatchLaw:
    """How a step and the tokens to the target depend on the batch size."""

    critical_batch_size: float
    least_tokens: float
    fixed_step_s: float
    per_sample_s: float
    duration_s: float

    def run(self, batch_size: int, repeat: int, draw: npt.NDArray[np.float64], *, idle_s: float) -> PlannedRun:
        """Return one repeat, whose power and times differ by the factors that were drawn."""
        return PlannedRun(
            run_id=f"bs{batch_size}-r{repeat}", workload=self.workload(batch_size), duration_s=self.duration_s,
            idle_before_s=idle_s, labels={"repeat": repeat}, power_factor=float(draw[0]), time_factor=float(draw[1]),
        )  # fmt: skip

    def workload(self, batch_size: float) -> Workload:
        """Return the step at a batch size; the board is busier the less of a step is fixed."""
        step_s = self.fixed_step_s + self.per_sample_s * batch_size
        busy = self.per_sample_s * batch_size / step_s
        return Workload(
            forward_s=0.30 * step_s,
            backward_s=0.52 * step_s,
            grad_sync_s=0.0,
            optimizer_s=0.18 * step_s,
            setup_s=6.0,
            load_factor=0.42 + 0.58 * busy,
            batch_size=round(batch_size),
            tokens_per_sample=512,
            loss=Loss(scale=5.0, exponent=0.12, unit_tokens=512.0),
        )

    def tokens_to_target(self, batch_size: float) -> float:
        """Return the tokens to the target on average."""
        return self.least_tokens * (1.0 + batch_size / self.critical_batch_size)

    def point(self, batch_size: float, machine: Machine, cell_s: float) -> dict[str, float]:
        """Return what is true of a batch size on average over repeats."""
        work = self.workload(batch_size)
        plan = PlannedRun(run_id="x", workload=work, duration_s=self.duration_s, idle_before_s=60.0)
        made = expected(plan, machine=machine, cell_s=cell_s)
        steps = made.steps.height
        energy_j = made.energy_j("x", "board")
        seconds = float(made.energies.filter(pl.col("run_id") == "x")["duration_s"][0])
        per_token_j = energy_j / (steps * batch_size * work.tokens_per_sample)
        needed = self.tokens_to_target(batch_size)
        return {
            "batch_size": batch_size,
            "step_time_s": work.compute_step_s,
            "energy_per_token_j": per_token_j,
            "tokens_to_target": needed,
            "energy_to_target_j": per_token_j * needed,
            "mean_power_w": energy_j / seconds,
        }

    def best(self, machine: Machine, cell_s: float, *, between: tuple[float, float]) -> float:
        """Return the batch size of least energy to the target, from a smooth curve through 25 sizes."""
        at = np.geomspace(*between, 25)
        cost = np.log([self.point(float(b), machine, cell_s)["energy_to_target_j"] for b in at])
        smooth = np.polynomial.Polynomial.fit(np.log(at), cost, 5)
        found = minimize_scalar(lambda x: float(smooth(x)), bounds=tuple(np.log(between)), method="bounded")
        return float(np.exp(found.x))
