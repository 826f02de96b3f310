"""Which runs there are: as study.toml says, else as logs say, else one per busy stretch."""

from __future__ import annotations

import json

import polars as pl

from joulebook import duplicates, outside, schema
from joulebook.findings import Finding, Severity
from joulebook.wording import counted
from joulebook_pipelines.stages.context import WHOLE_LOG, Context, Stage
from joulebook_pipelines.stages.numbers import Numbers
from joulebook_pipelines.store import Store

ORIGINS = ("training log", "benchmark log", "run table", "tracker")
"""Kinds of logs that tell of runs; the first kind that is there is believed."""

RUN_NAME = "whole-log"

MOST_NAMED = 32
"""Runs of one file that are named one by one when another file holds them as well; the rest are counted."""


def _work(context: Context) -> Numbers:
    numbers = Numbers()
    logged = context.store.table("logged_runs")
    if context.study.runs:
        frame = _configured(context, logged)
        numbers.find("", _unclaimed(frame, logged, context.store.table("sources")))
    else:
        frame, late = _without_first_steps(_of_logs(logged), context.store.table("steps"))
        numbers.find("", [_begun_late(late)] if late else [])
        if frame.is_empty():
            frame = _whole_log(context)
            numbers.find("", [_untold(frame, context.store)])
    frame = _with_steps(frame, context.store.table("steps"))
    context.store.replace("runs", frame)
    sources = context.store.table("sources")
    if not (frame["origin"] == WHOLE_LOG).any():
        numbers.find("", outside.find(sources, context.store.table("channels"), frame))
    numbers.find("", outside.find_phases(context.store.table("phases"), sources, frame))
    _name_duplicates(logged, sources, numbers)
    return numbers


def _name_duplicates(logged: pl.DataFrame, sources: pl.DataFrame, numbers: Numbers) -> None:
    """Say which runs several files of one kind hold; files of different kinds complete each other."""
    told = logged.join(sources.select("source_id", "path", "adapter"), on="source_id", maintain_order="left")
    for records in told.partition_by("adapter", maintain_order=True):
        again = duplicates.runs(records).filter(~pl.col("kept")).unique(maintain_order=True)
        paths = dict(records.select("source_id", "path").iter_rows())
        for of_file in again.partition_by("source_id", maintain_order=True):
            more = of_file.height - MOST_NAMED
            for at, row in enumerate(of_file.head(MOST_NAMED).iter_rows(named=True), 1):
                others = (
                    f" So {'is' if more == 1 else 'are'} {counted(more, 'more run')} of this file."
                    if at == MOST_NAMED and more > 0
                    else ""
                )
                path, kept = paths[row["source_id"]], paths[row["kept_source_id"]]
                numbers.find(row["run_id"], [Finding(
                    "duplicate-run", Severity.WARNING, path,
                    f"Run {row['run_id']} is in {path} and in {kept}: one execution told twice, counted once, as {kept} tells it."
                    f"{others} Take a copy or backup out of the study if it is one.",
                    {"run_id": row["run_id"], "path": path, "kept": kept},
                )])  # fmt: skip


def _configured(context: Context, logged: pl.DataFrame) -> pl.DataFrame:
    """Return the runs of study.toml; tokens, samples and batch size that it leaves out come from logs of the same run."""
    known = {r["run_id"]: r for r in logged.iter_rows(named=True)}
    rows = []
    for run in context.study.runs:
        log = known.get(run.id, {})
        labels = json.loads(log["labels"]) if log.get("labels") else {}
        rows.append({
            "run_id": run.id, "host": run.host or "node", "start_utc": run.start, "end_utc": run.end, "origin": "study.toml",
            "tokens": run.tokens if run.tokens is not None else log.get("tokens"),
            "samples": run.samples if run.samples is not None else log.get("samples"),
            "batch_size": run.batch_size if run.batch_size is not None else log.get("batch_size"),
            "tokens_to_target": run.tokens_to_target if run.tokens_to_target is not None else log.get("tokens_to_target"),
            "labels": json.dumps(labels | dict(run.labels), sort_keys=True),
        })  # fmt: skip
    return pl.DataFrame(rows, schema=schema.table("runs").schema)


