"""Which channels each run's numbers are made from."""

from __future__ import annotations

import polars as pl

from joulebook import instrument_parts, instruments, schema
from joulebook.findings import Finding, Severity
from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.stages.context import Context, Run, Stage
from joulebook_pipelines.stages.instrument_facts import InstrumentFacts
from joulebook_pipelines.stages.numbers import Numbers

HALF_INSIDE = 0.5
"""Share of its own length, or of the run's, that some reading of a channel must have inside of the run."""

LEAST_ZONE_S = 600.0
"""No two zones are nearer to each other [s]."""

FAMILY_OF = {a.name: a.family for a in ADAPTERS}

TABLES = frozenset({"influx-lines", "meter-csv", "meter-json", "series-csv"})
"""Readers of any table: meters are logged so, and sensors of cards and processors as well."""

IN_THE_LINE = ("node", "rack", "facility")
"""Boundaries that a meter in the supply line has; that of a card or a processor has one only where study.toml says so."""


def _work(context: Context) -> Numbers:
    numbers = Numbers()
    facts, family = InstrumentFacts(context.store), _family(context)
    frames = []
    for run in context.runs():
        seen = context.store.channels_within(run.start_utc, run.end_utc)
        seen = seen.with_columns(family=family)
        mine = _of_run(seen, run)
        judged = instruments.judged(facts.of(mine, run.duration_s))
        choice = instruments.shown(judged)
        frames.append(
            choice.with_columns(run_id=pl.lit(run.run_id), **_passed()).drop("passed_from_s", "passed_until_s")
        )
        numbers.find(run.run_id, _nothing_found(context, run) if choice.is_empty() else ())
        sources, channels = context.store.table("sources"), context.store.table("channels")
        numbers.find(run.run_id, instruments.in_several_files(choice, sources, channels))
        paths = dict(sources.select("source_id", "path").iter_rows())
        elsewhere = seen.filter(pl.col("host") != run.host)
        numbers.find(run.run_id, instrument_parts.find(judged, paths, elsewhere, subject=run.run_id))
    context.store.replace("instruments", pl.concat(frames) if frames else context.store.table("instruments").clear())
    return numbers


def _family(context: Context) -> pl.Expr:
    """Return what kind of instrument a channel is: a table that tells of a card or a processor is the log of its sensor."""
    said = [s.name for s in context.study.sources_resolved() if s.options.scope]
    told = context.store.table("sources").filter(pl.col("path").is_in(said))["source_id"]
    inside = (
        pl.col("adapter").is_in(TABLES)
        & ~pl.col("scope").is_in(IN_THE_LINE)
        & ~pl.col("source_id").is_in(told.implode())
    )
    known = pl.col("adapter").replace_strict(FAMILY_OF, default="sensor", return_dtype=pl.String)
    return pl.when(inside).then(pl.lit("sensor")).otherwise(known)


def _passed() -> dict[str, pl.Expr]:
    """Return the time for which a better instrument is used, as stamps."""
    seconds = {f"passed_{end}_utc": pl.col(f"passed_{end}_s") for end in ("from", "until")}
    return {name: (1e6 * s).round().cast(pl.Int64).cast(schema.UTC) for name, s in seconds.items()}


def _of_run(seen: pl.DataFrame, run: Run) -> pl.DataFrame:
    """Return the channels of the run's host; a host that only meters know belongs to every run.

    A channel of which no reading lies in the run by half speaks of the time beside it: stamps of whole seconds let the row
    of one run reach into the next.
    """
    seen = seen.filter(pl.col("inside_ratio") >= HALF_INSIDE)
    if run.devices:
        board = pl.col("scope") == "board"
        seen = seen.filter(~board | pl.col("device").is_in(run.devices))
    hosts = set(seen["host"])
    return seen.filter(pl.col("host") == run.host) if run.host in hosts else seen


def _nothing_found(context: Context, run: Run) -> list[Finding]:
    """Say how far the nearest readings are: a distance of whole hours is a wrong zone."""
    spans = context.store.power_spans()
    if spans.is_empty():
        return [
            Finding(
                "no-power-readings",
                Severity.ERROR,
                run.run_id,
                "No source of the study holds a power reading that could be used.",
            )
        ]
    distances = [
        min(((s - run.end_utc).total_seconds(), (e - run.start_utc).total_seconds()), key=abs)
        for s, e in zip(spans["start_utc"], spans["end_utc"], strict=True)
    ]
    nearest_s = min(distances, key=abs)
    hours = " If that is about a whole number of hours, a timezone in study.toml is wrong."
    near = " What was read around it speaks of the time beside it."
    return [Finding(
        "no-readings-in-run", Severity.ERROR, run.run_id,
        f"No reading falls into the run ({run.start_utc:%Y-%m-%d %H:%M:%S} to {run.end_utc:%H:%M:%S} UTC); the nearest readings are "
        f"{abs(nearest_s):.0f} s {'after' if nearest_s > 0 else 'before'} it.{hours if abs(nearest_s) >= LEAST_ZONE_S else near}",
        {"distance_s": nearest_s},
    )]  # fmt: skip


STAGE = Stage("instruments", "choosing instruments", _work)
