"""The logs of a study into its store: what every verb needs that asks of the logs alone, without any analysis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from joulebook_pipelines import ingest
from joulebook_pipelines.config_study import Study
from joulebook_pipelines.source_reader import Progress
from joulebook_pipelines.store import OtherVersionError, Store, open_store


@dataclass(frozen=True)
class Told:
    """Where progress is told; a console or nothing.

    Parameters
    ----------
    step
        Told what is being done.
    read
        Told the file and how many bytes of it were read.
    """

    step: Callable[[str], None] = lambda _text: None
    read: Progress = lambda _name, _bytes: None


@dataclass(frozen=True)
class Result:
    """What a run made: where it lies, what became of each file, and which stages had work to do."""

    out: Path
    store: Path
    outcomes: tuple[ingest.Outcome, ...]
    worked: tuple[str, ...]
    report: Path | None = None

    @property
    def read(self) -> bool:
        """Whether any file could be read."""
        return any(o.status != "refused" for o in self.outcomes)


def sources_of(study: Study) -> tuple[ingest.SourceFile, ...]:
    """Return the study's files as ingest takes them."""
    return tuple(ingest.SourceFile(s.path, s.name, s.clock, s.adapter, s.options) for s in study.sources_resolved())


def fill(study: Study, out: Path, told: Told | None = None) -> Result:
    """Ingest what is new: the store only, no analysis.

    Parameters
    ----------
    study
        The study.
    out
        Folder of the results; made where it is missing.
    told
        Where progress is told.
    """
    told = told or Told()
    out.mkdir(parents=True, exist_ok=True)
    path = out / "study.duckdb"
    with _of_this_version(path, study, told) as store:
        outcomes = ingest.ingest(sources_of(study), store, told.read)
        _remember_refusals(store, outcomes)
    return Result(out, path, tuple(outcomes), ())


def _of_this_version(path: Path, study: Study, told: Told) -> Store:
    """Open the store; one that another version made is replaced, since everything in it comes from the logs."""
    limit = study.general.memory_limit
    try:
        return open_store(path, read_only=False, memory_limit=limit)
    except OtherVersionError:
        told.step("reading all logs again: another version made the store")
        path.unlink()
        return open_store(path, read_only=False, memory_limit=limit)


def _remember_refusals(store: Store, outcomes: list[ingest.Outcome]) -> None:
    refused = [f for o in outcomes if o.status == "refused" for f in o.findings]
    with store.transaction():
        store.replace_findings("recognise", ingest.finding_rows(refused, stage="recognise"))
