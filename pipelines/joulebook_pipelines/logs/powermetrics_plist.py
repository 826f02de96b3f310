"""``powermetrics --format plist``: one property list a sample, a NUL between them; powers in mW, energies in mJ."""

from __future__ import annotations

import math
import plistlib
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from xml.parsers.expat import ExpatError

import polars as pl

from joulebook import schema
from joulebook_pipelines.logs import table
from joulebook_pipelines.logs.contract import Head, Log

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "line": pl.Int64, "section": pl.Int64, "device": pl.String, "header": pl.String, "value": pl.String, "ts_utc": schema.UTC,
    "span_s": pl.Float64,
}  # fmt: skip
"""A row a power: its sample, where that begins, the end of the sample as printed, its length, and the text of the power [mW]."""

_PARTS = {"cpu": "package/cpu", "gpu": "package/gpu", "ane": "package/ane"}
_WHOLE = ("combined", "package")
_MILLI = 1e3
_DAMAGE = (
    ValueError, ExpatError, plistlib.InvalidFileException, OverflowError, TypeError, AttributeError, LookupError, RecursionError,
)  # fmt: skip
"""What plistlib raises over a list that is cut or spoilt."""


def looks_so(head: Head) -> bool:
    """Tell whether a file holds property lists with the length of a sample and a processor."""
    return "<plist" in head.text[:2000] and "<key>elapsed_ns</key>" in head.text and "<key>processor</key>" in head.text


def read(log: Log) -> tuple[pl.DataFrame, pl.DataFrame, int]:
    """Return the powers of all samples, rejects of samples that cannot be read, and the number of lines."""
    text = log.whole_text()
    rows: list[tuple[object, ...]] = []
    bad: list[tuple[int, str, str]] = []
    for section, (line, document) in enumerate(_documents(text)):
        try:
            sample = plistlib.loads(document.encode())
        except _DAMAGE:
            bad.append((line, document[: table.LONGEST_RAW], "document-cut"))
            continue
        at, length = (sample.get("timestamp"), sample.get("elapsed_ns")) if isinstance(sample, dict) else (None, None)
        known = _powers(sample) if isinstance(sample, dict) else []
        if not isinstance(at, datetime) or not _is_number(length) or float(str(length)) <= 0:
            bad.append((line, document[: table.LONGEST_RAW], "no-such-time"))
            continue
        seconds = float(str(length)) / 1e9
        told = [(d, name, v if in_mw else _mean(v, seconds)) for d, name, v, in_mw in known]
        rows += [(line, section, d, name, str(v), at.replace(tzinfo=UTC), seconds) for d, name, v in told]
    rejects = table.whole_lines(
        pl.DataFrame(bad, schema={"line": pl.Int64, "raw": pl.String, "rule": pl.String}, orient="row"), pl.col("rule")
    )
    return pl.DataFrame(rows, schema=SCHEMA, orient="row"), rejects, text.count("\n") + (not text.endswith("\n"))


def _documents(text: str) -> Iterator[tuple[int, str]]:
    """Yield each property list with the line on which it begins."""
    line = 1
    for piece in re.split(r"\x00|(?=<\?xml)", text):
        plain = piece.strip()
        if plain:
            yield line + piece[: piece.find(plain[0])].count("\n"), plain
        line += piece.count("\n")


def _powers(sample: dict[str, Any]) -> list[tuple[str, str, object, bool]]:
    """Return device, name, value and whether it is a power [mW], else an energy [mJ], of each part of the chip."""
    chip = sample.get("processor")
    if not isinstance(chip, dict):
        return []
    found = []
    for part, device in _PARTS.items():
        name = next((n for n in (f"{part}_power", f"{part}_energy") if n in chip), None)
        if name:
            found.append((device, name, chip[name], name.endswith("_power")))
    if "dram_power" in chip or "dram_energy" in chip:
        name = "dram_power" if "dram_power" in chip else "dram_energy"
        found.append(("dram", name, chip[name], name.endswith("_power")))
    if "package_watts" in chip:  # Intel
        return [*found, ("package", "package_watts", _scaled(chip["package_watts"]), True)]
    for part in _WHOLE:
        for name in (f"{part}_power", f"{part}_energy"):
            if name in chip:
                return [*found, ("package", name, chip[name], name.endswith("_power"))]
    inside = [(v, in_mw) for d, _, v, in_mw in found if d.startswith("package/")]
    if len(inside) == len(_PARTS) and len({m for _, m in inside}) == 1 and all(_is_number(v) for v, _ in inside):
        # What newer versions print as the combined power is the sum of the three.
        found.append(("package", "cpu + gpu + ane", sum(float(str(v)) for v, _ in inside), inside[0][1]))
    return found


def _scaled(watts: object) -> object:
    return float(str(watts)) * _MILLI if _is_number(watts) else watts


def _mean(energy_mj: object, seconds: float) -> object:
    return float(str(energy_mj)) / seconds if _is_number(energy_mj) else energy_mj


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
