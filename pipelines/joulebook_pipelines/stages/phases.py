"""Where each run's energy went by phase."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import polars as pl

from joulebook import boundaries, phases, totals
from joulebook.findings import Estimate
from joulebook_pipelines.stages import shape
from joulebook_pipelines.stages.context import Context, Run, Stage
from joulebook_pipelines.stages.numbers import Numbers

SAME_TELLING_S = 5.0
"""Two logs that put one phase so close together tell of one interval; the first is believed [s]."""

SAME_SPAN = timedelta(milliseconds=2)
"""An energy is that of a phase when its span begins and ends with it: stamps are told to a millisecond or better."""

REST = "other"
"""Row of what lies in no phase."""


def _work(context: Context) -> Numbers:
    numbers = Numbers()
    marks = context.phases()
    if marks.is_empty():
        return numbers
    for run in context.runs():
        mine = _of_run(marks, run)
        if mine.is_empty():
            continue
        scopes = context.scopes(run.run_id)
        for scope in scopes:
            if not _given(context, run, scope, mine, numbers) and scope in boundaries.split(scopes):
                _attribute(context, run, scope, mine, numbers)
    return numbers


def _of_run(marks: pl.DataFrame, run: Run) -> pl.DataFrame:
    """Return the phases of a run; a log that names no run speaks of whatever ran then."""
    return marks.filter(
        pl.col("run_id").is_in([run.run_id, ""])
        & (pl.col("start_utc") < run.end_utc)
        & (pl.col("end_utc") > run.start_utc)
    ).pipe(_told_once)


def _told_once(marks: pl.DataFrame) -> pl.DataFrame:
    """Leave out phases that a second log tells again, as both ends of a measurement do."""
    ordered = marks.sort("phase", "start_utc", "source_id")
    apart_s = pl.col("start_utc").diff().over("phase").dt.total_microseconds() / 1e6
    another = (pl.col("source_id") != pl.col("source_id").shift()).over("phase")
    again = ((apart_s < SAME_TELLING_S) & another).fill_null(value=False)
    return ordered.filter(~again).sort("start_utc", "end_utc").select("phase", "start_utc", "end_utc")


def _given(context: Context, run: Run, scope: str, marks: pl.DataFrame, numbers: Numbers) -> bool:
    """Give the energies that a table tells phase by phase; ``False`` where the readings are not of phases."""
    power = context.power(run, scope)
    spans = power.filter(pl.col("energy_j").is_not_null() & (pl.col("span_s") > 0))
    if spans.is_empty() or spans.height < power.height:
        return False
    devices = spans["device"].n_unique()
    lasted = pl.duration(microseconds=(pl.col("span_s") * 1e6).round().cast(pl.Int64))
    spans = spans.select(at="ts_utc", began=pl.col("ts_utc") - lasted, device="device", energy_j="energy_j").sort("at")
    by_device = [
        marks.with_row_index("mark").sort("end_utc").join_asof(
            mine, left_on="end_utc", right_on="at", strategy="nearest", tolerance=SAME_SPAN
        )
        for mine in spans.partition_by("device")
    ]  # fmt: skip
    apart = (pl.col("began") - pl.col("start_utc")).abs() <= SAME_SPAN
    told = pl.concat(by_device).filter(apart).group_by("mark").agg(pl.col("energy_j").sum(), seen=pl.len())
    told = told.filter(pl.col("seen") == devices)
    if told.height * 2 < marks.height:
        return False
    length_s = (pl.col("end_utc") - pl.col("start_utc")).dt.total_microseconds() / 1e6
    whole = marks.with_row_index("mark").with_columns(seconds=length_s).join(told, on="mark", how="left")
    rows = whole.group_by("phase", maintain_order=True).agg(
        pl.col("seconds").sum(), pl.col("energy_j").sum(), n=pl.len(), lost=pl.col("energy_j").null_count()
    )
    _add_given(context, run, scope, rows, numbers)
    return True


def _add_given(context: Context, run: Run, scope: str, rows: pl.DataFrame, numbers: Numbers) -> None:
    total = context.number(run.run_id, scope, "energy_j")
    whole_j = total.value if total is not None else None
    known = rows.filter(pl.col("lost") == 0)
    parts_j, parts_s = float(known["energy_j"].sum()), float(known["seconds"].sum())
    # Energies between the phases are what the whole holds beyond them.
    rest_j = max((whole_j or parts_j) - parts_j, 0.0)
    whole_j = parts_j + rest_j
    for row in rows.iter_rows(named=True):
        reason = f"{row['lost']} of its {row['n']} intervals come without an energy" if row["lost"] else ""
        energy_j = None if reason else row["energy_j"]
        _add(numbers, run.run_id, scope, row["phase"], (energy_j, whole_j, row["seconds"], row["n"]), "given", reason)
    _add(
        numbers, run.run_id, scope, REST, (rest_j, whole_j, max(run.duration_s - parts_s, 0.0), 0),
        "the whole less the phases", "",
    )  # fmt: skip


def _add(
    numbers: Numbers, run_id: str, scope: str, phase: str, told: tuple[float | None, float, float, int], method: str,
    reason: str,
) -> None:  # fmt: skip
    energy_j, whole_j, seconds, n = told
    share = energy_j / whole_j if energy_j is not None and whole_j else None
    power_w = energy_j / seconds if energy_j is not None and seconds else None
    numbers.add(
        run_id,
        scope,
        "phase_energy_j",
        Estimate(energy_j, energy_j, energy_j, "J", n, None, method, reason),
        phase=phase,
    )
    numbers.add(run_id, scope, "phase_share_ratio", Estimate(share, n=n, method=method, reason=reason), phase=phase)
    numbers.add(
        run_id, scope, "phase_power_w", Estimate(power_w, unit="W", n=n, method=method, reason=reason), phase=phase
    )


def _attribute(context: Context, run: Run, scope: str, marks: pl.DataFrame, numbers: Numbers) -> None:
    power, notes = shape.seen(context, run, scope, margin=True)
    if power.height < 2:
        return
    total = context.number(run.run_id, scope, "energy_j")
    split = phases.attribute(
        power, marks, start_utc=run.start_utc, end_utc=run.end_utc, window_s=None if notes else _window_s(context, run, scope, power),
        total_j=None if total is None else total.value,
    )  # fmt: skip
    for row in split.frame.iter_rows(named=True):
        method, reason = row["method"] or "", row["reason"] or ""
        energy = Estimate(row["energy_j"], row["lo"], row["hi"], "J", row["n"], None, method, reason)
        numbers.add(run.run_id, scope, "phase_energy_j", energy, phase=row["phase"])
        numbers.add(
            run.run_id, scope, "phase_share_ratio", Estimate(row["share_ratio"], n=row["n"], method=method, reason=reason),
            phase=row["phase"],
        )  # fmt: skip
        numbers.add(
            run.run_id, scope, "phase_power_w", Estimate(row["power_w"], unit="W", n=row["n"], method=method, reason=reason),
            phase=row["phase"],
        )  # fmt: skip
    numbers.find(run.run_id, (replace(f, subject=f"{run.run_id} at {scope} ({f.subject})") for f in split.findings))


def _window_s(context: Context, run: Run, scope: str, power: pl.DataFrame) -> float | None:
    """Return over how long a reading is a mean [s], where that is known; what a counter tells is one from step to step."""
    channels = context.store.chosen_channels(run.run_id, scope)
    windows = channels["window_s"].drop_nulls()
    if len(windows):
        return float(windows[0])
    return (
        totals.median_step_s([rows for _, rows in totals.by_device(power)])
        if set(channels["kind"]) == {"counter"}
        else None
    )


STAGE = Stage("phases", "splitting energy over phases", _work)
