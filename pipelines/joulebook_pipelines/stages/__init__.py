"""The steps of the analysis, in order. Each reads the store and writes its own tables."""

from __future__ import annotations

from joulebook_pipelines.stages import clocks, comparisons, energy, idle, instruments, phases, runs, site, steady
from joulebook_pipelines.stages.context import Context, Numbers, Run, Stage

STAGES: tuple[Stage, ...] = (
    runs.STAGE,
    clocks.STAGE,
    instruments.STAGE,
    energy.STAGE,
    idle.STAGE,
    site.STAGE,
    steady.STAGE,
    phases.STAGE,
    comparisons.SWEEPS,
    comparisons.CAMPAIGNS,
)
"""In the order in which they depend on each other."""

__all__ = ["STAGES", "Context", "Numbers", "Run", "Stage"]
