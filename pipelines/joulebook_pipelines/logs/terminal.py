r"""What stands in a file and is no part of its text: codes that steer a terminal (colours, clearing), marks of the byte order."""

from __future__ import annotations

import codecs
import re

_CODES = (
    r"(?:\x1b|#033)(?:\[[0-9;:]*m|\[[0-3]?[JK]|\[(?:1;1)?H|\[\?\d+[hl]|[(][AB0])|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"
)
"""Colours, clearing, the way back to the top, modes, the set of characters, the window's title. ``#033`` is how rsyslog writes
the escape. Jumps to a place of the screen stay: what follows them belongs to another line than the one it stands in."""

_MARK = codecs.BOM_UTF8
_OF_BYTES, _OF_TEXT = re.compile(_CODES.encode()), re.compile(_CODES)


def without_codes(data: bytes) -> bytes:
    r"""Return what a reader at the terminal would have read.

    Examples
    --------
    >>> without_codes(b"\x1b[32m71.5 W\x1b[0m"), without_codes(b"\x1b[5;12H71")
    (b'71.5 W', b'\x1b[5;12H71')
    """
    # A single byte is looked for ten times as fast as several: nearly all logs hold none of these.
    if b"\xef" in data and _MARK in data:  # files that were put one behind the other each begin with one
        data = data.replace(b"\n" + _MARK, b"\n").removeprefix(_MARK)
    coded = b"\x1b" in data or (b"#" in data and b"#033" in data)
    return _OF_BYTES.sub(b"", data) if coded else data


def plain(text: str) -> str:
    """Return the same of text."""
    return _OF_TEXT.sub("", text.replace("\n\ufeff", "\n"))
