"""Sweeps and campaigns: which setting is best, and what each change saved."""

from __future__ import annotations

import fnmatch
import json

import polars as pl

from joulebook import campaign, confounds, cut_short, decomposition, objectives, schema, sweep, sweet_spot
from joulebook.findings import Finding, Severity
from joulebook.objectives import Objective
from joulebook.wording import counted
from joulebook_pipelines.config_schema import Campaign, Sweep
from joulebook_pipelines.stages.context import Context, Stage
from joulebook_pipelines.stages.numbers import Numbers

OBJECTIVES = (
    objectives.ENERGY_TO_TARGET, objectives.ENERGY_PER_TOKEN, objectives.TIME_TO_TARGET, objectives.TIME_PER_TOKEN,
)  # fmt: skip
"""What a sweep is judged by, as far as its runs say enough."""

LOGGED = ("power_limit_w", "sm_clock_hz", "memory_clock_hz")
"""Knobs that logs of cards tell beside power, where no label of the run does."""

ONE_SETTING = 0.9
"""Share of a run's readings that must show the same value for it to be the run's setting."""

LASTED_S = (pl.col("end_utc") - pl.col("start_utc")).dt.total_microseconds() / 1e6
"""How long a run lasted [s]."""


def _sweeps(context: Context) -> Numbers:
    numbers = Numbers()
    curves, spots = [], []
    for entry in context.study.sweeps:
        points = _points(context, entry)
        numbers.find("", _unset(entry, points))
        runs, short = cut_short.without(points.drop_nulls("x"), kind="x", name=entry.knob)
        runs, failed = cut_short.without_failed(runs, kind="x", name=entry.knob)
        numbers.find("", (*short, *failed))
        if runs.is_empty():
            continue
        numbers.find("", _unreached(entry, runs))
        name = pl.lit(entry.name).alias("sweep")
        curves.append(schema.conform(sweep.curves(runs).with_columns(name, knob=pl.lit(entry.knob)), "sweeps"))
        for objective in _objectives(entry):
            if objective.basis == "target" and runs["tokens_to_target"].null_count() == runs.height:
                continue
            found = sweet_spot.find(runs, objective=objective)
            spots.append(schema.conform(found.row.with_columns(name), "sweet_spots"))
            numbers.find("", found.findings)
    context.store.replace("sweeps", pl.concat(curves) if curves else schema.table("sweeps").empty())
    context.store.replace("sweet_spots", pl.concat(spots) if spots else schema.table("sweet_spots").empty())
    return numbers


def _objectives(entry: Sweep) -> tuple[Objective, ...]:
    slowest = entry.max_slowdown_ratio
    if slowest is None:
        return OBJECTIVES
    return (*OBJECTIVES, objectives.energy_within(slowest), objectives.energy_within(slowest, basis="token"))


def _points(context: Context, entry: Sweep) -> pl.DataFrame:
    """Return one row a run of the sweep: the knob and what was measured at its scope."""
    runs = context.store.runs()
    wanted = [r for r in runs["run_id"] if fnmatch.fnmatchcase(r, entry.runs)]
    runs = runs.filter(pl.col("run_id").is_in(wanted))
    label = entry.knob.removeprefix("labels.")
    x = [r[entry.knob] if entry.knob in r else json.loads(r["labels"]).get(label) for r in runs.iter_rows(named=True)]
    logged = _logged(context, entry.knob)
    numbers = _wide(context, runs["run_id"].to_list(), entry.scope, ("energy_per_token_j", "mean_power_w"))
    steps = context.store.step_times()
    target = _tokens_to_target(context, entry, runs)
    joined = (
        runs.select("run_id", "tokens", duration_s=LASTED_S).with_columns(x=pl.Series(x, dtype=pl.Float64, strict=False))
        .join(logged, on="run_id", how="left", maintain_order="left").with_columns(pl.coalesce("x", "setting").alias("x")).drop("setting")
        .join(numbers, on="run_id", how="left").join(steps, on="run_id", how="left").join(target, on="run_id", how="left")
    )  # fmt: skip
    return joined


