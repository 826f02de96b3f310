"""What lies behind the numbers: the price of loss, what power varies with, days side by side, shared machines, other hours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial

import polars as pl

from joulebook import boundaries, convergence, drivers, efficiency, energy, intervals, schema, sharing, totals
from joulebook.findings import Finding
from joulebook_pipelines.stages.context import MARGIN_S, Context, Run, Stage, side_by_side
from joulebook_pipelines.stages.numbers import Numbers

DRIVERS = ("utilization_ratio", "memory_utilization_ratio", "temperature_c", "sm_clock_hz", "power_limit_w")
"""Quantities beside power that its variance may go with: load, memory traffic, temperature, clocks, caps."""

LEAST_BINS = 60
"""Fewer ten-second means than this tell nothing of shares."""


def _convergence(context: Context) -> Numbers:
    numbers = Numbers()
    frames = []
    for run in context.runs():
        steps = context.steps(run).select("step", "start_utc", "end_utc", "loss").drop_nulls("loss")
        # a log of ends alone says nothing of a start: energy is counted from that of the run, not of the power log
        steps = steps.with_columns(pl.col("start_utc").fill_null(pl.lit(run.start_utc)))
        if steps.height < 20 or steps["loss"].n_unique() < 3:
            continue
        for scope in boundaries.widest(context.scopes(run.run_id))[:1]:
            power = context.spoken(run, scope, margin=True)
            found = convergence.trace(steps, power)
            rows = found.frame.rename({"lo": "marginal_lo", "hi": "marginal_hi"})
            known = [c for c in rows.columns if c in schema.table("convergence").schema]
            frames.append(
                schema.conform(
                    rows.select(known).with_columns(run_id=pl.lit(run.run_id), scope=pl.lit(scope)), "convergence"
                )
            )
            numbers.find(run.run_id, found.findings)
    context.store.replace("convergence", pl.concat(frames) if frames else schema.table("convergence").empty())
    return numbers


def _drivers(context: Context) -> Numbers:
    """Explain the variance of each board's power within the longest stable segment of each run."""
    numbers = Numbers()
    rows: list[dict[str, object]] = []
    for run, device, found in side_by_side(_driver_jobs(context)):
        rows += _shares(run, device, found, numbers) if found is not None else []
    context.store.replace("drivers", pl.DataFrame(rows, schema=schema.table("drivers").schema))
    return numbers


def _driver_jobs(context: Context) -> Iterator[Callable[[], tuple[Run, str, drivers.Drivers | None]]]:
    segments = context.store.table("segments").filter(
        (pl.col("kind") == "stable") & (pl.col("scope") == "board") & (pl.col("device") == "")
    )
    for run in context.runs():
        mine = segments.filter(pl.col("run_id") == run.run_id).sort(
            pl.col("end_utc") - pl.col("start_utc"), descending=True
        )
        if mine.is_empty():
            continue
        window = mine.row(0, named=True)
        power = totals.between(context.power(run, "board", margin=True), window["start_utc"], window["end_utc"])
        for device, readings in totals.by_device(power):
            yield partial(_explained, run, device, readings)


def _explained(run: Run, device: str, readings: pl.DataFrame) -> tuple[Run, str, drivers.Drivers | None]:
    moving = [
        d
        for d in DRIVERS
        if d in readings.columns
        and readings[d].null_count() < readings.height // 10
        and readings[d].min() != readings[d].max()
    ]
    seconds = (readings["ts_utc"].max() - readings["ts_utc"].min()).total_seconds() if readings.height else 0.0  # pyrefly: ignore[missing-attribute, unsupported-operation]
    if not moving or seconds < LEAST_BINS * drivers.BIN_S:
        return run, device, None
    return run, device, drivers.explain(readings.drop_nulls(["power_w", *moving]), drivers=moving)


def _shares(run: Run, device: str, found: drivers.Drivers, numbers: Numbers) -> list[dict[str, object]]:
    about = {"run_id": run.run_id, "scope": "board", "device": device}
    numbers.find(
        run.run_id,
        (Finding(f.code, f.severity, f"{run.run_id} {device}", f.message, f.evidence) for f in found.findings),
    )
    shares = [
        (r["driver"], r["share_ratio"], r["share_lo"], r["share_hi"], "") for r in found.frame.iter_rows(named=True)
    ]
    rest = found.unexplained
    shares.append(("unexplained", rest.value, rest.lo, rest.hi, rest.reason))
    names = ("driver", "share_ratio", "share_lo", "share_hi", "reason")
    return [about | dict(zip(names, row, strict=True)) for row in shares]


