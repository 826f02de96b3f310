"""How software readings relate to the machine's meter: gain and offset from stretches where both are steady."""

from __future__ import annotations

import polars as pl

from joulebook import calibrate, calibrate_checks, calibrate_points, calibration_tables, schema, segments, ticks, totals
from joulebook.findings import Estimate, Finding, Severity
from joulebook_pipelines.stages import boards, stored
from joulebook_pipelines.stages.context import Context, Run, Stage
from joulebook_pipelines.stages.numbers import Numbers

READINGS = ("board", "package", "components")
"""Scopes of software readings that are worth calibrating against what is wider."""

REFERENCES = ("node", "rack")

LEAST_LEVELS = 3
"""A line needs three levels; with fewer stable ones, means of equal windows are added."""

COARSE_S = 10.0
"""Means of a counter that last longer are no readings of a moment."""

WINDOW_S = 60.0
"""Length of such a window: long against sensor lags and clock errors, short enough for a few levels in a run."""


def _work(context: Context) -> Numbers:
    numbers = Numbers()
    found = []
    runs = context.runs()
    for host in sorted({r.host for r in runs}):
        mine = [r for r in runs if r.host == host]
        scopes = sorted({s for r in mine for s in context.scopes(r.run_id)}, key=schema.SCOPES.index)
        reference = next((s for s in REFERENCES if s in scopes), None)
        if reference is None:
            continue
        for scope in (s for s in READINGS if s in scopes):
            reading = context.whole(scope, host)
            if reading["span_s"].null_count():
                found.append(
                    (_pair(context, host, scope, reference, ticks.total(reading), numbers), host, scope, reference)
                )
        _residual(context, mine, reference, numbers)
    for name, rows in (("calibrations", calibration_tables.row), ("calibration_points", calibration_tables.points)):
        made = [rows(c, host=h, scope=s, reference_scope=r) for c, h, s, r in found]
        context.store.replace(name, pl.concat(made) if made else schema.table(name).empty())
    return numbers


def _pair(
    context: Context, host: str, scope: str, reference: str, reading: pl.DataFrame, numbers: Numbers
) -> calibrate.Calibration:
    subject = f"{host}: {scope} against {reference}"
    wall = ticks.total(context.whole(reference, host))
    unaligned, coarse_s = _unaligned(context, host, (scope, reference)), _coarse_s(context, host, reference, wall)
    if unaligned or coarse_s:
        reason = (
            f"the clock of {unaligned} is not aligned, so readings of one moment cannot be paired" if unaligned else
            f"the counter at the {reference} counts so coarsely that its means last {coarse_s:.0f} s, too long to pair readings with"
        )  # fmt: skip
        numbers.find("", [Finding("calibration-refused", Severity.WARNING, subject, f"No calibration: {reason}.")])
        return calibrate.refused(reason, subject=subject)
    points = _points(reading, wall, scope)
    found = calibrate.fit(points, reading_scope=scope, reference_scope=reference, subject=subject)
    numbers.find("", found.findings)
    paths = context.store.used_channels(host, [reference])["path"].unique().sort()
    stored.keep(context, host, scope, reference, found, ", ".join(paths))
    return found


def _points(reading: pl.DataFrame, wall: pl.DataFrame, scope: str) -> pl.DataFrame:
    """Return steady points of both; where these show too few levels, means of equal windows of the whole log."""
    steady = segments.find(reading.with_columns(device=pl.lit("")), scope=scope).frame
    points = calibrate_points.from_segments(reading, wall, steady)
    if calibrate_checks.levels(points) >= LEAST_LEVELS:
        return points
    return calibrate_points.by_bin(reading, wall, every_s=WINDOW_S)


def _unaligned(context: Context, host: str, scopes: tuple[str, ...]) -> str:
    """Return the name of a clock of these readings that could not be aligned to another one of them, '' where there is none."""
    used = context.store.used_channels(host, scopes)
    bad = used.filter(pl.col("status") == "refused")
    return str(bad["clock"][0]) if bad.height and used["clock"].n_unique() > 1 else ""


def _coarse_s(context: Context, host: str, scope: str, power: pl.DataFrame) -> float:
    """Return how long the means last that a counter tells [s], where they are too long for levels of a load; else 0."""
    runs = [r for r in context.runs() if r.host == host and scope in context.scopes(r.run_id)]
    kinds = {k for r in runs for k in context.store.chosen_channels(r.run_id, scope)["kind"]}
    step_s = totals.median_step_s([power])
    return step_s if kinds == {"counter"} and step_s > COARSE_S else 0.0


def _residual(context: Context, runs: list[Run], reference: str, numbers: Numbers) -> None:
    """Tell what the whole draws beyond the parts that are measured: fans, supply losses, disks, memory."""
    for run in runs:
        scopes = context.scopes(run.run_id)
        whole = context.number(run.run_id, reference, "mean_power_w") if reference in scopes else None
        parts = [s for s in ("board", "package", "dram") if s in scopes]
        measured = [context.number(run.run_id, s, "mean_power_w") for s in parts]
        if whole is None or whole.value is None or not parts or any(m is None or m.value is None for m in measured):
            continue
        if others := boards.beside(context, run):
            reason = f"{', '.join(others)} beside it in the {reference} did not work for this run: their power is in the rest"
            refused = Estimate.refused(reason, unit="W", method=f"{reference} − parts")
            numbers.add(run.run_id, reference, "residual_power_w", refused)
            continue
        value = whole.value - sum(m.value for m in measured if m is not None and m.value is not None)
        halves = [e.half_width or 0.0 for e in (whole, *measured) if e is not None]
        half = sum(h * h for h in halves) ** 0.5
        estimate = Estimate(value, value - half, value + half, "W", method=f"{reference} − {' − '.join(parts)}")
        numbers.add(run.run_id, reference, "residual_power_w", estimate)


STAGE = Stage("calibration", "relating software to the meter", _work)
