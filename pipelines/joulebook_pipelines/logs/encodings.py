"""How the characters of a log are encoded, told by its first bytes."""

from __future__ import annotations

import codecs

_EASTERN = {"gb18030": ("时间", "日期", "功率", "电"), "shift_jis": ("日時", "時刻", "時間", "電力")}
"""Encodings of meters from China and Japan, told by what their titles say in them; in any other they say nothing."""


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
    sample = raw[:4096]
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > len(sample) // 4 and even < odd // 8:
        return "utf-16-le"
    if even > len(sample) // 4 and odd < even // 8:
        return "utf-16-be"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(raw)
    except UnicodeDecodeError:
        return next(
            (e for e, words in _EASTERN.items() if any(w in raw.decode(e, errors="ignore") for w in words)), "cp1252"
        )
    return "utf-8"
