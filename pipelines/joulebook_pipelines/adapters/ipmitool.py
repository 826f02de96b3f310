"""``ipmitool``: ``dcmi power reading``, ``sdr`` (also elist, verbose) and ``sensor``, dump after dump under stamps."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import bmc, stamp_lines, stamps
from joulebook_pipelines.logs.contract import Adapter, Head, Log, Part

_DCMI = "Instantaneous power reading"
_UNITS = r"(?:Watts|degrees [CF]|RPM|Volts|Amps|percent|discrete|unspecified|feet|CFM)"
_PIPED = re.compile(
    rf"^[^|]{{1,60}}\|[^|]*(?:\b{_UNITS}\b|\bna\b|0x[0-9a-f]+|no reading|disabled|[0-9a-f]{{2,3}}h\s*\|)", re.IGNORECASE
)
_WIDE = re.compile(rf"^[^|]{{1,60}}\|\s*[\d.]+\s*\|\s*{_UNITS}\s*\|", re.IGNORECASE)
"""A line of ``ipmitool sensor`` whose reading is a number: the unit has a cell of its own."""

_COMMAS = rf"^([^,|]{{1,60}}),(-?[\d.]*|na|ns|0x[0-9a-fA-F]+),({_UNITS}),([a-z]{{2,3}})\s*$"
"""A line of ``ipmitool -c sdr``."""

_COLLECTED = re.compile(rf"^\[?{stamps.ISO}\]?[,;\s]+")
"""A collector's stamp before a line."""

_OWN_STAMP = re.compile(r"^\s*IPMI timestamp\s*:\s*(.+?)\s*(?:Sampling period\s*:.*)?$")
"""Some versions print the next line behind it, without a line end."""
_MESSAGE = (
    r"(?i)\bfailed\b|^\s*(?:error|unable|could not|get sdr|invalid|timeout|no response|address lookup|"
    r"sdr record|device not)"
)
_NUMBER_AND_UNIT = r"^\s*([-+]?\d+(?:\.\d+)?)\s*(?:\(\+/- [^)]*\))?\s*([A-Za-z%][A-Za-z %]*?)?\s*(?:,.*)?$"
_KNOWN = (
    r"^\s*(?:Minimum during sampling|Maximum during sampling|Average power reading|Sampling period|Entity ID|Status|"
    r"Sensor Type|Nominal|Normal|Upper|Lower|Positive|Negative|Minimum sensor|Maximum sensor|Event|Readable|Settable|"
    r"Threshold|Assertion|Locating sensor record|"
    r"Deassertion|States|Assertions|Deassertions|OEM|SDR|\[|Sensor Data Records|#)"
)


def sniff(head: Head) -> bool:
    """Tell whether the file holds what one of the subcommands prints."""
    lines = [_COLLECTED.sub("", line) for line in head.lines[:400]]
    if any(_DCMI in line and line.rstrip().endswith("Watts") for line in lines):
        return True
    if any(line.lstrip().startswith("Sensor ID") for line in lines):
        return any(line.lstrip().startswith("Sensor Reading") for line in lines)
    if sum(bool(re.match(_COMMAS, line)) for line in lines) * 2 >= sum("," in line for line in lines) > 0:
        return True
    piped = [line for line in lines if "|" in line]
    named = sum(
        1
        for line in piped
        if (_PIPED.search(line) or _WIDE.search(line)) and not line.lstrip().lower().startswith("id ")
    )
    return named >= 1 and named * 2 > len(piped) and any(re.search(rf"\b{_UNITS}\b", line) for line in piped)


def _cells(text: pl.Expr) -> dict[str, pl.Expr]:
    """Return what a line is and says."""
    text = text.str.replace(_COMMAS, "${1} | ${2} ${3} | ${4}")
    parts = text.str.split("|")
    width = parts.list.len()
    cell = [parts.list.get(i, null_on_oob=True).str.strip_chars() for i in range(5)]
    dcmi = text.str.extract(rf"{_DCMI}\s*:\s*(.*)$", 1)
    verbose = text.str.extract(r"^\s*Sensor Reading\s*:\s*(.*)$", 1)
    header = text.str.extract(r"^\s*Sensor ID\s*:\s*(.*?)\s*(?:\(0x[0-9a-fA-F]+\))?\s*$", 1)
    state = text.str.extract(r"^\s*Power reading state is\s*:\s*(\S+)", 1)
    # sdr: name | value unit | status; elist: name | id | status | entity | value unit; sensor: name | value | unit | …
    elist = (width == 5) & cell[1].str.contains(r"^[0-9A-Fa-f]{2,3}h$")
    wide = width >= 6
    said = pl.coalesce(dcmi, verbose, pl.when(elist).then(cell[4]).when(width >= 2).then(cell[1]))
    number = said.str.extract(_NUMBER_AND_UNIT, 1)
    unit = pl.coalesce(said.str.extract(_NUMBER_AND_UNIT, 2), said.str.extract(rf"\s({_UNITS})$", 1))
    words = said.str.replace(rf"\s*{_UNITS}$", "")
    kind = (
        pl.when(dcmi.is_not_null() | verbose.is_not_null()).then(pl.lit("value"))
        .when(state.is_not_null()).then(pl.lit("state"))
        .when(header.is_not_null()).then(pl.lit("name"))
        .when(text.str.contains(_MESSAGE)).then(pl.lit("message"))
        .when(width >= 2).then(pl.lit("value"))
        .when(text.str.contains(_KNOWN)).then(pl.lit("known")).otherwise(pl.lit("other"))
    )  # fmt: skip
    return {
        "kind": kind,
        "name": pl.coalesce(pl.when(dcmi.is_not_null()).then(pl.lit(_DCMI)), header, pl.when(width >= 2).then(cell[0])),
        "said": said,
        "value": pl.coalesce(state, number, words),
        "unit": pl.when(wide).then(cell[2]).otherwise(unit).fill_null(""),
        "entity": pl.when(elist).then(cell[3]),
    }


_DIALECT = bmc.Dialect(
    cells=_cells,
    own_stamp=_OWN_STAMP,
    own_time=stamp_lines.printed,
    dcmi_name=_DCMI,
    cure="write a line with the time before each dump, e.g. while true; do date -Is; ipmitool sdr; sleep 10; done",
)


def _parse(log: Log) -> Iterator[Part]:
    yield from bmc.parse(log, _DIALECT)


ADAPTER = Adapter(
    name="ipmitool",
    title="ipmitool dcmi power reading, sdr, sensor (text)",
    yields="node power, power of supplies (input, output), processors and memory; fans and temperatures",
    sniff=sniff,
    parse=_parse,
    needs_zone=True,
)
