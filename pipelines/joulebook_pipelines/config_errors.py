"""Errors of study.toml: where, which value, what is allowed, and the name that was probably meant."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from joulebook_pipelines import config_text

CLOSE_ENOUGH = 0.6
"""Similarity from which a name is suggested: the default of difflib; it finds swapped, missing and doubled letters."""

LONGEST_LIST = 40
"""Names that a message lists at most."""

Location = str | tuple[str | int, ...]

_BOUNDS = {
    "greater_than": ("gt", "must be above"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be below"),
    "less_than_equal": ("le", "must be at most"),
}
_TYPES = {
    "string_type": "must be text in quotes",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "datetime_type": "must be a time without quotes, such as 2026-11-01T08:00:00Z",
    "date_type": "must be a date without quotes, such as 2026-11-01",
    "tuple_type": "must be a list in [ ]",
    "dict_type": "must be a table in { }",
    "string_too_short": "must not be empty",
    "string_too_long": "must be a single character",
    "too_short": "has too few entries",
}


class ConfigError(ValueError):
    """A study cannot be configured as it stands; each problem says where, what, and what is allowed.

    Parameters
    ----------
    problems
        One sentence each, beginning with the file.
    """

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Problem:
    """What is wrong at one place of study.toml.

    Parameters
    ----------
    path
        Dotted path; entries of lists are counted from 1, e.g. ``source[2].timezone``.
    why
        What is the matter, as the rest of a sentence.
    value
        The value as TOML, ``None`` where there is none to show.
    near
        The nearest valid name.
    allowed
        What is allowed.
    """

    path: str
    why: str
    value: str | None = None
    near: str | None = None
    allowed: tuple[str, ...] = ()

    def text(self, file: str, line: int | None = None) -> str:
        """Return the problem as one sentence that begins with the file."""
        place = file if line is None else f"{file}, line {line}"
        shown = "" if self.value is None else f" = {self.value}"
        near = "" if self.near is None else f'; did you mean "{self.near}"?'
        words = [n if n.isidentifier() else config_text.string(n) for n in self.allowed]
        names = ", ".join(words[:LONGEST_LIST]) + (", …" if len(words) > LONGEST_LIST else "")
        allowed = f"{'' if near else ';'} allowed: {names}" if names else ""
        return f"{place}: {self.path}{shown} {self.why}{near}{allowed}"


def nearest(word: str, names: Iterable[str]) -> str | None:
    """Return the name that was probably meant, ``None`` where nothing is close.

    Examples
    --------
    >>> nearest("timezon", ["timezone", "name"]), nearest("xyz", ["timezone", "name"])
    ('timezone', None)
    """
    folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=CLOSE_ENOUGH)
    return folded[close[0]] if close else None


def refusal(
    why: str, *, at: Location = (), near: str | None = None, allowed: Sequence[str] = (), value: object = None
) -> PydanticCustomError:
    """Return the error that a validator raises, to be told with its place.

    Parameters
    ----------
    why
        The rest of the sentence that begins with the place and the value.
    at
        Key below the one that is validated, or the way to it.
    near, allowed
        The name that was probably meant, and all that are allowed.
    value
        What to show in place of the whole input.
    """
    at = (at,) if isinstance(at, str) else at
    context = {"why": why, "at": at, "near": near, "allowed": tuple(allowed), "value": value}
    return PydanticCustomError("refused", "{why}", context)


def from_validation(error: ValidationError, model: type[BaseModel], *, file: str, text: str) -> ConfigError:
    """Return everything that a validation found as one error with paths, lines and suggestions.

    Parameters
    ----------
    error
        What pydantic raised.
    model
        The model that was validated, to know which keys are allowed.
    file
        Name of the file in messages.
    text
        Its content, to find the lines.
    """
    found = []
    for detail in error.errors(include_url=False):
        problem, location = _problem(detail, model)
        found.append((line_of(text, location), problem))
    found.sort(key=lambda pair: pair[0] or 0)
    return ConfigError(*dict.fromkeys(problem.text(file, line) for line, problem in found))


def _problem(detail: ErrorDetails, model: type[BaseModel]) -> tuple[Problem, tuple[int | str, ...]]:
    kind, location, value = detail["type"], tuple(detail["loc"]), detail["input"]
    if location and location[-1] == "[key]":
        location, value = location[:-1], None
    context: dict[str, Any] = detail.get("ctx", {})
    if kind == "refused":
        at = context["at"]
        location = (*location, *at)
        shown = context["value"] if context["value"] is not None else (None if at else value)
        return Problem(path_of(location), context["why"], _shown(shown), context["near"], context["allowed"]), location
    if kind in {"extra_forbidden", "missing"}:
        return _key_problem(kind, location, model), location
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        return Problem(path_of(location), f"{words} {context[name]:g}", _shown(value)), location
    if kind == "literal_error":
        return Problem(path_of(location), f"must be {context['expected']}", _shown(value)), location
    if kind == "model_type" or (kind == "tuple_type" and isinstance(value, dict)):
        name = str(location[0]) if location else "study.toml"
        want = f"[[{name}]], with two brackets" if kind == "tuple_type" else f"[{name}], once, as a table"
        return Problem(path_of(location), f"must be written as {want}"), location
    return Problem(path_of(location), _TYPES.get(kind, detail["msg"].lower()), _shown(value)), location


def _key_problem(kind: str, location: tuple[int | str, ...], model: type[BaseModel]) -> Problem:
    section = _model_at(model, location[:-1])
    keys = tuple(section.model_fields)
    if kind == "extra_forbidden":
        name = str(location[-1])
        return Problem(path_of(location), "is not a known key", near=nearest(name, keys), allowed=keys)
    needed = ", ".join(k for k, f in section.model_fields.items() if f.is_required())
    return Problem(path_of(location), f"is missing; needed here: {needed}")


def _model_at(model: type[BaseModel], location: Sequence[int | str]) -> type[BaseModel]:
    """Return the model of the section that a location leads to; sections do not nest deeper than lists of tables."""
    for part in location:
        field = model.model_fields.get(str(part))
        if field is None:
            continue
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                model = kind
    return model


def _shown(value: object) -> str | None:
    """Return a value as TOML, shortened; whole tables are not shown."""
    if value is None or isinstance(value, (dict, BaseModel)):
        return None
    text = config_text.value(value)
    return text if len(text) <= 80 else text[:77] + "…"


def path_of(location: Iterable[int | str]) -> str:
    """Return the dotted path of a location; list entries are counted from 1.

    Examples
    --------
    >>> path_of(("source", 1, "timezone"))
    'source[2].timezone'
    """
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part + 1}]"
        else:
            path += ("." if path else "") + config_text.key(part)
    return path or "study.toml"


_HEADER = re.compile(r"^\s*\[\[?\s*([A-Za-z0-9_-]+)\s*\]\]?\s*(#.*)?$")


def line_of(text: str, location: Sequence[int | str]) -> int | None:
    """Return the line, from 1, of a key or of its section's header; ``None`` where it is not written line by line."""
    if not location:
        return None
    section, entry = location[0], location[1] if len(location) > 1 and isinstance(location[1], int) else 0
    rest = [part for part in location[1:] if isinstance(part, str)]
    key = re.compile(rf"""^\s*["']?{re.escape(rest[0])}["']?\s*[=.]""") if rest else None
    seen, header_at, inside = -1, None, False
    for number, line in enumerate(text.splitlines(), start=1):
        header = _HEADER.match(line)
        if header:
            seen += header[1] == section
            inside = header[1] == section and seen == entry
            header_at = number if inside and header_at is None else header_at
        elif inside and key is not None and key.match(line):
            return number
    return header_at
