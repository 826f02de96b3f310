"""The history of studies: their runs by week and kind, with the numbers that weeks are judged by, from stores."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from joulebook import iso_weeks, schema, weekly_means
from joulebook_pipelines import config, run
from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.filling import Told
from joulebook_pipelines.store import Store, open_store

METRICS = (
    "energy_per_token_j", "tokens_per_j", "energy_j", "mfu_ratio", "carbon_kg", "cost", "cv_ratio", "waste_ratio",
    "stable_power_w",
)  # fmt: skip
"""What a week is judged by, in the order of the page."""
WASTED = ("stall_energy_j", "checkpoint_energy_j", "rework_energy_j")
"""Energy inside a run that did no new work; its share of the run's energy is ``waste_ratio``."""
GAP = "gap_idle_energy_j"
IDLE = "idle_power_w"
_READ = (*METRICS, *WASTED, GAP, IDLE)
_RUNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "run_id": pl.String, "week": pl.String, "host": pl.String, "start_utc": schema.UTC, "end_utc": schema.UTC,
    "tokens": pl.Float64, "variant": pl.String, "batch_size": pl.Float64, "model": pl.String, "hardware": pl.String,
    "declared": pl.Boolean, "store": pl.Int64,
}  # fmt: skip
_NUMBERS: dict[str, pl.DataType | type[pl.DataType]] = {
    "run_id": pl.String, "scope": pl.String, "metric": pl.String, "value": pl.Float64, "lo": pl.Float64, "hi": pl.Float64,
    "store": pl.Int64,
}  # fmt: skip


@dataclass(frozen=True)
class History:
    """One study over time; stores whose studies have the same name are one history.

    Parameters
    ----------
    name
        Name of the study.
    runs
        ``run_id, week, host, start_utc, end_utc, tokens, kind, declared, store`` in order of time. ``kind`` is what runs
        must share to be compared: variant, batch size, model, and host and cards where they differ.
    numbers
        ``run_id, scope, metric, value, lo, hi, store, week, kind, tokens, declared``: one number a row.
    idle
        ``kind`` (the host), ``scope, metric, week, value``: the idle power that each store found, at its last week.
    findings
        Findings of the stores, with ``store``.
    currency
        Of the costs.
    reports
        The stores' own reports, newest last, as far as they are there.
    """

    name: str
    runs: pl.DataFrame
    numbers: pl.DataFrame
    idle: pl.DataFrame
    findings: pl.DataFrame
    currency: str = ""
    reports: tuple[Path, ...] = ()

    @property
    def weeks(self) -> list[str]:
        """Weeks with a run, oldest first."""
        return self.runs["week"].unique().sort().to_list()

    @cached_property
    def judged(self) -> pl.DataFrame:
        """The numbers that weeks are judged by."""
        return self.numbers.filter(pl.col("metric").is_in(METRICS))

    @cached_property
    def by_week(self) -> pl.DataFrame:
        """Their means, week by week."""
        return weekly_means.by_week(self.judged)


@dataclass(frozen=True)
class _Read:
    name: str
    runs: pl.DataFrame
    numbers: pl.DataFrame
    findings: pl.DataFrame
    currency: str
    report: Path


def locate(path: Path) -> Path | None:
    """Return the store that a path means: a file, a folder with one, or a study with results; ``None`` where there is none."""
    if path.is_file() and path.suffix != ".toml":
        return path
    folder = path.parent if path.is_file() else path
    return next((p for p in (folder / "study.duckdb", folder / "out" / "study.duckdb") if p.is_file()), None)


def analysed(path: Path, told: Told | None = None) -> Path:
    """Return the store of a path; a study that has none is analysed first.

    Raises
    ------
    ConfigError
        It is no study.
    """
    found = locate(path)
    if found is not None:
        return found
    study = config.load(path, adapters=[a.name for a in ADAPTERS])
    return run.analyse(study, study.folder / "out", told).store


def read(stores: Iterable[Path]) -> list[History]:
    """Return the histories that stores hold, by name of the study.

    Parameters
    ----------
    stores
        DuckDB files.
    """
    found: dict[str, list[_Read]] = {}
    for number, path in enumerate(dict.fromkeys(p.resolve() for p in stores)):
        with open_store(path) as store:
            one = _read(store, path, number)
        found.setdefault(one.name, []).append(one)
    return [_joined(name, found[name]) for name in sorted(found)]