def _unclaimed(runs: pl.DataFrame, logged: pl.DataFrame, sources: pl.DataFrame) -> list[Finding]:
    """Say which training logs tell of runs that study.toml has under another name, by their times: their steps are in no number."""
    others = logged.filter((pl.col("origin") == "training log") & ~pl.col("run_id").is_in(runs["run_id"].implode()))
    pairs = others.join(runs, on="host", suffix="_of").filter(
        (pl.col("start_utc") < pl.col("end_utc_of")) & (pl.col("end_utc") > pl.col("start_utc_of"))
    )
    pairs = pairs.join(sources.select("source_id", "path"), on="source_id").sort(
        "start_utc_of", "run_id_of", "path", "run_id"
    )
    has_own = set(logged["run_id"])
    found = []
    for part in pairs.partition_by("run_id_of", maintain_order=True):
        run, names = part["run_id_of"][0], part["run_id"].unique(maintain_order=True).to_list()
        paths = part["path"].unique(maintain_order=True).to_list()
        told, of = (", ".join(map(repr, n[:8])) + (" …" if n[8:] else "") for n in (paths, names))
        cure = f'name this [[run]] id = "{names[0]}", or write' if len(names) == 1 else "write"
        found.append(Finding(
            "steps-of-no-run", Severity.NOTE if run in has_own else Severity.WARNING, run,
            f"Steps in {told} fall into run {run} of study.toml, but are told of {of}, which it does not have: their tokens and "
            f"losses are in no number. If they are its own, {cure} run = \"{run}\" into the lines of the log.",
            {"runs": names, "paths": paths},
        ))  # fmt: skip
    return found


def _of_logs(logged: pl.DataFrame) -> pl.DataFrame:
    """Return the runs of the most telling kind of log; what several files say of one run is joined."""
    timed = logged.filter(
        pl.col("start_utc").is_not_null() & pl.col("end_utc").is_not_null() & (pl.col("end_utc") > pl.col("start_utc"))
    )
    present = set(timed["origin"])
    origin = next((o for o in ORIGINS if o in present), None)
    if origin is None:
        return schema.table("runs").empty()
    mine = timed.filter(pl.col("origin") == origin).sort("source_id")
    firsts = [
        pl.col(c).drop_nulls().first()
        for c in ("host", "origin", "tokens", "samples", "batch_size", "tokens_to_target", "labels")
    ]
    joined = mine.group_by("run_id", maintain_order=True).agg(
        pl.col("start_utc").min(), pl.col("end_utc").max(), *firsts
    )
    return schema.conform(joined, "runs")


