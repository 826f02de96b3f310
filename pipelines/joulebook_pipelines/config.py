"""The configuration of a study: study.toml, or a folder of logs without one."""

from __future__ import annotations

import os
import re
import tomllib
import zoneinfo
from collections.abc import Collection
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from joulebook_pipelines import config_effective, config_errors, config_files
from joulebook_pipelines.config_document import Document
from joulebook_pipelines.config_errors import ConfigError
from joulebook_pipelines.config_names import DEFAULT_HOST
from joulebook_pipelines.config_study import ResolvedSource, Study
from joulebook_pipelines.config_text import OPEN
from joulebook_pipelines.config_types import Surroundings, zone_error

__all__ = ["STUDY_FILE", "ConfigError", "ResolvedSource", "Study", "default", "effective", "load"]

STUDY_FILE = config_files.STUDY_FILE


def load(path: Path, *, adapters: Collection[str] = ()) -> Study:
    """Return the configuration of a study.

    Parameters
    ----------
    path
        A folder, or its study.toml. A folder without one is read with :func:`default`.
    adapters
        Names that ``adapter`` may have; empty = not checked.

    Returns
    -------
    Study
        With the defaults filled in.

    Raises
    ------
    ConfigError
        The path is no study, or study.toml has unknown keys or bad values: all of them are named.
    """
    try:
        file = _study_file(Path(path))
        if file is None:
            return default(Path(path))
        text = _text(file)
        return _parse(text, file, adapters)
    except (OSError, RecursionError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None


def default(folder: Path) -> Study:
    """Return the configuration of a folder without study.toml: every file in it is a source, nothing else is known."""
    return Study(folder=folder)


def effective(study: Study) -> str:
    """Return the configuration with every default filled in, as the text of a study.toml that means the same.

    Raises
    ------
    ConfigError
        The sources cannot be resolved.
    """
    return config_effective.render(study, study.sources_resolved())


def _study_file(path: Path) -> Path | None:
    """Return the study.toml that a path means, ``None`` for a folder without one."""
    if path.is_file():
        if path.suffix != ".toml":
            raise ConfigError(f"{path}: is not a study; name the folder it is in, or a study.toml")
        return path
    if not path.is_dir():
        raise ConfigError(f"{path}: there is no such file or folder")
    file = path / STUDY_FILE
    if file.is_file():
        return file
    if os.path.lexists(file):
        raise ConfigError(f"{file}: is not a file that can be read")
    stems = {n[: -len(".toml")]: n for n in os.listdir(path) if n.lower().endswith(".toml")}
    near = config_errors.nearest("study", stems)
    if near is not None:
        raise ConfigError(f"{path / stems[near]}: would not be read; name it {STUDY_FILE}, or give its path")
    return None


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{file}, line {line}: is not UTF-8 text; save it as UTF-8") from None


def _parse(text: str, file: Path, adapters: Collection[str]) -> Study:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = re.search(r" \(at line (\d+), column (\d+)\)$", str(error))
        line = int(where[1]) if where else text.count("\n") + 1
        why = str(error)[: where.start()] if where else str(error)
        if OPEN in text.split("\n")[line - 1].partition("#")[0]:
            raise ConfigError(f"{file}, line {line}: still has {OPEN} where its value belongs") from None
        raise ConfigError(f"{file}, line {line}: is not valid TOML: {why[:1].lower() + why[1:]}") from None
    zone, zone_known = _zone_of(data)
    around = Surroundings(file.parent, zone, zone_known, adapters)
    try:
        document = Document.model_validate(data, context=around)
    except ValidationError as error:
        raise config_errors.from_validation(error, Document, file=str(file), text=text) from None
    return _settled(document, file)


def _zone_of(data: dict[str, Any]) -> tuple[zoneinfo.ZoneInfo | None, bool]:
    """Return the zone of times without an offset, and whether what is written is one."""
    section = data.get("study")
    name = section.get("timezone") if isinstance(section, dict) else None
    if name is None:
        return None, True
    if not isinstance(name, str) or zone_error(name) is not None:
        return None, False
    return zoneinfo.ZoneInfo(name), True


def _settled(document: Document, file: Path) -> Study:
    hosts = {s.host or DEFAULT_HOST for s in document.source}
    host = next(iter(hosts)) if len(hosts) == 1 else DEFAULT_HOST
    return Study(
        folder=file.parent,
        file=file,
        general=document.study,
        site=document.site,
        model=document.model,
        devices=document.devices,
        sources=document.source,
        runs=tuple(r.model_copy(update={"host": r.host or host}) for r in document.run),
        idles=tuple(i.model_copy(update={"host": i.host or host}) for i in document.idle),
        sweeps=document.sweep,
        campaigns=document.campaign,
        calibrations=tuple(c.model_copy(update={"host": c.host or host}) for c in document.calibration),
    )
