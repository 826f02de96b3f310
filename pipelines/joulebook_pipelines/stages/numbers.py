"""What a stage has found so far: rows of results, of the parts of their uncertainty, and findings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import polars as pl

from joulebook import schema
from joulebook.findings import Estimate, Finding


@dataclass
class Numbers:
    """Rows of ``results``, ``uncertainties`` and ``findings`` that a stage has made so far."""

    results: list[dict[str, object]] = field(default_factory=list)
    parts: list[dict[str, object]] = field(default_factory=list)
    findings: list[tuple[str, Finding]] = field(default_factory=list)

    def add(
        self,
        run_id: str,
        scope: str,
        metric: str,
        estimate: Estimate,
        *,
        device: str = "",
        phase: str = "",
        coverage_ratio: float | None = None,
    ) -> None:
        """Add one number."""
        self.results.append({
            "run_id": run_id, "scope": scope, "device": device, "phase": phase, "metric": metric, "value": estimate.value,
            "lo": estimate.lo, "hi": estimate.hi, "n": estimate.n, "coverage_ratio": coverage_ratio, "method": estimate.method,
            "reason": estimate.reason,
        })  # fmt: skip

    def part(self, run_id: str, scope: str, device: str, metric: str, part: str, lo: float, hi: float) -> None:
        """Add a named part of a number's uncertainty."""
        self.parts.append({
            "run_id": run_id, "scope": scope, "device": device, "metric": metric, "part": part, "lo": lo, "hi": hi,
        })  # fmt: skip

    def find(self, run_id: str, findings: Iterable[Finding]) -> None:
        """Add findings about a run, or about the study where ``run_id`` is empty."""
        self.findings += [(run_id, f) for f in findings]

    def frames(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the rows of ``results`` and of ``uncertainties``."""
        frames = []
        for name, rows in (("results", self.results), ("uncertainties", self.parts)):
            columns = {c: t for c, t in schema.table(name).schema.items() if c != "stage"}
            frames.append(pl.DataFrame(rows, schema=columns))
        return frames[0], frames[1]
