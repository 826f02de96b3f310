"""Where each run is steady: warm-up, segments, stable power and its variation."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, replace

import polars as pl

from joulebook import baseline, schema, segments, totals, variability, warmup
from joulebook.findings import Estimate, Finding, Severity
from joulebook_pipelines.stages import shape
from joulebook_pipelines.stages.context import THREADS, Context, Run, Stage
from joulebook_pipelines.stages.numbers import Numbers
from joulebook_pipelines.stages.shape import LEAST_READINGS

MOST_DEVICES = 16
"""Beyond this many devices of a scope only their sum is cut into segments; eight hundred time lines help nobody."""


@dataclass(frozen=True)
class _Whole:
    """What is found in the power of all devices together."""

    warm: warmup.Warmup
    cut: segments.Segments
    stable: baseline.Baseline
    variation: variability.Variability | None


@dataclass(frozen=True)
class _Begun:
    """Work on a run at a scope; ``whole`` is ``None`` where the readings are too few."""

    scope: str
    notes: tuple[Finding, ...]
    whole: Future[_Whole] | None = None
    devices: tuple[Future[segments.Segments], ...] = ()


def _work(context: Context) -> Numbers:
    numbers = Numbers()
    found: list[pl.DataFrame] = []
    with ThreadPoolExecutor(THREADS) as pool:
        for run, begun in _ahead(_begin_run(pool, context, run) for run in context.runs()):
            found += _tell_run(run, begun, numbers)
    frame = pl.concat(found) if found else schema.table("segments").empty()
    context.store.replace("segments", frame)
    return numbers


def _ahead(begun: Iterator[tuple[Run, list[_Begun]]]) -> Iterator[tuple[Run, list[_Begun]]]:
    """Yield runs when the next one has begun, so that the threads have work while a run is told."""
    before = next(begun, None)
    while before is not None:
        after = next(begun, None)
        yield before
        before = after


def _begin_run(pool: Executor, context: Context, run: Run) -> tuple[Run, list[_Begun]]:
    steps = context.steps(run).select("step", "start_utc", "end_utc")
    return run, [_begin(pool, context, run, scope, steps) for scope in context.scopes(run.run_id)]


def _tell_run(run: Run, begun: list[_Begun], numbers: Numbers) -> list[pl.DataFrame]:
    """Tell what was found in a run, and return its segments."""
    frames = []
    for one in begun:
        numbers.find(run.run_id, one.notes)
        if one.whole is not None:
            whole = one.whole.result()
            _tell(run, one.scope, whole, numbers)
            frames += [whole.cut.frame, *(d.result().frame for d in one.devices)]
    return [schema.conform(f.with_columns(run_id=pl.lit(run.run_id)), "segments") for f in frames]


def _begin(pool: Executor, context: Context, run: Run, scope: str, steps: pl.DataFrame) -> _Begun:
    """Read a run, and let the whole of it and each of its devices be worked on side by side."""
    power, notes = shape.seen(context, run, scope)
    if shape.moments(power) < LEAST_READINGS or not power["span_s"].null_count():
        return _Begun(scope, (*notes, _too_short(run, scope, power.height)) if power.height else notes)
    idle = context.number(run.run_id, scope, "idle_power_w")
    idle_w = None if idle is None else idle.value
    whole = pool.submit(_whole, power, steps, context.study.general.warmup_steps, scope, idle_w)
    parts = totals.by_device(power)
    own_w = None if idle_w is None else idle_w / len(parts)
    some = parts if 1 < len(parts) <= MOST_DEVICES else []
    devices = tuple(pool.submit(segments.find, rows, scope=scope, idle_w=own_w) for _, rows in some)
    return _Begun(scope, notes, whole, devices)


def _whole(
    power: pl.DataFrame, steps: pl.DataFrame, dropped_steps: int | None, scope: str, idle_w: float | None
) -> _Whole:
    total = _total(power)
    warm = warmup.detect(total, steps=steps if steps.height else None, dropped_steps=dropped_steps)
    cut = segments.find(total, scope=scope, idle_w=idle_w)
    return _Whole(warm, cut, baseline.mean(total, cut=cut), _variation(total, cut))


def _tell(run: Run, scope: str, whole: _Whole, numbers: Numbers) -> None:
    numbers.add(run.run_id, scope, "warmup_s", _warmup(whole.warm))
    numbers.find(run.run_id, (_about(f, run, scope) for f in whole.warm.findings))
    numbers.add(run.run_id, scope, "stable_power_w", whole.stable.estimate)
    variation = whole.variation
    cv = Estimate.refused("no stable segment", method="within a stable segment")
    numbers.add(run.run_id, scope, "cv_ratio", cv if variation is None else variation.estimates[0])
    numbers.find(run.run_id, (_about(f, run, scope) for f in (() if variation is None else variation.findings)))
    numbers.find(run.run_id, (_about(f, run, scope) for f in _distinct((*whole.stable.findings, *whole.cut.findings))))


def _too_short(run: Run, scope: str, readings: int) -> Finding:
    return Finding(
        "too-few-for-steady-state", Severity.NOTE, f"{run.run_id} at {scope}",
        f"{readings} readings are too few to look for warm-up, steady state and variation ({LEAST_READINGS} are needed).",
        {"readings": readings},
    )  # fmt: skip


def _total(power: pl.DataFrame) -> pl.DataFrame:
    """Return the sum over the devices as one device ``''``, with their mean utilisation where they tell it."""
    if power["device"].n_unique() == 1:
        return power.with_columns(device=pl.lit(""))
    return totals.series(power).with_columns(device=pl.lit(""))


def _warmup(found: warmup.Warmup) -> Estimate:
    if found.warmup_s.value is None and not found.warmup_s.reason:
        return Estimate.refused(found.reason, unit="s", method="steady-state detection")
    return found.warmup_s


def _variation(total: pl.DataFrame, cut: segments.Segments) -> variability.Variability | None:
    """Measure the variation inside the longest stable segment; stalls inside it are left out."""
    longest = cut.of("stable").sort((pl.col("end_utc") - pl.col("start_utc")), descending=True).head(1)
    if longest.is_empty():
        return None
    inside = totals.inside(total["ts_utc"], longest, ends=False)
    inside &= ~totals.inside(total["ts_utc"], cut.of("stall"), ends=False)
    return variability.measure(total.filter(pl.Series(inside)))


def _about(finding: Finding, run: Run, scope: str) -> Finding:
    """Name run and scope where the method knows only a series."""
    return replace(finding, subject=f"{run.run_id} at {scope}{f' ({finding.subject})' if finding.subject else ''}")


def _distinct(findings: tuple[Finding, ...]) -> list[Finding]:
    return list({(f.code, f.subject): f for f in findings}.values())


STAGE = Stage("steady", "looking for steady states", _work)
