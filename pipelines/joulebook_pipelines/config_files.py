"""Which files a study reads: globs, whole folders, and the siblings that CodeCarbon moves its history to."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from joulebook_pipelines.config_errors import nearest

SKIPPED_SUFFIXES = (".duckdb", ".wal", ".toml", ".md", ".html")
"""Endings of files that are never logs when a whole folder is read: stores, configuration, prose."""

OUT_FOLDER = "out"
STORE_FILE = "study.duckdb"
STUDY_FILE = "study.toml"

_MAGIC = re.compile(r"[*?\[]")
_LISTED_BESIDE = 8


def natural(path: Path) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key in which ``gpu2`` comes before ``gpu10``."""
    pieces = re.split(r"(\d+)", str(path))
    return tuple((1, int(p), p) if p.isdecimal() else (0, 0, p) for p in pieces)


def relative_name(path: Path, folder: Path) -> str:
    """Return the name of a file relative to a folder, with forward slashes; what is no UTF-8 is escaped."""
    name = os.path.relpath(path, folder).replace(os.sep, "/")
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def under(folder: Path) -> tuple[Path, ...]:
    """Return every file below a folder that may be a log, in natural order.

    Hidden names, folders that hold results, and :data:`SKIPPED_SUFFIXES` are left out; links to folders are not
    followed, so that no loop can form; a link to a file that is listed anyway is left out.
    """
    files = [f for f in _walk(folder, top=folder) if not f.name.lower().endswith(SKIPPED_SUFFIXES)]
    return _once(sorted(files, key=lambda f: (f.is_symlink(), natural(f))))


def _walk(folder: Path, *, top: Path) -> Iterator[Path]:
    if _holds_results(folder, top):
        return
    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        if entry.name.startswith("."):
            continue
        path = folder / entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(path, top=top)
        elif path.is_file():
            yield path


def _holds_results(folder: Path, top: Path) -> bool:
    return folder == top / OUT_FOLDER or (folder != top and (folder / STORE_FILE).is_file())


def matching(folder: Path, pattern: str) -> tuple[Path, ...]:
    """Return the files that a glob relative to a folder matches, in natural order, each once.

    A pattern that is the name of a file as it stands is that file, even where the name holds ``*``, ``?`` or ``[``.
    ``**`` stands for any number of folders. Wildcards do not match hidden names, results or study.toml.
    """
    literal = folder / pattern
    if literal.is_file():
        return (literal,)
    whole = Path(pattern)
    start, parts = (Path(whole.anchor), whole.parts[1:]) if whole.is_absolute() else (folder, whole.parts)
    found = (f for f in _expand(start, parts, top=folder) if f.is_file() and f.name != STUDY_FILE)
    return _once(sorted(set(found), key=natural))


def _expand(folder: Path, parts: Sequence[str], *, top: Path) -> Iterator[Path]:
    if not parts:
        yield folder
        return
    first, rest = parts[0], parts[1:]
    if first == "**":
        yield from _expand(folder, rest or ("*",), top=top)
        for inner in _entries(folder, top):
            if inner.is_dir(follow_symlinks=False) and not inner.name.startswith("."):
                yield from _expand(folder / inner.name, parts, top=top)
    elif _MAGIC.search(first):
        for inner in _entries(folder, top):
            hidden = inner.name.startswith(".") and not first.startswith(".")
            if not hidden and fnmatch.fnmatchcase(inner.name, first):
                yield from _expand(folder / inner.name, rest, top=top)
    else:
        yield from _expand(folder / first, rest, top=top)


def _entries(folder: Path, top: Path) -> list[os.DirEntry[str]]:
    if not folder.is_dir() or _holds_results(folder, top):
        return []
    with os.scandir(folder) as entries:
        return [e for e in entries if not e.name.endswith(".duckdb")]


def _once(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return the paths without those that lead to a file already listed, in natural order."""
    first: dict[str, Path] = {}
    for path in paths:
        first.setdefault(identity(path), path)
    return tuple(sorted(first.values(), key=natural))


def identity(path: Path) -> str:
    """Return what two names of one file have in common."""
    return os.path.realpath(path)


def history(path: Path, *, adapter: str | None) -> tuple[Path, ...]:
    """Return the siblings ``NAME.bak`` and ``NAME_1.bak``, … of a CodeCarbon file, in natural order.

    CodeCarbon moves its file aside when its columns change, so the history goes on there. Only names that end in
    ``emissions.csv`` count, or any CSV whose adapter is named as CodeCarbon's.
    """
    named = adapter is not None and adapter.startswith("codecarbon") and path.name.endswith(".csv")
    if not (path.name.endswith("emissions.csv") or named):
        return ()
    sibling = re.compile(re.escape(path.name) + r"(_\d+)?\.bak")
    with os.scandir(path.parent) as entries:
        names = [e.name for e in entries if sibling.fullmatch(e.name)]
    return tuple(sorted((path.parent / n for n in names if (path.parent / n).is_file()), key=natural))


def beside(folder: Path, pattern: str) -> str:
    """Return what lies where a name or glob looked and found nothing, with the nearest name, as part of a sentence."""
    if (folder / pattern).is_dir():
        return f'it is a folder; write "{pattern.rstrip("/")}/*" for the files in it'
    if (folder / pattern).exists():
        return "it is a pipe or a device, not a file, and may never end; write what comes out of it into a file and name that"
    place = folder
    for part in Path(pattern).parts[:-1]:
        if _MAGIC.search(part) or not (place / part).is_dir():
            break
        place /= part
    names = sorted(e.name + ("/" if e.is_dir() else "") for e in os.scandir(place) if not e.name.startswith("."))
    where = relative_name(place, folder)
    where = "beside study.toml" if where == "." else f"in {where}"
    if not names:
        return f"there is nothing {where}"
    near = nearest(Path(pattern).name, [n for n in names if not n.endswith("/")])
    listed = ", ".join(names[:_LISTED_BESIDE]) + (f", … ({len(names)} in all)" if len(names) > _LISTED_BESIDE else "")
    return (f'did you mean "{near}"? ' if near else "") + f"{where} there are: {listed}"
