"""Energy, mean power and coverage of every run at every scope, with the named parts of the uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from joulebook import clock_error, energy, energy_findings, energy_gaps, mirrors, rules
from joulebook.findings import Estimate
from joulebook_pipelines.stages import counter_ranges
from joulebook_pipelines.stages.context import MARGIN_S, WHOLE_LOG, Context, Run, Stage, side_by_side
from joulebook_pipelines.stages.numbers import Numbers

MOST_PARTS = 32
"""Parts of other readings that get a number of their own; a rack of sensors would bury the others."""

SPAN_SLACK = 0.5
"""Spans of energy follow each other closely; one that lacks leaves at least this share of a span open."""

SAMPLED = ("board",)
"""Boundaries whose sensors look at a part of the time; a meter in the supply line adds up what passes it."""


def _work(context: Context) -> Numbers:
    numbers = Numbers()
    runs = context.runs()
    told = counter_ranges.told(context.store, context.study)
    for measured in side_by_side(_jobs(context, runs, told)):
        _tell(context, measured, numbers)
    for run in runs:
        _measure_parts(context, run, told, numbers)
    return numbers


def _jobs(context: Context, runs: list[Run], told: counter_ranges.Ranges) -> Iterator[Callable[[], _Measured]]:
    for run in runs:
        for scope in context.scopes(run.run_id):
            power = context.power(run, scope, margin=True)
            channels = context.store.chosen_channels(run.run_id, scope)
            attempts = _attempts(context, run, scope, power)
            steps = context.steps(run) if scope in SAMPLED else None
            yield partial(_measured, run, scope, power, channels, counter_ranges.of(told, power), attempts, steps)


def _attempts(context: Context, run: Run, scope: str, power: pl.DataFrame) -> pl.DataFrame:
    """Return when power was asked for, where the readings that tell one do not say it."""
    told, failed = context.store.attempts(run.run_id, scope), context.failed(run, scope)
    if failed.is_empty():
        return told
    return pl.concat([told, failed]) if told.height else power.select("device", "ts_utc")


def _measure_parts(context: Context, run: Run, ranges: counter_ranges.Ranges, numbers: Numbers) -> None:
    """Give the energy of what lies inside another reading, device by device: never added, so there is no total."""
    told = context.store.parts(run.run_id)
    several = bool(told["device"].is_duplicated().any())
    # One by one: a part may be as long as the log.
    for source_id, device in told.select("source_id", "device").head(MOST_PARTS).iter_rows():
        power = context.store.part(run.run_id, source_id, device, margin_s=MARGIN_S)
        if power.is_empty():
            continue
        path, kind = power.select("path", "kind").row(0)
        channels = pl.DataFrame(
            {"kind": [kind], **{c: pl.Series([None], dtype=pl.Float64) for c in ("window_s", "trail_s")}}
        )
        # An energy that was not told for a span is not known; the parts' powers jump too much for a line between them.
        spans = power["span_s"].drop_nulls()
        gap_s = SPAN_SLACK * float(np.median(spans)) if kind == "energy" and len(spans) else None
        result = _integrated(
            power.drop("path", "kind"), run, channels, counter_ranges.of(ranges, power), max_gap_s=gap_s or None
        )
        row = result.frame.filter(pl.col("device") == device).row(0, named=True)
        method = f"{row['method']}; {path}; lies inside another reading and is never added"
        common = {"device": f"{device}@{path}" if several else device, "coverage_ratio": row["coverage_ratio"]}
        numbers.add(run.run_id, "part", "energy_j", Estimate(
            row["energy_j"], row["lo"], row["hi"], "J", row["n"], None, method, row["reason"]), **common)  # fmt: skip
        numbers.add(run.run_id, "part", "mean_power_w", Estimate(
            row["mean_power_w"], row["mean_lo"], row["mean_hi"], "W", row["n"], None, method, row["reason"]), **common)  # fmt: skip


@dataclass(frozen=True)
class _Measured:
    run: Run
    scope: str
    power: pl.DataFrame
    channels: pl.DataFrame
    energy: energy.Energy


def _measured(
    run: Run,
    scope: str,
    power: pl.DataFrame,
    channels: pl.DataFrame,
    ranges: dict[str, float],
    attempts: pl.DataFrame,
    steps: pl.DataFrame | None,
) -> _Measured:
    found = _integrated(power, run, channels, ranges, attempts=attempts, steps=steps)
    return _Measured(run, scope, power, channels, found)


def _tell(context: Context, measured: _Measured, numbers: Numbers) -> None:
    run, scope, channels = measured.run, measured.scope, measured.channels
    result = _with_clock_error(context, run, scope, measured.power, channels, measured.energy)
    about = _about(channels)
    for row in result.frame.iter_rows(named=True):
        method = f"{row['method']}; {about}"
        common = {"device": row["device"], "coverage_ratio": row["coverage_ratio"]}
        numbers.add(run.run_id, scope, "energy_j", Estimate(
            row["energy_j"], row["lo"], row["hi"], "J", row["n"], None, method, row["reason"]), **common)  # fmt: skip
        numbers.add(run.run_id, scope, "mean_power_w", Estimate(
            row["mean_power_w"], row["mean_lo"], row["mean_hi"], "W", row["n"], None, method, row["reason"]), **common)  # fmt: skip
        if row["peak_power_w"] is not None:
            numbers.add(run.run_id, scope, "peak_power_w", Estimate(
                row["peak_power_w"], None, None, "W", row["n"], None, "highest reading in the run"), **common)  # fmt: skip
    numbers.add(
        run.run_id,
        scope,
        "duration_s",
        Estimate(run.duration_s, run.duration_s, run.duration_s, "s", method="end − start"),
    )
    for row in result.parts.iter_rows(named=True):
        numbers.part(run.run_id, scope, row["device"], "energy_j", row["part"], row["lo"], row["hi"])
    whole_w = next(iter(result.frame.filter(device="")["mean_power_w"]), None)
    doubts = [
        *mirrors.find(measured.power, scope=scope),
        *rules.too_small(whole_w, scope),
        *rules.failed(context.failed(run, scope).height, scope),
    ]
    numbers.find(run.run_id, [*result.findings, *doubts])


def _integrated(
    power: pl.DataFrame,
    run: Run,
    channels: pl.DataFrame,
    ranges: dict[str, float],
    *,
    max_gap_s: float | None = None,
    attempts: pl.DataFrame | None = None,
    steps: pl.DataFrame | None = None,
) -> energy.Energy:
    kinds = set(channels["kind"])
    if kinds == {"counter"} and power["power_w"].null_count() == power.height:
        return energy.from_counter(power, start_utc=run.start_utc, end_utc=run.end_utc, range_j=ranges)
    window_s = channels["window_s"].drop_nulls()
    trail_s = channels["trail_s"].drop_nulls()
    found = energy.integrate(
        power,
        start_utc=run.start_utc,
        end_utc=run.end_utc,
        kind="hold" if kinds == {"on-change"} else None,
        hold_edges=run.origin != WHOLE_LOG,
        load_edges=run.origin != WHOLE_LOG,
        max_gap_s=max_gap_s,
        attempts=attempts,
        steps=steps if steps is not None and steps.height else None,
        window_s=float(window_s[0]) if len(window_s) == channels.height and len(window_s) else 0.0,
        trail_s=float(trail_s[0]) if len(trail_s) == channels.height and trail_s.n_unique() == 1 else 0.0,
    )
    has = power["energy_counter_j"] if "energy_counter_j" in power.columns else None
    if (
        has is None
        or has.null_count() == power.height
        or found.frame["coverage_ratio"][0] >= energy_findings.FULL_COVERAGE
    ):
        return found
    told = power.filter(pl.col("energy_counter_j").is_not_null())
    counted = energy.from_counter(told, start_utc=run.start_utc, end_utc=run.end_utc, range_j=ranges)
    return energy_gaps.counted(found, counted)


def _with_clock_error(
    context: Context, run: Run, scope: str, power: pl.DataFrame, channels: pl.DataFrame, result: energy.Energy
) -> energy.Energy:
    """Widen the intervals by what the uncertainty of the clock's offset does to the window."""
    clocks = {*channels["clock"], run.host}
    if len(clocks) == 1:
        return result  # a run and readings on one clock lie right to each other, wherever that clock stands
    half_s = context.store.clock_half_s(sorted(clocks))
    lost = run.origin != WHOLE_LOG and context.store.clock_refused(sorted(clocks))
    if not half_s and not lost:
        return result
    power = _of_run(context.whole(scope), run, channels) if lost else context.spoken(run, scope, margin=True)
    moved = [_moved_j(power, run, row, None if lost else half_s) for row in result.frame.iter_rows(named=True)]
    return clock_error.widened(result, moved, length_s=run.duration_s)


