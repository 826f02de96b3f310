"""What ``rocm-smi`` and ``amd-smi`` print for people: lines a card and quantity, or a drawn table, under a collector's stamps."""

from __future__ import annotations

import re

import polars as pl

from joulebook_pipelines.logs import amd_names, cells, damage, entries, sections, table
from joulebook_pipelines.logs.amd_rounds import Said, Times
from joulebook_pipelines.logs.contract import Head, Log, LogRefusedError

_KEYED = r"^\s*GPU\[(\d+)\]\s*:\s*(\S.*?)\s*:\s*(\S.*?)\s*$"
_CARD = r"^GPU:\s*(\d+)\s*$"
_MEMBER = r"^\s+(SOCKET_POWER|AVERAGE_SOCKET_POWER|CURRENT_SOCKET_POWER|GFX_ACTIVITY|HOTSPOT|TOTAL_ENERGY_CONSUMPTION):\s*(\S.*?)\s*$"
_TITLES = re.compile(
    r"^\s*(?:GPU\s+Temp\b.*\b(?:AvgPwr|Power)\b|Device\s.*\bPower\b.*\bPwrCap\b|(?:TIMESTAMP\s+)?GPU\s+(?:XCP\s+)?POWER\b)"
)
_ROW = r"^\s*(?:(1\d{9})\s+)?(\d{1,3})\s+(\S.*(?:\d\s*W|N/A).*)$"
_WATTS = r"[\d.]+\s*W\b"
_BEFORE_CLOCKS = r"^(.*?)(?:[Mm][Hh]z|%|$)"
"""The power stands before clocks and shares; what has watts behind them is the cap."""
_TOOL = re.compile(r"^\s*$|^[=\s]*$|^=+|^\s*(?:GPU|Device|TIMESTAMP|\(DID)|^WARNING")


def looks_so(head: Head) -> bool:
    """Tell whether a file holds what one of the tools prints as text."""
    lines = head.lines[:200]
    keyed = (re.match(_KEYED, line) for line in lines)
    if any(m and m[2].lower() in amd_names.POWERS for m in keyed):
        return True
    if any(map(_TITLES.match, lines)):
        return any(re.match(_ROW, line) for line in lines)
    return any(re.match(_CARD, line) for line in lines) and any(re.match(_MEMBER, line) for line in lines)


def read(log: Log) -> Said:
    """Return what the lines say.

    Raises
    ------
    LogRefusedError
        The rounds carry no time, or no line is whole.
    """
    blocks = [sections.lines_of(b).with_columns(cut=pl.lit(not b.terminated)) for b in log.blocks()]
    lines = pl.concat(blocks)
    total = log.passed.lines
    odd = [table.no_rejects()]
    if lines.height > 1 and lines["cut"][-1]:
        odd.append(table.whole_lines(lines.tail(1), damage.CUT))
        lines = lines.head(lines.height - 1)
    told = pl.concat([_keyed(lines), _of_rows(lines), _members(lines)]).sort("line", maintain_order=True)
    told = _preferred(told)
    if told.is_empty():
        raise LogRefusedError(f"{log.name}: no card in it has a quantity that is read")
    again = pl.int_range(pl.len()).over("device", "quantity")
    times = Times(
        log, told["own"].drop_nulls().head(200).to_list(), 1, int(str(told.select(again).to_series().max())) + 1
    )
    told, strange = _timed(told.with_columns(turn=again), lines, times)
    doubts = times.steps.findings if times.steps is not None else ()
    return Said(
        told.select(pl.col(c).cast(t) for c, t in entries.SCHEMA.items()), total, {}, pl.concat([*odd, strange]), doubts
    )


def _preferred(told: pl.DataFrame) -> pl.DataFrame:
    """Return the entries without those whose quantity a card also gives under a better name; what says nothing is no name."""
    order = {name: i for i, name in enumerate(amd_names.QUANTITIES)}
    rank = pl.col("name").replace_strict(order, default=-1, return_dtype=pl.Int64)
    says = ~pl.col("raw").str.strip_chars().str.to_lowercase().is_in(cells.MISSING)
    told = told.with_columns(_place=rank + pl.when(says.any().over("device", "name")).then(0).otherwise(len(order)))
    best = pl.col("_place").min().over("device", "quantity")
    return told.filter((pl.col("_place") == best) | (pl.col("name") == "")).drop("_place")


def _shaped(lines: pl.DataFrame, **columns: pl.Expr) -> pl.DataFrame:
    """Return entries without times: ``line, own, device, name, quantity, header, unit, raw``."""
    text = {"own": pl.lit(None, pl.String), **columns}
    made = lines.select("line", **{c: e.cast(pl.String) for c, e in text.items()})
    order = ("line", "own", "device", "name", "quantity", "header", "unit", "raw")
    return made.filter(pl.col("raw").is_not_null() & pl.col("device").is_not_null()).select(order)


