"""How the characters of a log are encoded, told by its first bytes."""

from __future__ import annotations

import codecs
import re

_EASTERN = {"gb18030": ("时间", "日期", "功率", "电"), "shift_jis": ("日時", "時刻", "時間", "電力")}
"""Encodings of meters from China and Japan, told by what their titles say in them; in any other they say nothing."""


_WIDE = re.compile(rb"(?:\xff\xfe)?(?:[\x09\x0a\x0d\x20-\x7e]\x00){4,}")
"""Text in two bytes a character inside of a file with one."""

_NARROW = re.compile(rb"[\x09\x0a\x0d\x20-\x7e]{24,}")
"""Text in one byte a character inside of a file with two: no text in two bytes has so long a run."""


def unmixed(data: bytes, encoding: str) -> bytes:
    r"""Return bytes in one encoding, where another program appended to a log in its own.

    PowerShell appends two bytes a character to whatever is there, and other tools append one to what PowerShell began.

    Examples
    --------
    >>> unmixed(b"a,1\n" + "b,22\n".encode("utf-16-le"), "utf-8")
    b'a,1\nb,22\n'
    """
    if encoding == "utf-8" and b"\x00" in data:
        return _WIDE.sub(lambda m: m[0].removeprefix(codecs.BOM_UTF16_LE)[::2], data)
    if encoding == "utf-16-le":
        return _NARROW.sub(lambda m: m[0].decode("ascii").encode("utf-16-le"), data)
    return data


def of(raw: bytes) -> str:
    r"""Return the encoding: by its mark, by where zeros stand, by what is valid, else the one of western Windows.

    Examples
    --------
    >>> of(b"Leistung \xb5W"), of(b"power")
    ('cp1252', 'utf-8')
    """
    for bom, name in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if raw.startswith(bom):
            return name
    # What begins in one byte a character goes on so, even where another program appended two bytes a character.
    for sample in (raw[:64], raw[:4096]):
        even, odd = sample[0::2].count(0), sample[1::2].count(0)
        little, big = odd > len(sample) // 4 and even < odd // 8, even > len(sample) // 4 and odd < even // 8
        if not little and not big:
            break
    else:
        return "utf-16-le" if little else "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(unmixed(raw, "utf-8"))
    except UnicodeDecodeError:
        return next(
            (e for e, words in _EASTERN.items() if any(w in raw.decode(e, errors="ignore") for w in words)), "cp1252"
        )
    return "utf-8"
