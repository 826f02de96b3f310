"""Many studies at once: each is independent, so they are mapped over processes of this machine or of many.

A study that fails is reported and stops no other; work that a dying worker left behind is done again by another.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from joulebook_pipelines import config, fleet_pools, fleet_studies, fleet_tables, run
from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.config_errors import ConfigError
from joulebook_pipelines.fleet_pools import Pool
from joulebook_pipelines.fleet_tables import Place
from joulebook_pipelines.logs.contract import LogRefusedError
from joulebook_pipelines.store import StoreError, open_store


@dataclass(frozen=True)
class Task:
    """One study of a fleet, as a worker is told: paths as text, so that any machine can read them."""

    study: str
    path: str
    out: str
    report: bool = True
    staged: bool = False


@dataclass(frozen=True)
class Outcome:
    """What became of a study: ``done``, ``refused`` (no file could be read) or ``failed``, and why."""

    study: str
    path: str
    status: str
    runs: int = 0
    errors: int = 0
    warnings: int = 0
    reason: str = ""


Told = Callable[[Outcome], None]


def map_over(paths: Sequence[Path], out: str, pool: Pool, *, workers: int, report: bool = True, staged: bool = False,
             told: Told | None = None) -> list[Outcome]:  # fmt: skip
    """Do the main job for many studies and put their tables into a shared folder.

    Parameters
    ----------
    paths
        Studies, as :func:`studies` returns them.
    out
        Shared folder, a path or a URL: ``STUDY/`` with store and report, ``tables/`` with the tables of all.
    pool
        Where the work is done: :func:`processes`, :func:`here`, :func:`dask`, or anything that makes an executor.
    workers
        Most workers at a time.
    report
        Whether notebooks and pages are made as well.
    staged
        Whether workers work in a folder of their own and put results into the shared one when they are done; always so
        for a URL.
    told
        Told of each study when it is done.

    Returns
    -------
    list of Outcome
        In the order of the studies.
    """
    place = Place(out)
    at = place.at if place.remote else str(Path(out).absolute())
    staged = staged or place.remote
    tasks = [
        Task(n, str(p.absolute()), at, report, staged) for n, p in zip(fleet_studies.names(paths), paths, strict=True)
    ]
    done = _until_done(tasks, pool, workers, told or (lambda _outcome: None))
    outcomes = [done[t.study] for t in tasks]
    for outcome in outcomes:
        if outcome.status != "done":
            fleet_tables.withdraw(place, outcome.study)
    text = json.dumps({"studies": [asdict(o) for o in outcomes]}, indent=1, ensure_ascii=False)
    place.put("fleet.json", (text + "\n").encode())
    return outcomes


def _until_done(tasks: Sequence[Task], pool: Pool, workers: int, told: Told) -> dict[str, Outcome]:
    """Give out tasks until each has an outcome; what kills its worker again and again is at last tried alone."""
    done: dict[str, Outcome] = {}
    for attempt in range(fleet_pools.RETRIES + 1):
        left = [t for t in tasks if t.study not in done]
        last = attempt == fleet_pools.RETRIES
        for batch in [[t] for t in left] if last else [left]:
            if not batch:
                continue
            with pool(1 if last else min(workers, len(batch))) as executor:
                for outcome in _round(batch, executor):
                    done[outcome.study] = outcome
                    told(outcome)
            if last and batch[0].study not in done:
                lost = Outcome(
                    batch[0].study,
                    batch[0].path,
                    "failed",
                    reason="the worker died, also when it had nothing else to do",
                )
                done[lost.study] = lost
                told(lost)
    return done


def _round(tasks: Sequence[Task], executor: Executor) -> Iterator[Outcome]:
    """Return outcomes as they come; tasks whose worker died have none."""
    given: dict[Future[Outcome], Task] = {}
    for task in tasks:
        try:
            given[executor.submit(work, task)] = task
        except BrokenExecutor:
            break
    for future in as_completed(given):
        try:
            yield future.result()
        except BrokenExecutor:
            continue
        except Exception as error:
            if type(error).__name__ in {"KilledWorker", "CommClosedError", "CancelledError"}:
                continue
            yield Outcome(given[future].study, given[future].path, "failed", reason=fleet_pools.said(error))


def work(task: Task) -> Outcome:
    """Do one study: the main job, then its tables into the shared folder. Doing it again does no harm."""
    try:
        return _worked(task)
    except (ConfigError, StoreError, LogRefusedError, OSError, ValueError, KeyError) as error:
        return Outcome(task.study, task.path, "failed", reason=fleet_pools.said(error))
    except Exception as error:
        return Outcome(task.study, task.path, "failed", reason=f"{type(error).__name__}: {fleet_pools.said(error)}")


def _worked(task: Task) -> Outcome:
    study = config.load(Path(task.path), adapters=[a.name for a in ADAPTERS])
    place = Place(task.out)
    with _folder(task, place) as folder:
        if task.report:
            from joulebook_pipelines import job  # noqa: PLC0415 (the notebook machinery takes a second to load)

            result = job.run(study, folder)
        else:
            result = run.analyse(study, folder)
        with open_store(result.store) as store:
            counts = dict(store.table("findings").group_by("severity").len().iter_rows())
            runs = store.table("runs").height
            if result.read:
                fleet_tables.publish(store, place, task.study)
        if task.staged:
            _put_all(folder, place, task.study)
    refused = "; ".join(o.reason for o in result.outcomes if o.status == "refused")
    status = "done" if result.read else "refused"
    return Outcome(task.study, task.path, status, runs, counts.get("error", 0), counts.get("warning", 0), refused)


@contextmanager
def _folder(task: Task, place: Place) -> Generator[Path]:
    """Give the folder to work in: the shared one itself, or one of this worker's own, begun with what was there."""
    if not task.staged:
        yield Path(task.out) / task.study
        return
    folder = Path(tempfile.mkdtemp(prefix="joulebook-"))
    try:
        place.fetch(f"{task.study}/study.duckdb", folder / "study.duckdb")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _put_all(folder: Path, place: Place, study: str) -> None:
    for file in sorted(p for p in folder.rglob("*") if p.is_file()):
        place.send(file, f"{study}/{file.relative_to(folder).as_posix()}")


def open(out: str | Path, table: str = "results") -> pl.DataFrame:
    """Return a table of all studies of a fleet as one frame, with the column ``study`` first.

    Parameters
    ----------
    out
        The shared folder, a path or a URL.
    table
        Name of the table.
    """
    return fleet_tables.read(out, table)
