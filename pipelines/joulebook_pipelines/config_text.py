"""Values as TOML text."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence

OPEN = "…"
"""Stands where only the owner of a log knows the value."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def string(text: str) -> str:
    r"""Return a basic string; what cannot stand in one is escaped.

    Examples
    --------
    >>> string('a "b"\n')
    '"a \\"b\\"\\n"'
    """
    return '"' + "".join(_character(c) for c in text) + '"'


def _character(c: str) -> str:
    if c in _ESCAPES:
        return _ESCAPES[c]
    if "\ud800" <= c <= "\udfff":  # bytes of a file name that are no UTF-8 have no TOML form: shown, not kept
        return f"\\\\u{ord(c):04x}"
    return f"\\u{ord(c):04x}" if ord(c) < 0x20 or ord(c) == 0x7F else c


def key(name: str) -> str:
    """Return a key, in quotes where it needs them."""
    return name if _BARE_KEY.fullmatch(name) else string(name)


def value(thing: object) -> str:
    """Return any value that TOML knows as text on one line; times in UTC end in ``Z``.

    Examples
    --------
    >>> value({"variant": "baseline", "repeat": 1}), value([1.0, True])
    ('{ variant = "baseline", repeat = 1 }', '[1.0, true]')
    """
    if isinstance(thing, Mapping):
        inner = ", ".join(f"{key(str(k))} = {value(v)}" for k, v in thing.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(thing, Sequence) and not isinstance(thing, str):
        return "[" + ", ".join(value(v) for v in thing) + "]"
    return _scalar(thing)


def _scalar(thing: object) -> str:
    if isinstance(thing, bool):
        return "true" if thing else "false"
    if isinstance(thing, int | float):
        return repr(thing)
    if isinstance(thing, dt.date | dt.time):
        return thing.isoformat().replace("+00:00", "Z")
    return string(str(thing))
