"""Which studies the arguments of a command mean, and what they are called."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from joulebook_pipelines import config
from joulebook_pipelines.config_errors import ConfigError

_GLOB = frozenset("*?[")


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
    plain = ["-".join(f.parts[-1:]).strip("/") for f in folders]
    twice = {n for n in plain if plain.count(n) > 1}
    for depth in range(1, max(len(f.parts) for f in folders) + 1):
        made = ["-".join(f.parts[-depth:]).strip("/") for f in folders]
        made = [m if p in twice else p for m, p in zip(made, plain, strict=True)]
        if len(set(made)) == len(made):
            return made
    raise ConfigError(f"a study is named twice: {', '.join(sorted({str(f) for f in folders if folders.count(f) > 1}))}")
