"""Messages that say the same of many files: told once, with the names of the others."""

from __future__ import annotations

import re
from collections.abc import Sequence

MOST_IN_FULL = 3
"""Messages of one kind that are written out; of more, the first one is."""

MOST_NAMED = 12
"""Others that are named; of more, the number is told."""

_OWN = re.compile(r"'[^']*'|\"[^\"]*\"|\d[\d.,:]*")
"""What differs between messages of one kind: quoted text and numbers."""


def kind(name: str, message: str) -> str:
    """Return a message without what is its own: the name of its subject, numbers, quoted text.

    Examples
    --------
    >>> kind("a.csv", "a.csv:2: the stamps ('10:00') carry no zone") == kind("b.csv", "b.csv:7: the stamps ('11:30') carry no zone")
    True
    """
    return _OWN.sub("…", message.replace(name, "…") if name else message)


def together(kinds: Sequence[str]) -> list[list[int]]:
    """Return the places of what is told together, in order of the first: all of a kind that is frequent, else one alone.

    Parameters
    ----------
    kinds
        Kind of each message, as :func:`kind` gives it.

    Examples
    --------
    >>> together(["a", "b", "a", "a", "a", "b"])
    [[0, 2, 3, 4], [1], [5]]
    """
    places: dict[str, list[int]] = {}
    for at, one in enumerate(kinds):
        places.setdefault(one, []).append(at)
    groups = []
    for found in places.values():
        groups += [found] if len(found) > MOST_IN_FULL else [[at] for at in found]
    return sorted(groups, key=lambda g: g[0])


def likewise(names: Sequence[str]) -> str:
    """Return the line that names those of whom the same is true."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"  likewise {', '.join(names[:MOST_NAMED])}{more}"