def _read(store: Store, path: Path, number: int) -> _Read:
    settings = store.study
    name = str(settings.get("study.name") or path.parent.parent.name)
    of_runs = (
        (pl.col("device") == "") & (pl.col("phase") == "") & (pl.col("run_id") != "") & pl.col("metric").is_in(_READ)
    )
    numbers = (
        store.results()
        .filter(of_runs)
        .select("run_id", "scope", "metric", "value", "lo", "hi")
        .sort("run_id", "scope", "metric")
    )
    at = pl.lit(number).cast(pl.Int64).alias("store")
    findings = store.table("findings").select("run_id", "code", "severity", "subject", "message").with_columns(at)
    runs = _runs(store).with_columns(at).select(pl.col(c).cast(t) for c, t in _RUNS.items())
    numbers = numbers.with_columns(at).select(pl.col(c).cast(t) for c, t in _NUMBERS.items())
    return _Read(name, runs, numbers, findings, str(settings.get("site.currency") or ""), path.parent / "report.html")


def _runs(store: Store) -> pl.DataFrame:
    runs = store.runs().drop_nulls(["start_utc", "end_utc"])
    labels = [json.loads(text) if text else {} for text in runs["labels"]]
    told = {k: pl.Series([_text(each.get(k)) for each in labels], dtype=pl.String) for k in ("variant", "model")}
    declared = pl.any_horizontal(*(pl.col(c).is_not_null() for c in ("variant", "model", "batch_size")))
    return (
        runs.with_columns(week=iso_weeks.of_instant(pl.col("start_utc")), **told)
        .with_columns(declared=declared).join(store.hardware(), on="run_id", how="left")
    )  # fmt: skip


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _joined(name: str, parts: Sequence[_Read]) -> History:
    runs = pl.concat([p.runs for p in parts])
    # A run that two stores tell of is counted once, as the later store has it.
    runs = runs.sort("store").unique(["run_id", "start_utc"], keep="last", maintain_order=True)
    runs = runs.with_columns(kind=_kind(runs)).sort("start_utc", "run_id")
    about = runs.select("run_id", "store", "week", "kind", "host", "tokens", "declared")
    numbers = pl.concat([p.numbers for p in parts]).join(about, on=["run_id", "store"], maintain_order="left")
    numbers = pl.concat([numbers, _waste(numbers)])
    columns = ["run_id", "week", "host", "start_utc", "end_utc", "tokens", "kind", "declared", "store"]
    reports = tuple(p.report for p in parts if p.report.is_file())
    currency = next((p.currency for p in reversed(parts) if p.currency), "")
    judged = numbers.filter(pl.col("metric").is_in((*METRICS, *WASTED, GAP))).drop("host")
    findings = pl.concat([p.findings for p in parts])
    return History(name, runs.select(columns), judged, _idle(numbers), findings, currency, reports)


def _kind(runs: pl.DataFrame) -> pl.Series:
    """Return what runs must share to be compared, as text; host and cards are named only where they differ."""
    batch = pl.format("batch size {}", pl.col("batch_size").round(3).cast(pl.String).str.strip_suffix(".0"))
    parts = [pl.col("model"), pl.col("variant"), batch]
    if runs["hardware"].n_unique() > 1:
        parts.append(pl.col("hardware").fill_null("cards unknown"))
    if runs["host"].n_unique() > 1:
        parts.append(pl.format("host {}", "host"))
    return runs.select(pl.concat_str(parts, separator=" · ", ignore_nulls=True).alias("kind"))["kind"]


def _waste(numbers: pl.DataFrame) -> pl.DataFrame:
    """Return the share of each run's energy that stalls, saves and repeated steps took."""
    key = ["run_id", "store", "scope"]
    wasted = (
        numbers.filter(pl.col("metric").is_in(WASTED))
        .drop_nulls("value")
        .group_by(key, maintain_order=True)
        .agg(wasted=pl.col("value").sum())
    )
    energy = numbers.filter((pl.col("metric") == "energy_j") & (pl.col("value") > 0))
    made = energy.join(wasted, on=key, maintain_order="left").with_columns(
        metric=pl.lit("waste_ratio"), value=pl.col("wasted") / pl.col("value"), lo=pl.lit(None, pl.Float64), hi=pl.lit(None, pl.Float64),
    )  # fmt: skip
    return made.select(numbers.columns)


def _idle(numbers: pl.DataFrame) -> pl.DataFrame:
    """Return one idle level a store, host and scope: a store finds one for all its runs. Levels of one week are averaged."""
    found = numbers.filter(pl.col("metric") == IDLE).drop_nulls("value")
    levels = found.group_by("store", "host", "scope", "value", maintain_order=True).agg(pl.col("week").max())
    by_week = levels.group_by("host", "scope", "week", maintain_order=True).agg(pl.col("value").mean())
    return by_week.select(kind="host", scope="scope", metric=pl.lit(IDLE), week="week", value="value").sort(
        "kind", "scope", "week"
    )
