"""Answers to questions that were asked before: kept until a table that the question names is written to."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from joulebook import schema
from joulebook_pipelines.store_tables import BEHIND_VIEWS, READING_CHANNELS, READING_ROWS

MOST_BYTES = 4_000_000
"""A larger frame is asked for again: readings, steps and rejects of a long study are no small answers."""

_WORD = re.compile(r"\w+")
_TABLES = {t.name for t in schema.TABLES} | {READING_ROWS, READING_CHANNELS}


class Answers:
    """What a store answered, by question.

    Examples
    --------
    >>> answers = Answers()
    >>> answers.of("select count(*) from runs", lambda: 1)
    1
    >>> answers.written("steps")
    >>> answers.of("select count(*) from runs", lambda: 2)
    1
    >>> answers.written("runs")
    >>> answers.of("select count(*) from runs", lambda: 2)
    2
    """

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, Any]] = {}
        self._tables: dict[str, frozenset[str]] = {}

    def of(self, question: str, ask: Callable[[], Any], *, form: str = "") -> Any:
        """Return the answer in a form, asked for only where it is not known."""
        forms = self._kept.setdefault(question, {})
        if form not in forms:
            forms[form] = ask()
        return forms[form]

    def drop(self, question: str) -> None:
        """Forget one answer."""
        self._kept.pop(question, None)

    def written(self, table: str) -> None:
        """Forget the answers that a table, or a view of it, stood in."""
        for question in [q for q in self._kept if table in self._behind(q)]:
            del self._kept[question]

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()

    def _behind(self, question: str) -> frozenset[str]:
        if question not in self._tables:
            self._tables[question] = tables_behind(question)
        return self._tables[question]


def tables_behind(question: str) -> frozenset[str]:
    """Return the tables that a question is about, also through views; one word too many costs only a question.

    Examples
    --------
    >>> sorted(tables_behind("select * from aligned_runs"))
    ['alignments', 'runs']
    """
    words = set(_WORD.findall(question))
    found = words & _TABLES
    for view, behind in BEHIND_VIEWS.items():
        if view in words:
            found |= tables_behind(behind)
    return frozenset(found)
