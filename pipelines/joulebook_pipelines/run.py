"""Ingest, then every stage whose inputs changed."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import time
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from joulebook_pipelines import __version__, ingest, stages
from joulebook_pipelines.config_study import Study
from joulebook_pipelines.filling import Result, Told, fill
from joulebook_pipelines.stages.context import MOST_KEPT_BYTES, Context
from joulebook_pipelines.store import Store, open_store


def analyse(study: Study, out: Path, told: Told | None = None) -> Result:
    """Ingest, then run every stage whose inputs changed since it last ran."""
    told = told or Told()
    filled = fill(study, out, told)
    with open_store(filled.store, read_only=False, memory_limit=study.general.memory_limit) as store:
        _remember_settings(store, study)
        store.keep_readings(MOST_KEPT_BYTES)
        worked = _run_stages(Context(store, study), told)
    return Result(out, filled.store, filled.outcomes, tuple(worked))


def _remember_settings(store: Store, study: Study) -> None:
    sections = {"study": study.general, "site": study.site, "model": study.model, "devices": study.devices}
    settings = {
        f"{name}.{key}": value
        for name, section in sections.items()
        for key, value in section.model_dump(mode="json").items()
    }
    with store.transaction():
        store.remember(settings | {"study.name": study.name})


def _run_stages(context: Context, told: Told) -> list[str]:
    """Run the stages in order; one is skipped when its fingerprint, which holds those before it, is the same."""
    worked = []
    log = {r["stage"]: r["fingerprint"] for r in context.store.table("stage_log").iter_rows(named=True)}
    so_far = _inputs(context)
    for stage in stages.STAGES:
        so_far = hashlib.sha256(f"{so_far}:{stage.name}".encode()).hexdigest()
        if log.get(stage.name) == so_far:
            continue
        told.step(stage.title)
        began, started = time.perf_counter(), datetime.now(UTC)
        with context.store.transaction():
            numbers = stage.work(context)
            results, parts = numbers.frames()
            context.store.replace_numbers(stage.name, results, parts)
            found = [
                ingest.finding_rows([finding], stage=stage.name, run_id=run_id) for run_id, finding in numbers.findings
            ]
            context.store.replace_findings(stage.name, pl.concat([ingest.finding_rows([], stage=stage.name), *found]))
            context.store.log_stage({
                "stage": stage.name, "fingerprint": so_far, "code_version": __version__, "started_utc": started,
                "seconds": time.perf_counter() - began, "rows_out": results.height,
            })  # fmt: skip
        worked.append(stage.name)
    return worked


def _inputs(context: Context) -> str:
    """Return a hash of everything that the stages' results depend on: code, files, configuration."""
    sources = context.store.table("sources").select("source_id", "path", "sha256", "adapter", "host", "clock").rows()
    study = context.study
    settings = [
        repr(x) for x in (study.general, study.site, study.model, study.devices, study.runs, study.idles, study.sweeps,
                          study.campaigns, study.calibrations)
    ]  # fmt: skip
    beside = [
        _digest(study.beside(str(v)))
        for v in (study.site.carbon_kg_per_kwh, study.site.price_per_kwh)
        if isinstance(v, str)
    ]
    beside += [_digest(study.beside(c.file)) for c in study.calibrations]
    read = {k: v for k, v in context.store.study.items() if k.startswith("source:")}
    text = json.dumps([code_digest(), sources, settings, beside, read], default=str, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


@functools.cache
def code_digest() -> str:
    """Return a hash of the code of both packages: a result is stale when the code that made it has changed.

    Sizes and times of the files stand for their content: reading them all would take longer than an unchanged run. Asked
    once a process, which runs the code that it began with.
    """
    digest = hashlib.sha256()
    for package in ("joulebook", "joulebook_pipelines"):
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            continue
        for file in sorted(Path(spec.origin).parent.rglob("*.py")):
            state = file.stat()
            digest.update(f"{file.name}:{state.st_size}:{state.st_mtime_ns};".encode())
    return digest.hexdigest()
