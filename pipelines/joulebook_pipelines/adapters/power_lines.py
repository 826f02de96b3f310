"""Lines of text with a time and one power each, as scripts print them: ``[2026-03-02 10:00:00] GPU power: 210.5 W``."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import damage, device_places, dialect, local_time, meter_columns, relative, stamps, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.stamp_lines import printed
from joulebook_pipelines.logs.table import Field

LINES, LEAST_SHARE, FEWEST = 300, 0.5, 3
"""Lines that are looked at, the share of them that must hold a time and a power, and how many must."""

_DAY, _MONTH = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)", r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_PRINTED = rf"{_DAY} {_MONTH}\s+\d{{1,2}} \d\d:\d\d:\d\d(?: [A-Z]{{3,4}})? \d{{4}}"
_OF_DAY = rf"\d{{1,2}}:\d\d:\d\d(?:[.,]\d+)?{stamps.HALF_DAY}"
_KINDS = {"iso": stamps.ISO, "slashed": stamps.SLASHED, "printed": _PRINTED, "of-day": _OF_DAY}
_POWER = r"(?:^|[\s:=(\[,;|])([+-]?\d+(?:\.\d+)?)\s*((?:[mk]W|W|[Ww]atts?|milli[Ww]atts?)\b)"
_CARD = re.compile(r"(?i)\b(?:gpu|device|card)[ _#:-]*(\d{1,2})\b")
_FIELD = Field("raw", "power", "power_w", "W", required=True)


def _form(head: Head) -> tuple[str, list[str]] | None:
    """Return the kind of stamp and the lines that hold it with exactly one power, where most lines do."""
    lines = [line for line in head.lines[:LINES] if line.strip()]
    for kind, pattern in _KINDS.items():
        mine = [line for line in lines if len(re.findall(_POWER, line)) == 1 and len(re.findall(pattern, line)) == 1]
        if len(mine) >= FEWEST and len(mine) >= LEAST_SHARE * len(lines):
            return kind, mine
    return None


def _sniff(head: Head) -> bool:
    text = head.text.lstrip()[:1]
    if text in {"{", "[<"} or dialect.find(head, meter_columns.knows) is not None or dialect.looks_headerless(head):
        return False
    found = _form(head)
    if found is None:
        return False
    # Cells of a table are told by their titles or places; a sentence names the power or the card, or has nothing but it.
    signs = sum(line.count(",") + line.count(";") + line.count("\t") for line in found[1])
    return signs < 3 * len(found[1]) or all(map(_CARD.search, found[1]))


def _parse(log: Log) -> Iterator[Part]:
    found = _form(log.head)
    if found is None:
        raise LogRefusedError(f"{log.name}: most lines do not hold one time and one power with its unit")
    kind, mine = found
    pattern = _KINDS[kind]
    samples = [m[0] for line in mine if (m := re.search(pattern, line))]
    of_day = relative.OfDay(log, 1, samples[0]) if kind == "of-day" else None
    clock, form = local_time.Localiser(None), None
    if kind in {"iso", "slashed"}:
        form = local_time.form(log, samples)
        clock = local_time.localiser(log, form, 1, samples[0])
    elif kind == "printed":
        aware = all(re.search(r"\b(?:UTC|GMT)\b", s) for s in samples)
        clock = local_time.localiser(log, stamps.StampForm("printed", aware=aware), 1, samples[0])
    told: set[str] = set()
    for block in log.blocks():
        raw, rejects = _rows(block, pattern, log)
        if of_day is not None:
            utc = of_day.utc(raw["stamp"])
        else:
            naive = printed(pl.col("stamp")) if form is None else stamps.parse(pl.col("stamp"), form)
            utc = clock.utc(raw, naive)
        raw = raw.with_columns(utc.alias("ts_utc"))
        lost = raw.filter(pl.col("ts_utc").is_null())
        raw = raw.filter(pl.col("ts_utc").is_not_null())
        rejects = pl.concat([rejects, table.without_time(lost, (_FIELD,), Field("stamp", "time", "ts_utc"))])
        part = _read(block, raw, rejects, log, told)
        told |= {c.device for c in part.channels}
        yield part
    yield Part(findings=(Finding(
        "read-from-text", Severity.NOTE, log.name,
        "The file is text, not a table: each line with one time and one number in watts was read as a power; all other lines are "
        "in the rejects.", {},
    ),))  # fmt: skip


def _rows(block: Block, pattern: str, log: Log) -> tuple[pl.DataFrame, pl.DataFrame]:
    lines = block.filled("text")
    groups = pl.col("text").str.extract_groups(_POWER).struct
    lines = lines.with_columns(
        stamp=pl.col("text").str.extract(f"({pattern})", 1), raw=pl.concat_str(groups.field("1"), groups.field("2"), separator=" "),
        many=pl.col("text").str.count_matches(_POWER), card=pl.col("text").str.extract(_CARD.pattern, 1),
    )  # fmt: skip
    whole = pl.col("stamp").is_not_null() & pl.col("raw").is_not_null() & (pl.col("many") == 1)
    odd = lines.filter(~whole.fill_null(value=False))
    rule = pl.when(pl.col("many") > 1).then(pl.lit("several-powers")).otherwise(pl.lit("foreign-line"))
    scope = log.options.scope or ""
    device = log.options.device or device_places.MAIN_DEVICE.get(scope, "meter")
    named = pl.when(pl.col("card").is_not_null()).then(pl.concat_str(pl.lit("gpu:"), "card")).otherwise(pl.lit(device))
    good = lines.filter(whole).with_columns(device=named)
    return good, damage.odd_lines(block, odd.select("line", "many", raw="text"), rule)


def _read(block: Block, raw: pl.DataFrame, rejects: pl.DataFrame, log: Log, told: set[str]) -> Part:
    values, bad = table.convert(raw, (_FIELD,))
    scope = log.options.scope or ""
    judged, broken = table.judge(values, raw, (_FIELD,), scope or "facility")
    readings = table.kept(judged.with_columns(raw["ts_utc"]))
    channels = tuple(
        Channel(d, "board" if d.startswith("gpu:") else scope, kind=log.options.kind or "instant", window_s=log.options.window_s)
        for d in readings["device"].unique(maintain_order=True) if d not in told
    )  # fmt: skip
    return Part(block.count, readings, pl.concat([rejects, bad, broken]), channels=channels)


ADAPTER = Adapter(
    name="power-lines",
    title="text of scripts: lines with a time and one power in watts each",
    yields="power, per card where the line names one",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
    fallback=True,
)
