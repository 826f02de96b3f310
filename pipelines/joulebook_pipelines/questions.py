"""What a refusal asks of study.toml, and an answer that is supposed only to find out what would be asked next."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from typing import Any

from joulebook_pipelines.config_text import OPEN
from joulebook_pipelines.logs.contract import Options

_KEYS = (
    "units", "columns", "period_s", "date", "day_first", "devices", "device", "decimal", "delimiter", "interval_label",
    "sign", "host", "timezone",
)  # fmt: skip
_TEXT = r'"[^"]*"'
_VALUES = (
    r"\{[^{}]*\}", r"\[[^\[\]]*\]", r"\([^()]*\)", rf"{_TEXT}(?P<choice> or (?:\w+ = )?{_TEXT})?", "true or false", "YYYY-MM-DD",
    r"-?[\d.]+(?:-\d\d-\d\d)?",
)  # fmt: skip
_ASKED = re.compile(rf"\b(?P<key>{'|'.join(_KEYS)}) = (?P<value>{'|'.join(_VALUES)})")
"""A key and its value as refusals write them: TOML, or words where the value is the reader's to say."""

_AND = re.compile(r"(?: \([^()]*\))? and ")
"""Between two keys that are wanted together; what follows an "or" is another way."""

_SUPPOSED: dict[str, Any] = {"period_s": 1.0, "date": "1970-01-01", "day_first": True, "timezone": "UTC"}
"""Values under which a file can be looked at further, where the refusal leaves the value open."""


@dataclass(frozen=True)
class Question:
    """A key of ``[[source]]`` that a file needs.

    Parameters
    ----------
    key
        Its name.
    value
        TOML to begin from, :data:`OPEN` where there is none.
    example
        TOML under which the file may be looked at further, where the refusal gives one.
    """

    key: str
    value: str
    example: str = ""


def asked(reason: str) -> tuple[Question, ...]:
    """Return what a refusal asks for, the keys that belong together; empty where it asks for nothing.

    Examples
    --------
    >>> asked('nothing says the unit; add units = { power_w = "W" } and period_s = (seconds between lines) to this [[source]]')
    (Question(key='units', value='{ power_w = "W" }', example=''), Question(key='period_s', value='…', example=''))
    >>> asked("no date; add date = YYYY-MM-DD of the start to this [[source]]")
    (Question(key='date', value='…', example=''),)
    >>> asked("holds no power; log again")
    ()
    """
    found: list[Question] = []
    match = _ASKED.search(reason)
    while match is not None:
        value = _value(match)
        guessed = reason[: match.start()].endswith("e.g. ")
        found.append(Question(match["key"], OPEN, value) if guessed else Question(match["key"], value))
        also = _AND.match(reason, match.end())
        match = _ASKED.match(reason, also.end()) if also else None
    return tuple(found)


def _value(match: re.Match[str]) -> str:
    """Return the value as TOML; one that is an example, a choice or words is left open."""
    value = match["value"]
    if match["choice"] or match["key"] in {"date", "timezone"} or OPEN in value:
        return OPEN
    try:
        tomllib.loads(f"value = {value}")
    except tomllib.TOMLDecodeError:
        return OPEN
    return value


def supposed(options: Options, question: Question) -> Options | None:
    """Return options in which a question is answered somehow, to look further; ``None`` where it cannot be supposed.

    Examples
    --------
    >>> supposed(Options(), Question("period_s", "…")).period_s
    1.0
    >>> supposed(Options(), Question("columns", "…")) is None
    True
    """
    text = question.example if question.value == OPEN else question.value
    value = tomllib.loads(f"value = {text}")["value"] if text not in {"", OPEN} else _SUPPOSED.get(question.key)
    if value is None or getattr(options, question.key) == value:
        return None
    if question.key in {"units", "columns"}:
        value = getattr(options, question.key) | value
    elif question.key == "devices":
        value = tuple(value)
    changes: dict[str, Any] = {question.key: value}
    return replace(options, **changes)


def joined(
    so_far: tuple[tuple[Question, str], ...], wanted: tuple[Question, ...], reason: str
) -> tuple[tuple[Question, str], ...]:
    """Return questions with those of another refusal: a key stands in a section once, so tables of one key become one.

    Examples
    --------
    >>> first = ((Question("units", '{ power_w = "W" }'), "no unit of power"),)
    >>> joined(first, (Question("units", '{ span_s = "s" }'),), "no unit of time")
    ((Question(key='units', value='{ power_w = "W", span_s = "s" }', example=''), 'no unit of power; no unit of time'),)
    """
    keys = {q.key: (q, why) for q, why in so_far}
    for question in wanted:
        old = keys.get(question.key)
        if old is None:
            keys[question.key] = (question, reason)
        elif old[0].value.startswith("{") and question.value.startswith("{"):
            both = f"{{ {old[0].value.strip('{} ')}, {question.value.strip('{} ')} }}"
            keys[question.key] = (Question(question.key, both), f"{old[1]}; {reason}")
    return tuple(keys.values())
