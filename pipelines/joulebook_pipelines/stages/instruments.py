"""Which channels each run's numbers are made from."""

from __future__ import annotations

import math

import polars as pl

from joulebook import instrument_parts, instruments, schema
from joulebook.findings import Finding, Severity
from joulebook.wording import counted, lasting
from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.stages import instrument_facts
from joulebook_pipelines.stages.context import Context, Run, Stage
from joulebook_pipelines.stages.numbers import Numbers

HALF_INSIDE = 0.5
"""Share of its own length, or of the run's, that some reading of a channel must have inside of the run."""

LEAST_ZONE_S = 600.0
"""No two zones are nearer to each other [s]."""

FAMILY_OF = {a.name: a.family for a in ADAPTERS}

_OF_RUNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "run_id": pl.String,
    "run_host": pl.String,
    "length_s": pl.Float64,
    "devices": pl.List(pl.String),
}
"""What of a run tells which channels are its own."""

TABLES = frozenset({"influx-lines", "meter-csv", "meter-json", "series-csv"})
"""Readers of any table: meters are logged so, and sensors of cards and processors as well."""

IN_THE_LINE = ("node", "rack", "facility")
"""Boundaries that a meter in the supply line has; that of a card or a processor has one only where study.toml says so."""


def _work(context: Context) -> Numbers:
    numbers, runs = Numbers(), context.runs()
    sources, channels = context.store.table("sources"), context.store.table("channels")
    lengths = pl.DataFrame([(r.run_id, r.host, r.duration_s, r.devices) for r in runs], schema=_OF_RUNS, orient="row")
    seen = (
        context.store.channels_within_runs()
        .with_columns(family=_family(context))
        .join(lengths, on="run_id", maintain_order="left")
    )
    judged = instruments.judged(instrument_facts.of(context.store, _of_their_runs(seen)))
    choice = instruments.shown(judged)
    passed = choice.with_columns(**_passed()).drop("passed_from_s", "passed_until_s")
    context.store.replace("instruments", passed)
    chosen = set(choice["run_id"])
    for run in runs:
        numbers.find(run.run_id, () if run.run_id in chosen else _nothing_found(context, run))
    for part in choice.partition_by("run_id", maintain_order=True):
        if (part["reason"] == instruments.TWICE).any():
            numbers.find(part["run_id"][0], instruments.in_several_files(part, sources, channels))
    paths = dict(sources.select("source_id", "path").iter_rows())
    for found in instrument_parts.find(judged, paths, seen.filter(pl.col("host") != pl.col("run_host"))):
        numbers.find(found.subject, [found])
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


def _of_their_runs(seen: pl.DataFrame) -> pl.DataFrame:
    """Return the channels of each run's host; a host that only meters know belongs to every run.

    A channel of which no reading lies in the run by half speaks of the time beside it: stamps of whole seconds let the row
    of one run reach into the next.
    """
    named = pl.col("devices").list.len() > 0
    others = named & (pl.col("scope") == "board") & ~pl.col("device").is_in(pl.col("devices"))
    seen = seen.filter((pl.col("inside_ratio") >= HALF_INSIDE) & ~others)
    own = pl.col("host") == pl.col("run_host")
    return seen.filter(own | ~own.any().over("run_id"))


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
    if ((spans["start_utc"] < run.end_utc) & (spans["end_utc"] > run.start_utc)).any():
        return [_in_a_hole(context, run)]
    distances: list[float] = [
        min((s - run.end_utc).total_seconds(), (e - run.start_utc).total_seconds(), key=math.fabs)
        for s, e in zip(spans["start_utc"], spans["end_utc"], strict=True)
    ]
    nearest_s = min(distances, key=math.fabs)
    hours = " If that is about a whole number of hours, a timezone in study.toml is wrong."
    near = " What was read around it speaks of the time beside it."
    return [Finding(
        "no-readings-in-run", Severity.ERROR, run.run_id,
        f"No reading falls into the run ({run.start_utc:%Y-%m-%d %H:%M:%S} to {run.end_utc:%H:%M:%S} UTC); the nearest readings are "
        f"{lasting(abs(nearest_s))} {'after' if nearest_s > 0 else 'before'} it.{hours if abs(nearest_s) >= LEAST_ZONE_S else near}",
        {"distance_s": nearest_s},
    )]  # fmt: skip


def _in_a_hole(context: Context, run: Run) -> Finding:
    """Say of a run between readings how far these are, and what was rejected between them."""
    before_s, after_s, rejected = context.store.around(run.start_utc, run.end_utc)
    ends = [f"{lasting(s)} {word} it" for s, word in ((before_s, "before"), (after_s, "after")) if s is not None]
    told = " What was read around it speaks of the time beside it."
    if rejected:
        n, path, line, raw, rule = rejected
        told = f" {counted(n, 'cell')} between them {'was' if n == 1 else 'were'} rejected, first {path}:{line}: {raw!r} ({rule})."
    return Finding(
        "no-readings-in-run", Severity.ERROR, run.run_id,
        f"No reading falls into the run ({run.start_utc:%Y-%m-%d %H:%M:%S} to {run.end_utc:%H:%M:%S} UTC), though there are some around "
        f"it: the nearest are {' and '.join(ends) or 'across its ends'}.{told}",
        {"before_s": before_s, "after_s": after_s, "rejected": rejected[0] if rejected else 0},
    )  # fmt: skip


STAGE = Stage("instruments", "choosing instruments", _work)
