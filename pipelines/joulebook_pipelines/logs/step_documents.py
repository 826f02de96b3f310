"""Steps of a training in a JSON document: a list of objects, or a list of values for each thing (the history of Keras)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import polars as pl

from joulebook_pipelines.logs import json_objects, json_text, step_log, step_names, table, wall_clock
from joulebook_pipelines.logs.contract import Log, LogRefusedError, Part

FEWEST = 2
"""So many objects are looked for: one is a summary."""


def names(text: str) -> dict[str, str]:
    """Return the names of the things of a step in the beginning of a document; none where it holds no steps.

    Examples
    --------
    >>> names('[{"step": 1, "loss": 2.5}, {"step": 2, "loss": 2.4}]')
    {'step': 'step', 'loss': 'loss'}
    >>> names('{"loss": [2.5, 2.4], "val_loss": [2.6, 2.5]}')
    {'loss': 'loss'}
    """
    found, _ = json_objects.find(text, _is_step, mark="\x00", most=FEWEST)
    if len(found) == FEWEST:
        return step_names.known_names([n for _, _, o in found for n, v in o.items() if not isinstance(v, (dict, list))])
    return step_names.known_names(list(_history(text)))


def _is_step(members: dict[str, Any]) -> bool:
    plain = [n for n, v in members.items() if not isinstance(v, (dict, list))]
    return step_names.tells_of_steps(step_names.known_names(plain))


def _history(text: str) -> dict[str, list[Any]]:
    """Return the lists of an object that holds as many values of each thing, one an epoch."""
    document = json_text.members(text) or {}
    history = document.get("history", document)
    lists = {n: v for n, v in history.items() if isinstance(v, list)} if isinstance(history, dict) else {}
    whole = len(lists) == len(history) and len({len(v) for v in lists.values()}) == 1
    return lists if whole and "loss" in lists else {}


def parse(log: Log, known: dict[str, str]) -> Iterator[Part]:
    """Yield the steps of a document.

    Raises
    ------
    LogRefusedError
        The form of the stamps, or their zone, is not known.
    """
    text = log.whole_text()
    objects, odd = json_objects.find(text, _is_step, mark=json.dumps(known.get("step", "\x00")))
    titles, form = dict(known), None
    if not objects:
        lists = _history(text)
        if not lists:
            raise LogRefusedError(
                f"{log.name}: holds no steps, each an object with its number and its loss; export it again"
            )
        line = 1 + text[: text.find('"loss"')].count("\n")
        rows = [(line, {n: v[i] for n, v in lists.items()} | {"epoch": i + 1}) for i in range(len(lists["loss"]))]
        titles = {**known, "step": ""}
        frame = _frame([(at, {**o, "": o["epoch"]}) for at, o in rows], titles)
    else:
        samples = [str(o[n]) for _, _, o in objects[:200] if (n := known.get("end_utc", "")) and o.get(n) is not None]
        if wall_clock.are_durations(samples) and "step_time_s" not in titles:
            titles["step_time_s"] = titles.pop("end_utc")
        elif samples:
            form = wall_clock.form(log, samples)
        frame = _frame([(at, o) for at, _, o in objects], titles)
    collected = step_log.Steps(log, titles, form)
    lost = pl.DataFrame(odd, schema={"line": pl.Int64, "raw": pl.String}, orient="row")
    rejects = pl.concat([table.whole_lines(lost, "not-a-json-object"), collected.add(frame)])
    yield Part(lines=text.count("\n") + (not text.endswith("\n")), rejects=rejects)
    beside = (name for _, _, o in objects[:200] for name in o)
    untimed = () if form else (step_log.without_times(log, "The log"),)
    yield collected.part(*untimed, *step_log.powers_left(log, beside, titles.values()))


def _frame(rows: list[tuple[int, dict[str, Any]]], titles: dict[str, str]) -> pl.DataFrame:
    """Return the things of each step as text."""
    told = [
        (at, *(None if (v := o.get(n)) is None or isinstance(v, (dict, list)) else str(v) for n in titles.values()))
        for at, o in rows
    ]
    return pl.DataFrame(told, schema={"line": pl.Int64, **dict.fromkeys(titles, pl.String)}, orient="row")
