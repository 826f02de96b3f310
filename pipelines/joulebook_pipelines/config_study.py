"""A study as configured, and the log files that it resolves to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from joulebook_pipelines import config_errors, config_files, config_text
from joulebook_pipelines.config_errors import ConfigError
from joulebook_pipelines.config_names import DEFAULT_HOST
from joulebook_pipelines.config_schema import (
    Calibration,
    Campaign,
    Devices,
    General,
    Idle,
    Model,
    Run,
    Site,
    Source,
    Sweep,
)
from joulebook_pipelines.logs.contract import Options

_AS_WRITTEN = (
    "scope", "device", "devices", "interval_label", "kind", "window_s", "period_s", "delimiter", "decimal", "day_first", "sign",
    "mark", "utc_offset_s",
)  # fmt: skip
"""Keys of a source that adapters are told as they are written."""


@dataclass(frozen=True)
class ResolvedSource:
    """One log file of a study, with all that is said about it.

    Parameters
    ----------
    path
        Where the file is.
    name
        Its name relative to the study's folder, with forward slashes: the same on every machine.
    entry
        Where it is listed, e.g. ``source[2]``, for messages.
    adapter
        Name of its adapter, ``None`` = to be recognised.
    clock
        Time base of its stamps.
    options
        What an adapter is told.
    """

    path: Path
    name: str
    entry: str
    adapter: str | None
    clock: str
    options: Options

    @property
    def host(self) -> str:
        """Host that the readings are about."""
        return self.options.host


@dataclass(frozen=True)
class Study:
    """A study as configured: sections of study.toml with defaults filled in, and the folder they are about.

    Parameters
    ----------
    folder
        Folder that paths are relative to.
    file
        Its study.toml, ``None`` for a folder without one.
    general
        The section ``[study]``; the others have the names of their sections.
    sources
        Entries as written; empty = every file of the folder, see :meth:`sources_resolved`.
    """

    folder: Path
    file: Path | None = None
    general: General = field(default_factory=General)
    site: Site = field(default_factory=Site)
    model: Model = field(default_factory=Model)
    devices: Devices = field(default_factory=Devices)
    sources: tuple[Source, ...] = ()
    runs: tuple[Run, ...] = ()
    idles: tuple[Idle, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    campaigns: tuple[Campaign, ...] = ()
    calibrations: tuple[Calibration, ...] = ()

    @property
    def name(self) -> str:
        """Name of the study; its folder's where none is given."""
        return self.general.name or self.folder.resolve().name or "study"

    @property
    def place(self) -> str:
        """What messages begin with."""
        return str(self.file or self.folder)

    @property
    def whole_folder(self) -> Source:
        """The entry that stands for every file of the folder, where none is listed."""
        return Source(path="**/*")

    def beside(self, name: str) -> Path:
        """Return the path of a file that study.toml names."""
        return self.folder / name

    def sources_resolved(self) -> tuple[ResolvedSource, ...]:
        """Return every log file once, in the order of the entries and naturally sorted within one.

        Raises
        ------
        ConfigError
            A glob matches nothing, two entries match one file, or a folder cannot be read.
        """
        try:
            return self._resolve()
        except (OSError, ValueError) as error:
            if isinstance(error, ConfigError):
                raise
            raise ConfigError(f"{self.place}: the files of the study cannot be listed: {error}") from None

    def _resolve(self) -> tuple[ResolvedSource, ...]:
        if not self.sources:
            files = config_files.under(self.folder)
            if not files:
                raise ConfigError(f"{self.place}: there is no file below this folder that could be a log")
            return tuple(self._resolved(f, self.whole_folder, "the folder") for f in files)
        listed = [(i, s, self._matched(i, s)) for i, s in enumerate(self.sources)]
        self._refuse_twice([(i, files) for i, _, files in listed])
        taken = {config_files.identity(f) for _, _, files in listed for f in files}
        found: list[ResolvedSource] = []
        for i, source, files in listed:
            for file in files:
                siblings = config_files.history(file, adapter=source.adapter)
                fresh = [s for s in siblings if config_files.identity(s) not in taken]
                taken.update(config_files.identity(s) for s in fresh)
                found += [self._resolved(f, source, f"source[{i + 1}]") for f in (file, *fresh)]
        return tuple(found)

    def _matched(self, position: int, source: Source) -> tuple[Path, ...]:
        files = config_files.matching(self.folder, source.path)
        if not files:
            why = f"matches no file; {config_files.beside(self.folder, source.path)}"
            raise self._refused(position, source.path, why)
        return files

    def _refuse_twice(self, listed: list[tuple[int, tuple[Path, ...]]]) -> None:
        first: dict[str, int] = {}
        for i, files in listed:
            for file in files:
                other = first.setdefault(config_files.identity(file), i)
                if other != i:
                    name = config_files.relative_name(file, self.folder)
                    why = f"matches {name!r}, as source[{other + 1}].path does; a file is read once: narrow one of them"
                    raise self._refused(i, self.sources[i].path, why)

    def _refused(self, position: int, path: str, why: str) -> ConfigError:
        text = self.file.read_text("utf-8", errors="replace") if self.file else ""
        location: tuple[str | int, ...] = ("source", position, "path")
        problem = config_errors.Problem(config_errors.path_of(location), why, config_text.string(path))
        return ConfigError(problem.text(self.place, config_errors.line_of(text, location)))

    def _resolved(self, path: Path, source: Source, entry: str) -> ResolvedSource:
        host = source.host or DEFAULT_HOST
        fixed = source.utc_offset_s is not None
        options = Options(
            host=host,
            timezone=source.timezone or (None if fixed else self.general.timezone),
            columns=dict(source.columns),
            units=dict(source.units),
            date=source.date.isoformat() if source.date else None,
            range_j=source.range_j or self.devices.energy_counter_range_j,
            **{name: getattr(source, name) for name in _AS_WRITTEN},
        )
        name = config_files.relative_name(path, self.folder)
        return ResolvedSource(path, name, entry, source.adapter, source.clock or host, options)