def _unreached(entry: Sweep, runs: pl.DataFrame) -> list[Finding]:
    """Name the settings that have no tokens to the target in any run, where others have: they are in no comparison to the target."""
    known = runs.group_by("x").agg(reached=pl.col("tokens_to_target").is_not_null().any()).sort("x")
    short = known.filter(~pl.col("reached"))["x"].to_list()
    if not short or len(short) == known.height:
        return []
    named, target = ", ".join(f"{x:g}" for x in short), entry.target_loss
    why = (
        "tokens_to_target is not given"
        if target is None
        else f"the smoothed loss does not stay at or below {target:g} before the log ends"
    )
    return [Finding(
        "target-not-reached", Severity.WARNING, entry.name,
        f"At {entry.knob} {named} no run reaches the target: {why}. These settings are in no comparison to the target, so one of them may "
        "be the best; let them run longer.", {"settings": short},
    )]  # fmt: skip


def _logged(context: Context, knob: str) -> pl.DataFrame:
    """Return ``run_id, setting`` of the knobs that the logs of cards tell, where it did not change within the run."""
    told = context.store.settings_by_run(knob if knob in LOGGED else "")
    return told.filter(pl.col("share_ratio") >= ONE_SETTING).select("run_id", "setting")


def _unset(entry: Sweep, points: pl.DataFrame) -> list[Finding]:
    """Name the runs of a sweep of which nothing tells the setting."""
    without = points.filter(pl.col("x").is_null())["run_id"].to_list()
    if not without and points.height:
        return []
    label = entry.knob.removeprefix("labels.")
    said = "batch_size = …" if label == "batch_size" else f"labels = {{ {label} = … }}"
    named = f"{', '.join(without[:8])}{' …' if len(without) > 8 else ''}"
    message = (
        f"Nothing tells {label} of {counted(len(without), 'run')} ({named}), so the sweep is made without: write {said} into the [[run]]."
        if without
        else f"No run is called {entry.runs!r}, so the sweep is empty: correct runs in the [[sweep]]."
    )
    left = len(without) < points.height
    return [Finding(
        "sweep-without-setting", Severity.NOTE if left else Severity.WARNING, entry.name, message, {"knob": entry.knob, "runs": without}
    )]  # fmt: skip


def _wide(context: Context, runs: list[str], scope: str, metrics: tuple[str, ...]) -> pl.DataFrame:
    """Return ``run_id`` and each metric with its interval as columns."""
    rows = context.store.results().filter(
        pl.col("run_id").is_in(runs) & (pl.col("scope") == scope) & (pl.col("device") == "") & (pl.col("phase") == "")
    )
    wide = pl.DataFrame({"run_id": runs})
    for metric in metrics:
        mine = rows.filter(pl.col("metric") == metric).select(
            "run_id",
            pl.col("value").alias(metric),
            pl.col("lo").alias(f"{metric}_lo"),
            pl.col("hi").alias(f"{metric}_hi"),
        )
        wide = wide.join(mine, on="run_id", how="left")
    return wide


def _tokens_to_target(context: Context, entry: Sweep, runs: pl.DataFrame) -> pl.DataFrame:
    """Return tokens to the target loss: as given, else from the loss of the training log."""
    given = runs.select("run_id", "tokens_to_target")
    if entry.target_loss is None or given["tokens_to_target"].null_count() == 0:
        return given
    steps = (
        context.store.table("steps")
        .drop_nulls("loss")
        .select("run_id", "step", "tokens", "loss")
        .sort("run_id", "step")
    )
    wanted = given.filter(pl.col("tokens_to_target").is_null())["run_id"].to_list()
    steps = steps.filter(pl.col("run_id").is_in(wanted))
    if steps.is_empty():
        return given
    found = sweep.tokens_to_target(steps, entry.target_loss).select("run_id", found="tokens_to_target")
    joined = given.join(found, on="run_id", how="left")
    return joined.select("run_id", pl.coalesce("tokens_to_target", "found").alias("tokens_to_target"))


