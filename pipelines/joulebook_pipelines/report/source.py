"""What the page needs of a store, and the rows it reads from it, once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol

import polars as pl

from joulebook import boundaries, schema
from joulebook_pipelines.report.footnotes import Footnotes


class StoreView(Protocol):
    """The part of the store that a report reads."""

    @property
    def study(self) -> Mapping[str, Any]:
        """Effective settings of the study."""

    def table(self, name: str) -> pl.DataFrame:
        """Return a table of the store."""

    def rejects_by_rule(self) -> pl.DataFrame:
        """Return ``path, column_name, rule, cells, first_line, example`` of what was rejected."""

    def measured_power(
        self, channels: pl.DataFrame, *, start_utc: datetime | None = None, end_utc: datetime | None = None
    ) -> pl.DataFrame:
        """Return the power readings of channels (``source_id``, ``device``) on their own clocks."""

    def aligned_runs(self) -> pl.DataFrame:
        """Return the runs with their times on the reference clock."""

    def timeline(
        self, scope: str, points: int = 2000, start_utc: datetime | None = None, end_utc: datetime | None = None
    ) -> pl.DataFrame:
        """Return the total of a scope, thinned: ``ts_utc``, ``lo_w``, ``hi_w``, ``mean_w``."""


@dataclass(frozen=True)
class Source:
    """A store and the rows of it that a page shows, each table read once."""

    store: StoreView
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)

    def rows(self, name: str) -> pl.DataFrame:
        """Return a table of the store."""
        if name not in self.tables:
            self.tables[name] = self.store.table(name)
        return self.tables[name]

    def setting(self, path: str) -> Any:
        """Return a setting by its dotted path, ``None`` where it is not set."""
        value: Any = self.store.study
        if path in value:
            return value[path]
        for part in path.split("."):
            value = value.get(part) if hasattr(value, "get") else getattr(value, part, None)
            if value is None:
                return None
        return value

    @cached_property
    def footnotes(self) -> Footnotes:
        """The findings, numbered."""
        of = self.rows("channels").group_by("device").agg(pl.col("scope").drop_nulls().unique())
        devices = {device: frozenset(scopes) for device, scopes in of.iter_rows()}
        return Footnotes.of(self.rows("findings"), devices)

    @cached_property
    def runs(self) -> list[str]:
        """Runs in order of their start."""
        runs = self.rows("runs").sort("start_utc", "run_id")["run_id"].to_list()
        others = self.rows("results")["run_id"].unique().sort().to_list()
        return runs + [r for r in others if r and r not in runs]

    @cached_property
    def aligned_runs(self) -> pl.DataFrame:
        """Runs with their times on the clock of the pictures, those without a time left out."""
        return self.store.aligned_runs().drop_nulls(["start_utc", "end_utc"]).sort("start_utc", "run_id")

    @cached_property
    def name(self) -> str:
        """Name of the study."""
        return str(self.setting("study.name") or "study")

    @cached_property
    def timezone(self) -> str:
        """Zone in which times are shown."""
        return str(self.setting("study.timezone") or "UTC")

    @cached_property
    def _whole(self) -> dict[tuple[str, str, str], dict[str, Any]]:
        rows = self.rows("results").filter((pl.col("device") == "") & (pl.col("phase") == ""))
        return {(r["run_id"], r["scope"], r["metric"]): r for r in rows.iter_rows(named=True)}

    def result(self, run_id: str, scope: str, metric: str) -> dict[str, Any] | None:
        """Return the row of a number of a whole scope over a whole run."""
        return self._whole.get((run_id, scope, metric))

    def scopes(self, run_id: str, metric: str = "energy_j") -> list[str]:
        """Return the scopes that have a row of that metric, narrow to wide."""
        known = {s for (r, s, m) in self._whole if r == run_id and m == metric}
        return [s for s in schema.SCOPES if s in known]

    def widest(self, run_id: str) -> str | None:
        """Return the widest scope whose energy is known, else the widest that was refused."""
        scopes = self.scopes(run_id)
        known = [s for s in scopes if (self.result(run_id, s, "energy_j") or {}).get("value") is not None]
        return boundaries.leading(known or scopes)

    def beside(self, run_id: str) -> tuple[str, ...]:
        """Return the widest scopes whose energy is known: one, or those that lie beside each other."""
        scopes = self.scopes(run_id)
        return boundaries.widest(
            [s for s in scopes if (self.result(run_id, s, "energy_j") or {}).get("value") is not None]
        )
