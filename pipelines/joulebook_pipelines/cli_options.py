"""What verbs of the command line share: their options, and the study and the results that an argument means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from joulebook_pipelines import config
from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.config_files import STORE_FILE
from joulebook_pipelines.config_study import Study
from joulebook_pipelines.store import Store, StoreError, open_store

StudyPath = Annotated[Path, typer.Argument(metavar="STUDY", help="A folder of logs, or its study.toml.")]
ResultsPath = Annotated[
    Path, typer.Argument(metavar="STUDY", help="A folder of logs, its study.toml, or a folder of results.")
]
Out = Annotated[Path | None, typer.Option("-o", "--out", help="Folder of the results. Default: STUDY/out.")]
Json = Annotated[bool, typer.Option("--json", help="Print for a machine.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress.")]


def study_of(path: Path) -> Study:
    """Return the configuration of a study.

    Raises
    ------
    ConfigError
        The path is no study, or its study.toml is wrong.
    """
    return config.load(path, adapters=[a.name for a in ADAPTERS])


def out_of(study: Study, out: Path | None) -> Path:
    """Return the folder of a study's results."""
    return out if out is not None else study.folder / "out"


def results_of(path: Path, out: Path | None) -> Path:
    """Return the folder with the results of a study, or the folder itself where it holds results.

    Raises
    ------
    StoreError
        Nothing was made there yet.
    """
    if out is None and (path / STORE_FILE).is_file():
        return path
    folder = out_of(study_of(path), out)
    if not (folder / STORE_FILE).is_file():
        aside = f" -o {out}" if out is not None else ", or say with -o in which folder they lie"
        raise StoreError(f"{folder}: there are no results yet; make them with: joulebook run {path}{aside}")
    return folder


def store_of(path: Path, out: Path | None) -> Store:
    """Open the store that an argument means, to read."""
    return open_store(results_of(path, out))