def _campaigns(context: Context) -> Numbers:
    numbers = Numbers()
    frames: list[pl.DataFrame] = []
    parts: list[pl.DataFrame] = []
    for entry in context.study.campaigns:
        runs, short = cut_short.without(_campaign_runs(context, entry), kind="variant")
        numbers.find("", short)
        numbers.find("", _confounds(context, entry))
        done = campaign.effects(
            runs,
            order=entry.order,
            metric=entry.metric,
            higher_is_better=entry.metric in {"tokens_per_j", "tokens_per_s", "mfu_ratio"},
        )
        frames.append(schema.conform(done.changes.with_columns(campaign=pl.lit(entry.name)), "changes"))
        numbers.find("", done.findings)
        parts += _decomposed(context, entry, done)
    empty = schema.table("decompositions").empty()
    context.store.replace("decompositions", pl.concat(parts) if parts else empty)
    context.store.replace("changes", pl.concat(frames) if frames else schema.table("changes").empty())
    return numbers


def _confounds(context: Context, entry: Campaign) -> tuple[Finding, ...]:
    """Return which labels, batch sizes or hosts changed with a change: the order of repeats is none of them."""
    runs = context.store.runs().select("host", "batch_size", "labels")
    labels = [json.loads(text) for text in runs["labels"]]
    names = sorted({str(name) for told in labels for name in told} - {"variant", "repeat", "host", "batch_size"})
    columns = {name: [None if told.get(name) is None else str(told[name]) for told in labels] for name in names}
    size = [None if b is None else f"{b:g}" for b in runs["batch_size"]]
    columns = {"variant": [told.get("variant") for told in labels], "batch_size": size, **columns}
    table = pl.DataFrame(
        {"host": runs["host"], **columns}, schema_overrides=dict.fromkeys(columns, pl.String), strict=False
    )
    return confounds.find(table, order=entry.order, columns=["host", "batch_size", *names])


def _decomposed(context: Context, entry: Campaign, done: campaign.Effects) -> list[pl.DataFrame]:
    """Return what each effect is made of: duration, power level, phase mix."""
    if entry.metric != "energy_per_token_j" or "time_per_token_s" not in done.runs.columns:
        return []
    phases = context.store.phase_shares()
    found = decomposition.split(done, phases=phases if phases.height else None)
    known = [c for c in found.parts.columns if c in schema.table("decompositions").schema]
    return [schema.conform(found.parts.select(known).with_columns(campaign=pl.lit(entry.name)), "decompositions")]


def _campaign_runs(context: Context, entry: Campaign) -> pl.DataFrame:
    """Return one row a run and scope: the campaign's own scope, and the others for the picture side by side."""
    runs = context.store.aligned_runs()
    variants = [json.loads(r).get("variant") for r in runs["labels"]]
    runs = runs.with_columns(variant=pl.Series(variants, dtype=pl.String)).filter(pl.col("variant").is_in(entry.order))
    rows = context.store.results().filter(
        (pl.col("metric") == entry.metric)
        & (pl.col("device") == "")
        & (pl.col("phase") == "")
        & pl.col("run_id").is_in(runs["run_id"].to_list())
    )
    scopes = [entry.scope, *(s for s in ("board", "node", "rack") if s != entry.scope and s in set(rows["scope"]))]
    frames = []
    for scope in scopes:
        mine = rows.filter(pl.col("scope") == scope).select("run_id", "value", "coverage_ratio")
        frames.append(runs.join(mine, on="run_id", how="left").with_columns(scope=pl.lit(scope)))
    inlet = context.store.inlet_by_run()
    whole = (
        pl.concat(frames)
        .join(inlet, on="run_id", how="left")
        .with_columns(
            time_per_token_s=pl.when(pl.col("tokens") > 0).then(LASTED_S / pl.col("tokens")), duration_s=LASTED_S
        )
        .select(
            "run_id",
            "scope",
            "variant",
            "value",
            "start_utc",
            "inlet_c",
            "coverage_ratio",
            "time_per_token_s",
            "duration_s",
        )
    )
    return whole.drop([c for c in ("inlet_c", "time_per_token_s") if whole[c].null_count() == whole.height])


SWEEPS = Stage("sweeps", "finding sweet spots", _sweeps)
CAMPAIGNS = Stage("campaigns", "comparing variants", _campaigns)
