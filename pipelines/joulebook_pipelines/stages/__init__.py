"""The steps of the analysis, in order. Each reads the store and writes its own tables."""

from __future__ import annotations

from joulebook_pipelines.stages import clocks, energy, idle, instruments, runs, site
from joulebook_pipelines.stages.context import Context, Numbers, Run, Stage

STAGES: tuple[Stage, ...] = (runs.STAGE, clocks.STAGE, instruments.STAGE, energy.STAGE, idle.STAGE, site.STAGE)
"""In the order in which they depend on each other."""

__all__ = ["STAGES", "Context", "Numbers", "Run", "Stage"]