def _without_first_steps(runs: pl.DataFrame, steps: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Take the work of a first step from a run that begins with the end of it; and return such runs.

    A log that gives ends of steps only does not say when its first step began. The energy before that end is not the
    run's, so neither are the tokens and samples of it.
    """
    # Several files may tell of one run, each with its first step.
    steps = steps.unique(
        [c for c in ("run_id", "step", "end_utc") if c in steps.columns], keep="first", maintain_order=True
    )
    untold = steps.filter(pl.col("start_utc").is_null()).join(
        runs.select("run_id", end_utc="start_utc"), on=["run_id", "end_utc"], how="semi"
    )
    known = steps.group_by("run_id").agg(steps=pl.len())
    first = untold.group_by("run_id").agg(before=pl.col("tokens").sum(), gone=pl.len()).join(known, on="run_id")
    first = first.filter(pl.col("steps") > pl.col("gone"))
    joined = runs.join(first, on="run_id", how="left", maintain_order="left").with_columns(
        tokens=pl.col("tokens") - pl.col("before").fill_null(0.0),
        samples=pl.col("samples") * (1 - pl.col("gone") / pl.col("steps")).fill_null(1.0),
    )
    return joined.select(runs.columns), first["run_id"].sort().to_list()


def _begun_late(run_ids: list[str]) -> Finding:
    """Say that first steps are left out."""
    shown = ", ".join(run_ids[:MOST_NAMED]) + (f" and {len(run_ids) - MOST_NAMED} more" if run_ids[MOST_NAMED:] else "")
    return Finding(
        "first-step-left-out", Severity.NOTE, "training log",
        f"The log gives the ends of steps only: {'run' if len(run_ids) == 1 else 'runs'} {shown} "
        f"{'begins' if len(run_ids) == 1 else 'begin'} with the end of the first step, whose tokens and samples are left out. Log how long "
        "each step took, or give the start in [[run]], to count it.",
        {"run_ids": run_ids},
    )  # fmt: skip


def _whole_log(context: Context) -> pl.DataFrame:
    """Return one run per host over all of its power readings, each by its year where a silence of more than a year divides them."""
    spans = context.store.power_spans()
    if spans.is_empty():
        spans = context.store.power_spans(parts=True)
    several = spans["host"].n_unique() > 1
    name = pl.format("{}-{}", pl.lit(RUN_NAME), "host") if several else pl.lit(RUN_NAME)
    years = pl.format("{}-{}", name, pl.col("start_utc").dt.year())
    name = pl.when(pl.len().over("host") > 1).then(years).otherwise(name)
    return schema.conform(spans.with_columns(run_id=name, origin=pl.lit(WHOLE_LOG), labels=pl.lit("{}")), "runs")


def _untold(whole: pl.DataFrame, store: Store) -> Finding:
    """Say what becomes of a study in which nothing tells of runs."""
    if whole.is_empty():
        return Finding("no-run", Severity.WARNING, RUN_NAME, f"There is no energy to give: {_without_span(store)}")
    divided = whole.height > whole["host"].n_unique()
    parts = ", one for each stretch of readings that no silence of more than a year divides" if divided else ""
    return Finding(
        "run-is-whole-log", Severity.NOTE, RUN_NAME,
        f"Nothing tells of runs, so the whole of the readings is taken as one{parts}. Add [[run]] with start and end to study.toml.",
    )  # fmt: skip


def _without_span(store: Store) -> str:
    """Say why no reading of a study covers a span of time."""
    sources, codes = store.table("sources"), set(store.table("findings")["code"])
    if sources.is_empty():
        return "none of the files could be read. The errors say what each one lacks."
    channels = store.table("channels")
    if channels.is_empty() or not channels["n"].sum():
        return "not one power or energy could be read; joulebook rejects lists why, cell by cell."
    if "scope-unknown" in codes:
        return (
            "nothing says what the readings cover. Add the scope that the error asks for; nothing else is in the way."
        )
    return (
        "nothing tells of runs, and no source holds power over a span of time (at most a single moment). Log power in a loop, or add "
        "the logs of the run."
    )


def _with_steps(runs: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Fill in tokens and batch size of the steps that lie within their run."""
    if runs.is_empty() or steps.is_empty():
        return runs
    inside = steps.join(runs.select("run_id", run_start="start_utc", run_end="end_utc"), on="run_id").filter(
        (pl.col("end_utc") > pl.col("run_start"))
        & (pl.col("end_utc") <= pl.col("run_end") + pl.duration(milliseconds=1))
    )
    sums = inside.group_by("run_id").agg(
        step_tokens=pl.when(pl.col("tokens").is_not_null().any()).then(pl.col("tokens").sum()),
        step_batch=pl.when(pl.col("batch_size").n_unique() == 1).then(pl.col("batch_size").first()),
    )
    joined = runs.join(sums, on="run_id", how="left", maintain_order="left")
    return joined.with_columns(
        tokens=pl.coalesce("tokens", "step_tokens"), batch_size=pl.coalesce("batch_size", "step_batch")
    ).drop("step_tokens", "step_batch")


STAGE = Stage("runs", "finding the runs", _work)
