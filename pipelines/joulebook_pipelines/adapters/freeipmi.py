"""FreeIPMI: ``ipmi-dcmi --get-system-power-statistics`` and ``ipmi-sensors`` (bars or commas), dump after dump; ``ipmiutil dcmi``."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import bmc, stamp_lines
from joulebook_pipelines.logs.contract import Adapter, Head, Log, Part

_DCMI = "Current Power"
_DCMI_LINE = rf"^\s*{_DCMI}\s*:\s*(.*)$"
_ALONE = re.compile(rf"{_DCMI} {{10,}}: \d+ Watts\s*$")
"""The line that ``head -1`` or ``grep`` leaves of a dump, as wide as the tool writes it."""

_OWN_STAMP = re.compile(r"^\s*Time ?[Ss]tamp\s*:\s*(.+)$")
_HEADER = re.compile(r"^[^|,]*?\bID\s*([|,])\s*Name\s*[|,]\s*Type\s*[|,]")
_WITHOUT_STATE = ("ID", "Name", "Type", "Reading", "Units", "Event")
_WITH_STATE = ("ID", "Name", "Type", "State", "Reading", "Units", "Event")
_ROW = re.compile(
    r"(?:^|\s)\d+\s*([|,])[^|,]+[|,]\s*"
    r"(?:Temperature|Fan|Current|Voltage|Power Supply|Power Unit|Other Units)[^|,]*[|,]"
)
_KNOWN = (
    r"^\s*(?:(?:Min|Max|Average|Avg)(?:imum)? Power|Statistics reporting|Sampling period|#|Record ID|.{0,40}\bID\s*[|,]\s*Name\s*[|,]"
    r"|DCMI |ipmiutil |-- BMC|Exception Action|Power Limit|Correction Time)"
)
_MESSAGE = r"(?i)\b(?:failed|timeout|error|unavailable|invalid|unable|cannot)\b|^\s*ipmi[-_]"


def sniff(head: Head) -> bool:
    """Tell whether the file holds what one of the tools prints."""
    lines = head.lines[:400]
    if any(_HEADER.match(line) for line in lines):
        return True
    if any(re.match(_DCMI_LINE, line) or f" {_DCMI} " in line for line in lines):
        if any(re.search(r"Power Measurement|Statistics reporting|Sampling period", line) for line in lines):
            return True
        return sum(bool(_ALONE.search(line)) for line in lines) * 2 > sum(bool(line.strip()) for line in lines)
    rows = [line for line in lines if _ROW.search(line)]
    return len(rows) >= 2


def _own_time(text: pl.Expr) -> pl.Expr:
    own = text.str.strip_chars().str.to_datetime("%m/%d/%Y - %H:%M:%S", time_unit="us", strict=False)
    return pl.coalesce(own, stamp_lines.printed(text))


def _layout(lines: tuple[str, ...]) -> tuple[str, list[str]]:
    """Return the separator and the columns: as the header says, else as many fields as the first row has."""
    for line in lines:
        header = _HEADER.match(line)
        if header:
            begin = line.index("ID")
            return header[1], [c.strip() for c in line[begin:].split(header[1])]
    for line in lines:
        row = _ROW.search(line)
        if row:
            count = len(line.split(row[1]))
            return row[1], list(_WITH_STATE if count in {7, 13} else _WITHOUT_STATE)
    return "|", list(_WITHOUT_STATE)


def _dialect(log: Log) -> bmc.Dialect:
    separator, columns = _layout(log.head.lines)

    def cells(text: pl.Expr) -> dict[str, pl.Expr]:
        parts = text.str.split(separator)

        def part(name: str) -> pl.Expr:
            if name not in columns:
                return pl.lit(None, pl.String)
            return parts.list.get(columns.index(name), null_on_oob=True).str.strip_chars(" '")

        row = (parts.list.len() == len(columns)) & part("ID").str.contains(r"^\d+$")
        dcmi = text.str.extract(_DCMI_LINE, 1)
        state = text.str.extract(r"^\s*(?:Power Measurement|Power reading state is)\s*:\s*(.+)$", 1)
        number = dcmi.str.extract(r"^\s*([-+]?\d+(?:\.\d+)?)\s*[Ww]atts", 1)
        kind = (
            pl.when(dcmi.is_not_null()).then(pl.lit("value"))
            .when(state.is_not_null()).then(pl.lit("state"))
            .when(row).then(pl.lit("value")).when(text.str.contains(_KNOWN)).then(pl.lit("known"))
            .when(text.str.contains(_MESSAGE)).then(pl.lit("message")).otherwise(pl.lit("other"))
        )  # fmt: skip
        return {
            "kind": kind,
            "name": pl.when(dcmi.is_not_null()).then(pl.lit(_DCMI)).otherwise(part("Name")),
            "value": pl.coalesce(state.str.strip_chars(), number, dcmi, part("Reading")),
            "said": pl.coalesce(dcmi, part("Reading")),
            "unit": pl.when(number.is_not_null()).then(pl.lit("Watts")).otherwise(part("Units")).fill_null(""),
            "entity": pl.lit(None, pl.String),
        }

    return bmc.Dialect(
        cells=cells, own_stamp=_OWN_STAMP, own_time=_own_time, dcmi_name=_DCMI,
        cure="write a line with the time before each dump, e.g. while true; do date -Is; ipmi-sensors; sleep 10; done",
    )  # fmt: skip


def _parse(log: Log) -> Iterator[Part]:
    yield from bmc.parse(log, _dialect(log))


ADAPTER = Adapter(
    name="freeipmi",
    title="FreeIPMI ipmi-dcmi and ipmi-sensors (text, comma-separated), ipmiutil dcmi",
    yields="node power, power of supplies (input, output), processors and memory; fans and temperatures",
    sniff=sniff,
    parse=_parse,
    needs_zone=True,
)