def _known(name: pl.Expr, place: int) -> pl.Expr:
    told = {k: v[place] for k, v in amd_names.QUANTITIES.items()}
    return name.replace_strict(told, default=None, return_dtype=pl.String)


def _keyed(lines: pl.DataFrame) -> pl.DataFrame:
    """``GPU[0] : Average Graphics Package Power (W): 35.0``."""
    parts = pl.col("raw").str.extract_groups(_KEYED).struct
    said = lines.select("line", card=parts.field("1"), header=parts.field("2"), raw=parts.field("3"))
    name = pl.col("header").str.to_lowercase()
    said = said.with_columns(name=name).filter(_known(pl.col("name"), 0).is_not_null())
    return _shaped(
        said, device=pl.format("gpu:{}", "card"), name=pl.col("name"), quantity=_known(pl.col("name"), 0),
        header=pl.col("header"), unit=_known(pl.col("name"), 1), raw=pl.col("raw"),
    )  # fmt: skip


def _members(lines: pl.DataFrame) -> pl.DataFrame:
    """``GPU: 0`` and below it ``SOCKET_POWER: 350 W``."""
    card = pl.col("raw").str.extract(_CARD, 1).forward_fill()
    parts = pl.col("raw").str.extract_groups(_MEMBER).struct
    said = lines.select("line", card=card, header=parts.field("1"), raw=parts.field("2"))
    said = said.filter(pl.col("header").is_not_null()).with_columns(name=pl.col("header").str.to_lowercase())
    return _shaped(
        said, device=pl.format("gpu:{}", "card"), name=pl.col("name"), quantity=_known(pl.col("name"), 0),
        header=pl.col("header"), unit=_known(pl.col("name"), 1), raw=pl.col("raw"),
    )  # fmt: skip


def _of_rows(lines: pl.DataFrame) -> pl.DataFrame:
    """Rows of a table: the units of the cells say what they are, as titles and cells do not always stand below each other."""
    titles = lines.filter(pl.col("raw").str.contains(_TITLES.pattern))
    parts = pl.col("raw").str.extract_groups(_ROW).struct
    rows = lines.select("line", own=parts.field("1"), card=parts.field("2"), rest=parts.field("3"))
    rows = rows.filter(pl.col("card").is_not_null() & (titles.height > 0))
    load = r"([\d.]+)\s*%" if "POWER" in "".join(titles["raw"].head(1)) else r"^.*\s([\d.]+)\s*%"
    rest, number = pl.col("rest"), r"([\d.]+)"
    power = rest.str.extract(_BEFORE_CLOCKS, 1).str.extract(_WATTS, 0).str.extract(number, 1)
    watts = rest.str.extract_all(_WATTS)
    cap = pl.when(watts.list.len() > power.is_not_null().cast(pl.UInt32)).then(watts.list.last().str.extract(number, 1))
    made = []
    for quantity, raw, unit, header in (
        ("power_w", power.fill_null("N/A"), "W", "Power"), ("power_limit_w", cap, "W", "PwrCap"),
        ("temperature_c", rest.str.extract(number + r"\s*°?\s*[cC]\b", 1), "C", "Temp"),
        ("utilization_ratio", rest.str.extract(load, 1), "%", "GPU%"),
    ):  # fmt: skip
        made.append(_shaped(
            rows, own=pl.col("own"), device=pl.format("gpu:{}", "card"), name=pl.lit(""), quantity=pl.lit(quantity),
            header=pl.lit(header), unit=pl.lit(unit), raw=raw,
        ))  # fmt: skip
    return pl.concat(made)


def _timed(told: pl.DataFrame, lines: pl.DataFrame, times: Times) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the entries with time and row, and rejects of lines that are neither entries nor stamps nor drawing."""
    others = lines.filter(~pl.col("line").is_in(told["line"].implode()))
    mark = pl.col("turn")
    if times.steps is not None:
        told = told.with_columns(times.steps.at(told["turn"] + 1))
    elif times.collector is not None:
        stamp, rest, meant = times.collector.split(pl.col("raw"))
        marks = others.select("line", stamp=stamp, alone=rest.str.strip_chars(" =|-") == "", meant=meant)
        marks = marks.filter(pl.col("meant") & pl.col("alone")).select("line", "stamp", mark="line")
        told = told.join_asof(marks, on="line", strategy="backward")
        others = others.filter(~pl.col("line").is_in(marks["line"].implode()))
        told, mark = told.with_columns(times.utc(told["stamp"].fill_null(""))), pl.col("mark")
    else:
        told, mark = told.with_columns(times.utc(told["own"].fill_null(""))), pl.col("turn")
    told = told.with_columns(row=pl.struct(mark, "device").rank("dense").cast(pl.Int64))
    drawn = pl.col("raw").str.contains(_TOOL.pattern) | pl.col("raw").str.contains(r"^\s+\w+:|^\s*[\w ()/%-]+$")
    return told, table.whole_lines(others.filter(~drawn).select("line", "raw"), "tool-message")
