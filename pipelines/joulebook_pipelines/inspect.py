"""Looking at a study without analysing it: check, rejects, findings, trace, export, formats."""

from __future__ import annotations

import itertools
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from joulebook import schema
from joulebook_pipelines import config, filling, ingest, init, questions
from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.config_errors import ConfigError
from joulebook_pipelines.config_study import Study
from joulebook_pipelines.logs.contract import Adapter, Log, LogRefusedError
from joulebook_pipelines.proved import PROVED
from joulebook_pipelines.store import Store, open_store

FIRST_PARTS = 2
"""Parts of a file that are looked at to draft a study.toml: what is said before the first block, and the first block."""

MOST_NAMED = 40
"""Names that an error lists."""

FORMATS = ("parquet", "csv", "json")


@dataclass(frozen=True)
class Check:
    """What a check found."""

    outcomes: tuple[ingest.Outcome, ...]
    rejects: pl.DataFrame
    findings: pl.DataFrame
    configuration: str

    @property
    def good(self) -> bool:
        """Whether every file could be read, and none lacks what its numbers would need."""
        return all(o.status != "refused" for o in self.outcomes) and "error" not in set(self.findings["severity"])

    def as_dict(self) -> dict[str, object]:
        """Return everything as plain values."""
        files = [
            {k: getattr(o, k) for k in ("name", "adapter", "status", "lines", "readings", "rejects", "reason")}
            for o in self.outcomes
        ]
        return {
            "files": files, "rejects": self.rejects.to_dicts(), "findings": self.findings.to_dicts(), "configuration": self.configuration,
        }  # fmt: skip


def check(study: Study) -> Check:
    """Read every file of a study into a store that is thrown away."""
    with tempfile.TemporaryDirectory(prefix="joulebook-") as folder:
        result = filling.fill(study, Path(folder))
        with open_store(result.store) as store:
            return Check(result.outcomes, rejects(store, by_rule=True), store.findings(), config.effective(study))


def draft(study: Study) -> str:
    """Return a commented study.toml for a folder without one."""
    found = []
    for source in filling.sources_of(study):
        try:
            log, adapter = ingest.recognised(source)
        except LogRefusedError as error:
            found.append(init.Recognised(source.name, None, str(error)))
            continue
        found.append(_looked_at(log, adapter))
    return init.draft(study.folder, found)


def _looked_at(log: Log, adapter: Adapter) -> init.Recognised:
    """Return all that a file needs to be told, from its first parts.

    What a refusal asks for is answered somehow and the file looked at again, so that nothing is asked piece by piece.
    """
    asked: tuple[tuple[questions.Question, str], ...] = ()
    while True:
        try:
            parts = itertools.islice(adapter.parse(log), FIRST_PARTS)
            needs_scope = any(c.scope == "" for part in parts for c in part.channels)
            return _needing(log, adapter, asked, needs_scope=needs_scope)
        except LogRefusedError as error:
            reason = str(error)
        wanted = questions.asked(reason)
        options = log.options
        for question in wanted:
            options = questions.supposed(options, question) or options
        asked = questions.joined(asked, wanted, reason)
        if options == log.options:
            # Nothing can be supposed: either the owner names it and goes on from there, or it cannot be read at all.
            return _needing(log, adapter, asked, reason="" if wanted else reason)
        log = replace(log, options=options)


def _needing(
    log: Log,
    adapter: Adapter,
    asked: tuple[tuple[questions.Question, str], ...],
    *,
    needs_scope: bool = False,
    reason: str = "",
) -> init.Recognised:
    zone = any(q.key == "timezone" for q, _ in asked)
    others = tuple((q, why) for q, why in asked if q.key != "timezone")
    return init.Recognised(log.name, adapter.name, reason, others, needs_zone=zone, needs_scope=needs_scope)


def rejects(store: Store, *, by_rule: bool = False) -> pl.DataFrame:
    """Return the rejects with the path of their file: line by line, or counted by file, column and rule."""
    return store.rejects_by_rule() if by_rule else store.rejects()


def trace(store: Store, run_id: str, metric: str, scope: str | None = None) -> pl.DataFrame:
    """Return a number and the files and lines that it was made from.

    Raises
    ------
    KeyError
        There is no such number.
    """
    numbers = store.results(run_id).filter((pl.col("metric") == metric) & (pl.col("device") == ""))
    if scope is not None:
        numbers = numbers.filter(pl.col("scope") == scope)
    if numbers.is_empty():
        mine = store.results(run_id)
        if mine.is_empty():
            raise KeyError(f"there is no run {run_id!r} with a number; there are: {_some(store.results()['run_id'])}")
        at = _some(mine.filter(pl.col("metric") == metric)["scope"])
        if scope is not None and at:
            raise KeyError(f"run {run_id!r} has no {metric!r} at {scope!r}; it is known at: {at}")
        raise KeyError(f"run {run_id!r} has no {metric!r}; its metrics: {_some(mine['metric'])}")
    return numbers.select("scope", "phase", "metric", "value", "lo", "hi", "method").join(
        store.lines_behind(run_id), on="scope", how="left"
    )


def _some(names: pl.Series) -> str:
    """Return names, each once; of many the first, and how many more there are."""
    known = names.unique().sort().to_list()
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    return ", ".join(known[:MOST_NAMED]) + more


def export(store: Store, folder: Path, form: str) -> list[Path]:
    """Write every table as a file and return the files.

    Raises
    ------
    ConfigError
        The form is not known.
    """
    if form not in FORMATS:
        raise ConfigError(f"--format {form!r}: is one of {', '.join(FORMATS)}")
    folder.mkdir(parents=True, exist_ok=True)
    return [store.write_table(t.name, folder / f"{t.name}.{form}", form) for t in schema.TABLES]


def formats() -> pl.DataFrame:
    """Return ``adapter, written_by, timezone, proved_by, yields``: what can be read, and how many files of the tests prove it."""
    return pl.DataFrame(
        [(a.name, a.title, "needed" if a.needs_zone else "", _proved(a.name), a.yields) for a in ADAPTERS],
        schema=["adapter", "written_by", "timezone", "proved_by", "yields"], orient="row",
    )  # fmt: skip


def _proved(adapter: str) -> str:
    read, refused = PROVED.get(adapter, (0, 0))
    return f"{read} read" + (f", {refused} refused" if refused else "")