def _of_run(whole: pl.DataFrame, run: Run, channels: pl.DataFrame) -> pl.DataFrame:
    """Return what the instruments of a run read in all of their logs."""
    mine = whole.filter(pl.col("device").is_in(channels["device"].implode()))
    return mine.filter(pl.col("host") == run.host) if "host" in mine.columns else mine


def _moved_j(power: pl.DataFrame, run: Run, row: dict[str, Any], half_s: float | None) -> tuple[float, float]:
    """Return by how much an energy may be less and more [J] for a clock off by up to so much, or by nobody knows what."""
    own = power if row["device"] == "" else power.filter(pl.col("device") == row["device"])
    if half_s is None:
        return clock_error.lost_j(own, length_s=run.duration_s, energy_j=row["energy_j"], lo=row["lo"], hi=row["hi"])
    moved_j = clock_error.shift_j(own, start_utc=run.start_utc, end_utc=run.end_utc, half_s=half_s)
    return moved_j, moved_j


def _about(channels: pl.DataFrame) -> str:
    """Return what the readings are from, e.g. ``meter-csv (meter.csv)``."""
    sources = list(
        dict.fromkeys(zip(channels["adapter"], channels["path"], strict=True))
    )  # few rows: faster than a frame
    names = ", ".join(path for _, path in sources[:3]) + (" …" if len(sources) > 3 else "")
    return f"{', '.join(dict.fromkeys(adapter for adapter, _ in sources))} ({names})"


STAGE = Stage("energy", "integrating power", _work)
