"""Tables of runs as JSON: a list of runs at any depth, runs under their names, one run a line, one run a file; members may be nested."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from joulebook_pipelines.logs import json_records, json_text, run_spent, run_titles
from joulebook_pipelines.logs.contract import Head, Log, LogRefusedError

DEEPEST = 5
"""Objects inside of objects that are looked through for a list of runs."""

NAME = "run"
"""Title of the names under which runs stand in an object."""

NAMES = ("name", "id", "run.name", "run.id", "label")
"""Members that name a run where no title says so plainly."""

_DECODER = json.JSONDecoder()


def looks(head: Head) -> bool:
    """Tell whether a file is a JSON table of runs.

    Examples
    --------
    >>> looks(Head("a.json", '{"a": {"batch_size": 8, "energy_j": 5, "duration_s": 2}}', "utf-8", True))
    True
    """
    text = head.text.lstrip()
    return text.startswith(("{", "[")) and any(run_titles.is_run_table(t) for t in _heads(head, text))


def _heads(head: Head, text: str) -> Iterator[list[str]]:
    """Yield the titles that the beginning of a file may have, from what can be read of it."""
    if _is_lines(head):
        yield list(_flat(json.loads(next(line for line in text.split("\n") if line.strip()))))
        return
    document = json_text.value(text)
    if document is None and not head.complete and (first := _first_row(text)) is not None:
        yield list(_flat(first))
    for rows in _tables(document):
        yield _titles(rows[:20])


def _is_lines(head: Head) -> bool:
    """Tell whether there is an object a line, and more than one."""
    return json_records.is_lines(head) and len([line for line in head.lines if line.strip()]) > 1


def _first_row(text: str) -> dict[str, Any] | None:
    """Return the first object of a list whose end is not seen."""
    at = text.find("[")
    while 0 <= at < len(text):
        begin = at + 1 + len(text[at + 1 :]) - len(text[at + 1 :].lstrip())
        if text.startswith("{", begin):
            try:
                found, _ = _DECODER.raw_decode(text, begin)
            except (ValueError, RecursionError):
                return None
            return found if isinstance(found, dict) else None
        at = text.find("[", at + 1)
    return None


def read(log: Log, text: str) -> tuple[list[str], pl.DataFrame]:
    """Return titles, and rows of text cells ``line, c0, c1 …``.

    Raises
    ------
    LogRefusedError
        The document is cut, or holds no runs.
    """
    lines = [line for line in text.split("\n") if line.strip()] if _is_lines(log.head) else []
    document = json_text.document(log, "[" + ",".join(lines) + "]" if len(lines) > 1 else text)
    found = [rows for rows in _tables(document) if run_titles.is_run_table(_titles(rows))]
    if not found:
        raise LogRefusedError(f"{log.name}: has no list of runs, each an object with its energy or power")
    rows, titles = found[0], _titles(found[0])
    numbers = [i for i, line in enumerate(text.split("\n"), 1) if line.strip()] if lines[1:] else [1] * len(rows)
    told = [(at, *(row.get(t) for t in titles)) for at, row in zip(numbers, rows, strict=True)]
    schema = {"line": pl.Int64, **{f"c{i}": pl.String for i in range(len(titles))}}
    return _short(titles), pl.DataFrame(told, schema=schema, orient="row")


def _titles(rows: Sequence[dict[str, str | None]]) -> list[str]:
    return list(dict.fromkeys(t for row in rows for t in row))


def _short(titles: list[str]) -> list[str]:
    """Return the last names of nested members where they tell the same as the whole paths, and no two are alike."""
    last = [_last(t) for t in titles]
    chosen = last if len(set(last)) == len(last) and run_titles.is_run_table(last) else titles
    if "run" in run_titles.understand(chosen).roles:
        return chosen
    own = next((n for n in NAMES if n in titles), None)
    return [NAME if t == own else c for t, c in zip(titles, chosen, strict=True)]


def _last(path: str) -> str:
    """Return the last name of a path; the whole one where it makes another energy of it: that of a card, of idling, of a saving."""
    name = path.rsplit(".", 1)[-1]
    alone, whole = (run_spent.of_title(0, t, monitor=False) for t in (name, path))
    same = alone is None or (whole is not None and whole.device == alone.device)
    return name if same else path


def _tables(document: Any) -> Iterator[list[dict[str, str | None]]]:
    """Yield what may be the rows of a table: lists of objects, objects under names, the object itself; the outermost first."""
    levels = [document]
    for _ in range(DEEPEST):
        for value in levels:
            if isinstance(value, list) and value and all(isinstance(o, dict) for o in value):
                yield [_flat(o) for o in value]
            elif isinstance(value, dict):
                inner = [(k, v) for k, v in value.items() if isinstance(v, dict)]
                rows = [_flat(v) for _, v in inner] if len(inner) > 1 and len(inner) == len(value) else []
                # Named intervals with nothing but their energy are phases.
                if rows and run_titles.is_run_table(_titles(rows)):
                    yield [{NAME: str(k), **row} for (k, _), row in zip(inner, rows, strict=True)]
        levels = [v for value in levels if isinstance(value, dict) for v in value.values()]
    if isinstance(document, dict):
        yield [_flat(document)]


def _flat(row: dict[str, Any], before: str = "") -> dict[str, str | None]:
    """Return the plain members as text by their path; lists hold no run's total."""
    found: dict[str, str | None] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            if before.count(".") < DEEPEST:
                found |= _flat(value, f"{before}{name}.")
        elif not isinstance(value, list):
            found[f"{before}{name}"] = None if value is None else str(value)
    return found