def _days(context: Context) -> Numbers:
    """Set MFU, tokens per joule and PUE side by side, day by day, and name where they part."""
    numbers = Numbers()
    results = context.store.results().filter((pl.col("device") == "") & (pl.col("phase") == ""))
    days = pl.DataFrame(
        {"run_id": [r.run_id for r in context.runs()], "day": [f"{r.start_utc:%Y-%m-%d}" for r in context.runs()]}
    )
    if days.is_empty():
        return numbers
    frames = []
    mfu = results.filter(pl.col("metric") == "mfu_ratio").select("run_id", mfu_ratio="value")
    for scope in [s for s in schema.SUMMED_SCOPES if s in set(results["scope"])]:
        tokens = results.filter((pl.col("metric") == "tokens_per_j") & (pl.col("scope") == scope)).select(
            "run_id", tokens_per_j="value"
        )
        by_day = (
            days.join(tokens, on="run_id").join(mfu, on="run_id", how="left").group_by("day")
            .agg(runs=pl.len(), tokens_per_j=pl.col("tokens_per_j").mean(), mfu_ratio=pl.col("mfu_ratio").mean()).sort("day")
        )  # fmt: skip
        if by_day.is_empty():
            continue
        by_day = by_day.with_columns(pue=pl.lit(context.study.site.pue, pl.Float64))
        if by_day["mfu_ratio"].null_count() < by_day.height:
            told = efficiency.divergence(by_day)
            numbers.find("", told.findings if by_day.height > 1 else ())
            by_day = told.frame
        known = [c for c in by_day.columns if c in schema.table("days").schema]
        frames.append(schema.conform(by_day.select(known).with_columns(scope=pl.lit(scope)), "days"))
    context.store.replace("days", pl.concat(frames) if frames else schema.table("days").empty())
    return numbers


def _sharing(context: Context) -> Numbers:
    """Split the machine's energy where runs on one host overlap and say which accelerators each had."""
    numbers = Numbers()
    rows: list[dict[str, object]] = []
    runs = context.runs()
    for host in sorted({r.host for r in runs}):
        mine = [r for r in runs if r.host == host and r.devices]
        spans = pl.DataFrame({"start_utc": [r.start_utc for r in mine], "end_utc": [r.end_utc for r in mine]})
        if len(mine) < 2 or intervals.seconds(intervals.union(spans)) >= sum(r.duration_s for r in mine):
            continue
        start, end = min(r.start_utc for r in mine), max(r.end_utc for r in mine)
        boards, node = (_of_host(context, host, s, start, end) for s in ("board", "node"))
        if node.is_empty() or boards.is_empty():
            continue
        drawn = {
            r.run_id: energy.integrate(
                boards.filter(pl.col("device").is_in(r.devices)), start_utc=r.start_utc, end_utc=r.end_utc
            ).total
            for r in mine
        }
        whole = energy.integrate(node, start_utc=start, end_utc=end).total
        all_boards = energy.integrate(boards, start_utc=start, end_utc=end).total
        if whole.value is None or not all_boards.value or any(d.value is None for d in drawn.values()):
            continue
        jobs = pl.DataFrame(
            {"job": list(drawn), "energy_j": [d.value for d in drawn.values()]},
            schema_overrides={"energy_j": pl.Float64},
        )
        split = sharing.by_measured_energy(jobs, total_j=whole.value, boards_j=all_boards.value)
        frame = sharing.bounded(split, total=whole, boards=all_boards, drawn=drawn)
        place: dict[str, object] = {"host": host, "scope": "node", "start_utc": start, "end_utc": end}
        place["method"] = "by what the boards of each run drew"
        rows += [place | r for r in frame.drop("weight").rename({"job": "run_id"}).iter_rows(named=True)]
    context.store.replace("shares", pl.DataFrame(rows, schema=schema.table("shares").schema))
    return numbers


def _of_host(context: Context, host: str, scope: str, start: datetime, end: datetime) -> pl.DataFrame:
    """Return what the instruments of a host read at a scope, devices by their own names."""
    power = context.store.power(
        scope=scope, start_utc=start, end_utc=end, margin_s=MARGIN_S, quantities=("power_w", "energy_j")
    ).filter(pl.col("power_w").is_not_null())
    if "host" not in power.columns:  # there is only one
        return power
    return power.filter(pl.col("host") == host).with_columns(pl.col("device").str.strip_prefix(f"{host}/"))


CONVERGENCE = Stage("convergence", "setting loss against energy", _convergence)
DRIVERS_STAGE = Stage("drivers", "explaining the variance of power", _drivers)
DAYS = Stage("days", "comparing days", _days)
SHARING = Stage("sharing", "splitting shared machines", _sharing)
