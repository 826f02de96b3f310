"""What every stage works on, and how its findings and numbers reach the store."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import polars as pl

from joulebook import clock_maps, counter_power, rules, schema, totals
from joulebook.findings import Estimate
from joulebook_pipelines.config_study import Study
from joulebook_pipelines.stages import counter_ranges
from joulebook_pipelines.stages.numbers import Numbers
from joulebook_pipelines.store import Store

WHOLE_LOG = "whole log"
"""Origin of a run that nothing tells of: all that was read."""


MARGIN_S = 120.0
"""Readings this far outside of a run are fetched to interpolate at its edges."""

THREADS = os.cpu_count() or 1
"""Series that are worked on side by side; sums over readings do not hold each other up."""

_NONE_FAILED = pl.DataFrame(schema={"device": pl.String, "ts_utc": schema.UTC})

MOST_KEPT_BYTES = 900_000_000
"""Readings of runs, and as many of whole logs, that are kept in memory between stages [bytes]: of eight cards and a meter
each second all of a week, and the powers alone of a month."""


@dataclass(frozen=True)
class Run:
    """A run with its times on the reference clock."""

    run_id: str
    host: str
    start_utc: datetime
    end_utc: datetime
    tokens: float | None
    samples: float | None
    batch_size: float | None
    origin: str = ""
    devices: tuple[str, ...] = ()

    @property
    def duration_s(self) -> float:
        """Length of the run [s]."""
        return (self.end_utc - self.start_utc).total_seconds()


@dataclass(frozen=True)
class Context:
    """What a stage may use: the store, open for writing, and the study's configuration."""

    store: Store
    study: Study
    _kept: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict, repr=False, compare=False)
    _within: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict, repr=False, compare=False)
    _means: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict, repr=False, compare=False)
    _failed: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict, repr=False, compare=False)
    _sizes: dict[bool, int] = field(default_factory=dict, repr=False, compare=False)
    _scopes: dict[str, list[str]] = field(default_factory=dict, repr=False, compare=False)
    _numbers: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict, repr=False, compare=False)

    def renew(self) -> None:
        """Forget scopes and numbers: a stage has written new ones since they were asked for."""
        self._scopes.clear()
        self._numbers.clear()

    def power(self, run: Run, scope: str, *, margin: bool = False) -> pl.DataFrame:
        """Return a run's readings of a scope; every stage that asks again is answered from memory, within bounds.

        Parameters
        ----------
        run, scope
            Which readings.
        margin
            With those up to :data:`MARGIN_S` before and after the run, to interpolate at its edges.
        """
        frame = self._read(run, scope)
        if margin:
            return frame
        place = (run.run_id, scope)
        within = self._within.get(place)
        if within is None:
            within = totals.between(frame, run.start_utc, run.end_utc)
            if place in self._kept:  # a view of what is kept takes no room
                self._within[place] = within
        return within

    def spoken(self, run: Run, scope: str, *, margin: bool = False) -> pl.DataFrame:
        """Return the readings that tell a power, or that end a span of which a counter tells the mean."""
        power = self.power(run, scope, margin=margin)
        if power["energy_counter_j"].null_count() == power.height or not power["power_w"].null_count():
            return totals.told(power)
        place = (run.run_id, scope)
        counted = self._means.get(place)
        if counted is None:
            counted = totals.told(self._counted(self.power(run, scope, margin=True)))
            if place in self._kept:
                self._means[place] = counted
        return counted if margin else totals.between(counted, run.start_utc, run.end_utc)

    def whole(self, scope: str, host: str | None = None) -> pl.DataFrame:
        """Return power and utilisation of a scope over the whole study, where a power is known, of one host or of all."""
        power = self._read(None, scope)
        several = host is not None and "host" in power.columns and power["host"].n_unique() > 1
        return power.filter(pl.col("host") == host) if several else power

    def _speaking(self, scope: str) -> pl.DataFrame:
        """Return power and utilisation over the whole study; counters are read only where a device tells nothing else."""
        power = totals.told(self.store.power(scope=scope, quantities=("power_w", "utilization_ratio")))
        if not self.store.tells("energy_counter_j"):
            return power
        chosen = self.store.table("instruments").filter(pl.col("chosen") & (pl.col("scope") == scope))
        if chosen.select("host", "device").n_unique() == power["device"].n_unique():
            return power
        quantities = ("power_w", "utilization_ratio", "energy_counter_j")
        counted = self._counted(self.store.power(scope=scope, quantities=quantities))
        return totals.told(counted).drop("energy_counter_j")

    def _counted(self, power: pl.DataFrame) -> pl.DataFrame:
        """Return readings in which devices that only count have a power too."""
        if power["energy_counter_j"].null_count() == power.height:
            return power
        ranges = counter_ranges.of(counter_ranges.told(self.store, self.study), power)
        return counter_power.with_power(power, range_j=ranges)

    def failed(self, run: Run, scope: str) -> pl.DataFrame:
        """Return ``device, ts_utc`` of readings that no machine at work can have given; :meth:`power` has no power there."""
        self._read(run, scope)
        return self._failed.get((run.run_id, scope), _NONE_FAILED)

    def _read(self, run: Run | None, scope: str) -> pl.DataFrame:
        """Return readings of a run, or of the whole study without one, from memory where they are there."""
        place = (run.run_id if run else "", scope)
        if place in self._kept:
            return self._kept[place]
        if run:
            frame = self._without_failed(run, scope, self.store.power(run.run_id, scope=scope, margin_s=MARGIN_S))
        else:
            frame = self._speaking(scope)
        # Stages go through the runs in the same order: what is kept first is asked for again, what comes last is not.
        size = self._sizes.get(bool(run), 0) + int(frame.estimated_size())
        if size <= MOST_KEPT_BYTES:
            self._kept[place], self._sizes[bool(run)] = frame, size
        return frame

    def _without_failed(self, run: Run, scope: str, frame: pl.DataFrame) -> pl.DataFrame:
        """Return readings without the powers that a machine at work cannot have drawn, and note when they were read."""
        # A log as a whole may hold a machine that is off.
        failed = (rules.reversed_beyond if run.origin == WHOLE_LOG else rules.unpowered)(frame, scope)
        if not failed.any():
            return frame
        self._failed[run.run_id, scope] = frame.filter(failed).select("device", "ts_utc")
        return frame.with_columns(power_w=pl.when(~pl.lit(failed)).then("power_w"))

    def runs(self) -> list[Run]:
        """Return the runs, their times on the reference clock, in order of time."""
        devices = {r.id: r.devices for r in self.study.runs}
        return [
            Run(
                r["run_id"], r["host"], r["start_utc"], r["end_utc"], r["tokens"], r["samples"], r["batch_size"], r["origin"],
                devices.get(r["run_id"], ()),
            )
            for r in self.store.aligned_runs().iter_rows(named=True)
        ]  # fmt: skip

    def steps(self, run: Run) -> pl.DataFrame:
        """Return the finished steps of a run, their times on the reference clock."""
        return clock_maps.spans(self.store.finished_steps(run.run_id), self.store.table("alignments"), clock=run.host)

    def phases(self) -> pl.DataFrame:
        """Return the phases, their times on the reference clock: logs tell them on the clock of their host."""
        marks, alignments = self.store.table("phases"), self.store.table("alignments")
        hosts = dict(self.store.table("sources").select("source_id", "host").iter_rows())
        of_runs = {r.run_id: r.host for r in self.runs()}
        host = pl.coalesce(
            pl.col("run_id").replace_strict(of_runs, default=None, return_dtype=pl.String),
            pl.col("source_id").replace_strict(hosts, default=None, return_dtype=pl.String),
        )
        parts = marks.with_columns(_host=host).partition_by("_host", as_dict=True, maintain_order=True)
        moved = [
            clock_maps.spans(part.drop("_host"), alignments, clock=str(name or "")) for (name,), part in parts.items()
        ]
        return pl.concat(moved) if moved else marks

    def scopes(self, run_id: str) -> list[str]:
        """Return the scopes at which a run was measured, narrow to wide."""
        if run_id not in self._scopes:
            have = set(self.store.instruments(run_id)["scope"])
            self._scopes[run_id] = [s for s in schema.SUMMED_SCOPES if s in have]
        return self._scopes[run_id]

    def known_scopes(self, run_id: str) -> list[str]:
        """Return the scopes at which a run's energy is known, measured or by a stored calibration, narrow to wide."""
        known = self.store.scopes_with(run_id, "energy_j")
        return [s for s in schema.SUMMED_SCOPES if s in known]

    def number(self, run_id: str, scope: str, metric: str) -> Estimate | None:
        """Return a number that an earlier stage made, ``None`` where it made none."""
        row = self._number(run_id, scope, metric)
        if row is None:
            return None
        return Estimate(
            row["value"], row["lo"], row["hi"], "", row["n"], None, row["method"] or "", row["reason"] or ""
        )

    def coverage(self, run_id: str, scope: str, metric: str) -> float | None:
        """Return the covered share of the time behind a number."""
        row = self._number(run_id, scope, metric)
        return None if row is None else row["coverage_ratio"]

    def _number(self, run_id: str, scope: str, metric: str) -> dict[str, Any] | None:
        """Return the row of a number of all devices and phases together."""
        if not self._numbers:
            rows = self.store.results().filter((pl.col("device") == "") & (pl.col("phase") == ""))
            self._numbers.update({(r["run_id"], r["scope"], r["metric"]): r for r in rows.iter_rows(named=True)})
        return self._numbers.get((run_id, scope, metric))

    def cards(self, run_id: str) -> int:
        """Return how many accelerators a run was measured on."""
        chosen = self.store.instruments(run_id).filter(pl.col("scope") == "board")
        return max(chosen.select("host", "device").n_unique(), 1)


Made = TypeVar("Made")


def side_by_side(jobs: Iterable[Callable[[], Made]]) -> Iterator[Made]:
    """Yield what jobs make, in their order, while other threads work on the next ones.

    Few are begun at a time, since each holds readings. A job must leave the store alone, which is of one thread;
    ``jobs`` itself is gone through by the caller's.
    """
    with ThreadPoolExecutor(THREADS) as pool:
        begun: deque[Future[Made]] = deque()
        for job in jobs:
            begun.append(pool.submit(job))
            if len(begun) > THREADS:
                yield begun.popleft().result()
        yield from (b.result() for b in begun)


@dataclass(frozen=True)
class Stage:
    """A step of the analysis.

    Parameters
    ----------
    name
        Stable name, as in ``stage_log.stage`` and ``findings.stage``.
    title
        What it does, for the progress line.
    does
        Does it; returns its numbers. It writes other tables itself.
    """

    name: str
    title: str
    does: Callable[[Context], Numbers]

    def work(self, context: Context) -> Numbers:
        """Do it on what the store holds now."""
        context.renew()
        return self.does(context)
