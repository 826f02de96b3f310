"""The steps of the analysis, in order. Each reads the store and writes its own tables."""

from __future__ import annotations

from joulebook_pipelines.stages import (
    calibration,
    clocks,
    comparisons,
    energy,
    idle,
    insight,
    instruments,
    phases,
    reconciliation,
    runs,
    site,
    steady,
    stored,
    waste,
)
from joulebook_pipelines.stages.context import Context, Run, Stage
from joulebook_pipelines.stages.numbers import Numbers

STAGES: tuple[Stage, ...] = (
    runs.STAGE,
    clocks.STAGE,
    instruments.STAGE,
    energy.STAGE,
    stored.STAGE,
    idle.STAGE,
    site.STAGE,
    steady.STAGE,
    phases.STAGE,
    waste.STAGE,
    calibration.STAGE,
    reconciliation.STAGE,
    insight.CONVERGENCE,
    insight.DRIVERS_STAGE,
    insight.DAYS,
    insight.SHARING,
    comparisons.SWEEPS,
    comparisons.CAMPAIGNS,
)
"""In the order in which they depend on each other."""

__all__ = ["STAGES", "Context", "Numbers", "Run", "Stage"]
