"""A made-up campaign: a series of changes with known effects, one of which cannot be judged at the node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import polars as pl

from joulebook.synthetic import RUN_SPREAD_RATIO, START_UTC
from joulebook.synthetic_truth import CELL_S, Truth, expected, simulate
from joulebook.synthetic_workload import PlannedRun, Workload

BASELINE = "baseline"

INLET_C = 23.5
"""Temperature at the inlet at which effects are stated [°C]."""


WANDER_C, WANDER_S, WANDER_STEP_S = 0.8, 700.0, 10.0
"""Swing of the inlet within a variant's runs: amplitude [°C], period and resolution [s]. It makes the runs before and
after a change share a range of temperatures, as a campaign over days would."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change of a campaign, on top of those before it.

    Parameters
    ----------
    name
        Value of the label ``variant``.
    compute_factor
        Factor on the length of forward, backward and optimizer.
    sync_factor
        Factor on the length of the gradient exchange.
    stall_factor
        Factor on the length of waits for data.
    load_factor
        Factor on the boards' load.
    inlet_rise_c
        By how much warmer the room has become when it is measured [°C].
    """

    name: str
    compute_factor: float = 1.0
    sync_factor: float = 1.0
    stall_factor: float = 1.0
    load_factor: float = 1.0
    inlet_rise_c: float = 0.0

    def applied(self, work: Workload) -> Workload:
        """Return the workload after the change.

        Examples
        --------
        >>> Change(name="a", sync_factor=0.5).applied(Workload(grad_sync_s=0.4)).grad_sync_s
        0.2
        """
        return replace(
            work,
            forward_s=work.forward_s * self.compute_factor,
            backward_s=work.backward_s * self.compute_factor,
            optimizer_s=work.optimizer_s * self.compute_factor,
            grad_sync_s=work.grad_sync_s * self.sync_factor,
            stall_s=work.stall_s * self.stall_factor,
            load_factor=work.load_factor * self.load_factor,
        )


CHANGES = (
    Change(name="data-pipeline", stall_factor=0.0),
    Change(name="placement", sync_factor=0.35),
    Change(name="recompute", compute_factor=1.05),
    Change(name="rename-buckets"),
    Change(name="low-precision", compute_factor=0.86, inlet_rise_c=5.5),
)
"""A gain, a gain, a cost, nothing, and a gain that is measured in a much warmer room."""


@dataclass(frozen=True)
class Campaign:
    """A campaign and what is true of it.

    Parameters
    ----------
    truth
        The record of all runs.
    order
        Variants in order, from the baseline.
    effects
        One row a change: ``change``, ``board_effect_ratio`` and ``node_effect_ratio`` (energy per token, after / before
        − 1, at equal inlet temperature), ``inlet_overlaps`` (whether before and after were measured at like
        temperatures).
    """

    truth: Truth
    order: tuple[str, ...]
    effects: pl.DataFrame


def campaign(
    seed: int,
    *,
    changes: Sequence[Change] = CHANGES,
    repeats: int = 4,
    work: Workload | None = None,
    spread_ratio: float = RUN_SPREAD_RATIO,
    inlet_drift_c_per_h: float = 0.4,
    duration_s: float = 200.0,
    idle_s: float = 40.0,
    start_utc: datetime = START_UTC,
    cell_s: float = CELL_S,
) -> Campaign:
    """Return runs before and after each change of a series, in a room that slowly warms.

    Parameters
    ----------
    seed
        Seed of all randomness.
    changes
        What is changed, in order; each stays for the rest.
    repeats
        Runs of each variant.
    work
        What the baseline does; default a step that waits for data every six steps.
    spread_ratio
        Standard deviation between repeats, of power and of step time each, relative.
    inlet_drift_c_per_h
        How the inlet warms throughout [°C/h].
    duration_s, idle_s
        Length of a run and of the quiet before it [s].
    start_utc
        Start of the record.
    cell_s
        Length of a cell of the truth [s].

    Returns
    -------
    Campaign
        Two boards and the node; runs are called ``baseline-r1`` and the like.

    Examples
    --------
    >>> made = campaign(5, changes=(Change(name="nothing"),), repeats=1)
    >>> made.order, abs(made.effects["node_effect_ratio"][0]) < 1e-12
    (('baseline', 'nothing'), True)
    """
    rng = np.random.Generator(np.random.PCG64([seed, 2]))
    variants = [(BASELINE, work or Workload(stall_s=3.4, stall_every=6))]
    for change in changes:
        variants.append((change.name, change.applied(variants[-1][1])))
    draws = 1.0 + spread_ratio * rng.standard_normal((len(variants) * repeats, 2))
    each = [(name, variant, repeat) for name, variant in variants for repeat in range(1, repeats + 1)]
    plan = [
        PlannedRun(
            run_id=f"{name}-r{repeat}", workload=variant, duration_s=duration_s, idle_before_s=idle_s,
            labels={"variant": name, "repeat": repeat}, power_factor=float(power), time_factor=float(time),
        )
        for (name, variant, repeat), (power, time) in zip(each, draws, strict=True)
    ]  # fmt: skip
    truth = simulate(
        plan,
        seed=seed,
        start_utc=start_utc,
        inlet_points=_inlet_points(changes, (duration_s + idle_s) * repeats, idle_s, inlet_drift_c_per_h),
        idle_after_s=idle_s,
        cell_s=cell_s,
    )
    return Campaign(
        truth,
        tuple(name for name, _ in variants),
        _effects(variants, changes, truth, duration_s=duration_s, idle_s=idle_s, cell_s=cell_s),
    )


def _inlet_points(
    changes: Sequence[Change], variant_s: float, idle_s: float, drift_c_per_h: float
) -> list[tuple[float, float]]:
    """Return the inlet over time: drift, a swing, and a rise in the idle time before a variant that asks for one."""
    at_s = np.arange(0.0, (len(changes) + 2) * variant_s, WANDER_STEP_S)
    inlet_c = INLET_C + drift_c_per_h * at_s / 3600.0 + WANDER_C * np.sin(2.0 * np.pi * at_s / WANDER_S)
    for number, change in enumerate(changes, start=1):
        inlet_c += np.interp(at_s - number * variant_s, [0.0, idle_s / 2], [0.0, change.inlet_rise_c])
    return list(zip(at_s.tolist(), inlet_c.tolist(), strict=True))


def _effects(
    variants: Sequence[tuple[str, Workload]],
    changes: Sequence[Change],
    truth: Truth,
    *,
    duration_s: float,
    idle_s: float,
    cell_s: float,
) -> pl.DataFrame:
    """Return the effect of each change on energy per token, from runs without noise at one inlet temperature."""
    per_token = []
    for _, variant in variants:
        plan = PlannedRun(run_id="x", workload=variant, duration_s=duration_s, idle_before_s=idle_s)
        made = expected(plan, machine=truth.machine, inlet_c=INLET_C, cell_s=cell_s)
        tokens = float(made.runs["tokens"][0])
        per_token.append([made.energy_j("x", scope) / tokens for scope in ("board", "node")])
    ratio = np.array(per_token[1:]) / np.array(per_token[:-1]) - 1.0
    return pl.DataFrame(
        {
            "change": [c.name for c in changes],
            "board_effect_ratio": ratio[:, 0],
            "node_effect_ratio": ratio[:, 1],
            "inlet_overlaps": [abs(c.inlet_rise_c) < 2.0 for c in changes],
        }
    )
