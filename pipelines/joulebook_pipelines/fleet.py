"""Many studies at once: each is independent, so they are mapped over processes of this machine or of many.

A study that fails is reported and stops no other; work that a dying worker left behind is done again by another.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import polars as pl

from joulebook_pipelines import config, fleet_tables, run
from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.config_errors import ConfigError
from joulebook_pipelines.fleet_tables import Place
from joulebook_pipelines.logs.contract import LogRefusedError
from joulebook_pipelines.store import StoreError, open_store

RETRIES = 3
"""How often work is given out again when the worker that had it died."""
CONNECT_S = 10
"""How long a scheduler may take to answer [s]."""
STATUSES = ("done", "refused", "failed")
_GLOB = frozenset("*?[")


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
Pool = Callable[[int], AbstractContextManager[Executor]]
"""Makes an executor with at most that many workers."""


def is_glob(argument: Path | str) -> bool:
    """Return whether an argument stands for all that it matches, and not for itself."""
    return bool(_GLOB & set(str(argument))) and not Path(argument).exists()


def studies(arguments: Sequence[Path | str], *, out: str | None = None) -> list[Path]:
    """Return the studies that arguments mean: folders, study.toml files, stores, and globs of these.

    Parameters
    ----------
    arguments
        As on the command line; a glob that the shell left alone is expanded here.
    out
        Folder of the results, which is no study even where a glob matches it.

    Raises
    ------
    ConfigError
        A glob matches no folder.
    """
    found: dict[Path, None] = {}
    for argument in map(str, arguments):
        if not is_glob(argument):
            found[Path(argument)] = None
            continue
        matches = [
            p
            for p in map(Path, sorted(glob.glob(argument)))
            if p.is_dir() or p.name == config.STUDY_FILE or p.suffix == ".duckdb"
        ]
        if not matches:
            raise ConfigError(f"{argument}: matches no folder and no {config.STUDY_FILE}")
        found |= dict.fromkeys(matches)
    results = None if out is None else Path(out).absolute()
    return [p for p in found if len(found) == 1 or p.absolute() != results]


def names(paths: Sequence[Path]) -> list[str]:
    """Return a name for each study: that of its folder, with those above it where two would be called alike.

    Raises
    ------
    ConfigError
        Two arguments are the same folder.

    Examples
    --------
    >>> names([Path("a/node"), Path("b/node"), Path("c")])
    ['a-node', 'b-node', 'c']
    """
    folders = [(p.parent if p.suffix == ".toml" else p).absolute() for p in paths]
    for depth in range(1, max(len(f.parts) for f in folders) + 1):
        made = ["-".join(f.parts[-depth:]).strip("/") for f in folders]
        if depth == 1:
            twice = {n for n in made if made.count(n) > 1}
            plain = list(made)
        made = [m if p in twice else p for m, p in zip(made, plain, strict=True)]
        if len(set(made)) == len(made):
            return made
    raise ConfigError(f"a study is named twice: {', '.join(sorted({str(f) for f in folders if folders.count(f) > 1}))}")


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
    tasks = [Task(n, str(p.absolute()), at, report, staged) for n, p in zip(names(paths), paths, strict=True)]
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
    for attempt in range(RETRIES + 1):
        left = [t for t in tasks if t.study not in done]
        last = attempt == RETRIES
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
            yield Outcome(given[future].study, given[future].path, "failed", reason=_said(error))


def work(task: Task) -> Outcome:
    """Do one study: the main job, then its tables into the shared folder. Doing it again does no harm."""
    try:
        return _worked(task)
    except (ConfigError, StoreError, LogRefusedError, OSError, ValueError, KeyError) as error:
        return Outcome(task.study, task.path, "failed", reason=_said(error))
    except Exception as error:
        return Outcome(task.study, task.path, "failed", reason=f"{type(error).__name__}: {_said(error)}")


def _said(error: BaseException) -> str:
    return str(error.args[0] if error.args else error).strip().splitlines()[0] if str(error) else type(error).__name__


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
def _folder(task: Task, place: Place) -> Iterator[Path]:
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


@contextmanager
def processes(workers: int) -> Iterator[Executor]:
    """Give an executor of processes on this machine; each starts afresh, since threads do not survive a fork."""
    with ProcessPoolExecutor(max_workers=workers, mp_context=get_context("spawn")) as executor:
        yield executor


@contextmanager
def here(_workers: int) -> Iterator[Executor]:
    """Give an executor that works in this process, one study after the other."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


def dask(address: str) -> Pool:
    """Return a maker of executors on a Dask cluster.

    Parameters
    ----------
    address
        Of the scheduler, e.g. ``tcp://10.0.0.1:8786``.

    Raises
    ------
    ConfigError
        Dask is not installed, or the scheduler does not answer.
    """
    try:
        import distributed  # noqa: PLC0415 (an extra)
    except ImportError:
        raise ConfigError("--dask needs Dask: pip install 'joulebook[dask]'") from None

    @contextmanager
    def pool(_workers: int) -> Iterator[Executor]:
        try:
            client = distributed.Client(address, timeout=CONNECT_S)
        except (OSError, ValueError) as error:
            raise ConfigError(f"--dask {address}: no scheduler answers there ({_said(error)})") from None
        with client:
            executor: Executor = client.get_executor(retries=RETRIES, pure=False)
            yield executor

    return pool


def default_workers(count: int) -> int:
    """Return how many workers suit a number of studies on this machine."""
    return max(1, min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, count))


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
