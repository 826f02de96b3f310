"""Text as JSON: what it says, or that it is none. Depth beyond all measure is damage like any other."""

from __future__ import annotations

import json
from typing import Any

from joulebook_pipelines.logs.contract import Log, LogRefusedError

UNREADABLE = (ValueError, RecursionError)
"""What decoding raises for a text that is no JSON."""


def value(text: str) -> Any:
    """Return what a text says, ``None`` where it is no JSON.

    Examples
    --------
    >>> value("[1, 2]"), value("[1, 2")
    ([1, 2], None)
    """
    try:
        return json.loads(text)
    except UNREADABLE:
        return None


def members(text: str) -> dict[str, Any] | None:
    """Return the members of an object, ``None`` where the text is none.

    Examples
    --------
    >>> members('{"a": 1}'), members("[1]")
    ({'a': 1}, None)
    """
    found = value(text)
    return found if isinstance(found, dict) else None


def document(log: Log, text: str, *, cure: str = "export it again") -> Any:
    """Return what the whole text of a file says.

    Raises
    ------
    LogRefusedError
        It is no JSON; ``cure`` says what would help.
    """
    try:
        return json.loads(text)
    except UNREADABLE as error:
        raise LogRefusedError(f"{log.name}: is not a whole JSON document ({error}); {cure}") from None
