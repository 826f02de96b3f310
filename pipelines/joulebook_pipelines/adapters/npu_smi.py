"""``npu-smi info`` of Huawei Ascend in a loop: the drawn table, two lines a chip, each round under a collector's time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from joulebook_pipelines.logs import entries, looped, table
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, Part

_TITLE = r"^\|\s*NPU\s+Name\s*\|\s*Health\s*\|\s*Power\(W\)\s+Temp\(C\)"
_CARD = r"^\|\s*(\d+)\s+([^|]*[^|\s])\s*\|\s*[A-Za-z]\w*\s*\|\s*(\S+)\s+(\S+)\s+\S+\s*/\s*\S+\s*\|\s*$"
"""Groups: number of the card, its name, power, temperature."""

_CHIP = r"^\|\s*(\d+)\s+(?:\d+\s+)?\|\s*[0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:\S+\s*\|\s*(\S+)\s"
"""Groups: number of the chip on the card, load of its cores."""

_DRAWN = r"^\s*[|+]"

_NO_POWER = "-"
"""What stands for the power of a second chip: that of the whole card is in the line of the first."""

_VALUES = (
    ("power", "Power(W)", "power_w", "W"),
    ("temperature", "Temp(C)", "temperature_c", "C"),
    ("load", "AICore(%)", "utilization_ratio", "percent"),
)
_CURE = "write the time before each table, e.g. while true; do date -Is; npu-smi info; sleep 1; done"


@dataclass
class _Rounds:
    """What the blocks so far said that those behind need; a card whose second line lies in the next block waits for it."""

    times: looped.Times
    waiting: pl.DataFrame | None = None
    told: set[str] = field(default_factory=set)


def _sniff(head: Head) -> bool:
    return any(re.search(_TITLE[1:], line) for line in head.lines[:200])


def _parse(log: Log) -> Iterator[Part]:
    dumps = sum(bool(re.search(_TITLE[1:], line)) for line in log.head.lines)
    rounds = _Rounds(looped.Times.find(log, _DRAWN, rounds=dumps, cure=_CURE))
    for block in log.blocks():
        yield _read(block, rounds)
    yield _read(None, rounds)
    yield Part(findings=rounds.times.findings)


def _read(block: Block | None, rounds: _Rounds) -> Part:
    """Return what a block says, ``None`` at the end of the file."""
    lines, rejects = _lines(block, rounds)
    lines = rounds.times.under(lines, pl.col("rest").str.contains(_TITLE))
    lines = lines.with_columns(drawn=pl.col("rest").str.contains(_DRAWN))
    odd = lines.filter(~pl.col("drawn") & ~pl.col("own"))
    rejects.append(table.whole_lines(odd.select("line", raw="text"), "tool-message"))
    told = _entries(lines)
    scopes = {
        d: "board" if p else "part"
        for d, p in told.group_by("device").agg((pl.col("quantity") == "power_w").any()).iter_rows()
    }
    readings, bad = entries.gather(told.select(list(entries.SCHEMA)), scopes, never_zero=True)
    models = dict(told.select("device", "model").iter_rows())
    fresh = entries.fresh(readings, rounds.told)
    channels = tuple(Channel(d, scopes[d], models[d] or "") for d in fresh)
    return Part(block.count if block else 0, readings, pl.concat([*rejects, bad]), channels=channels)


def _lines(block: Block | None, rounds: _Rounds) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """Return the lines to read now; from the last card on they wait where nothing that is drawn closes it yet."""
    held = rounds.waiting if rounds.waiting is not None else pl.DataFrame(schema={"line": pl.Int64, "text": pl.String})
    rounds.waiting = None
    if block is None:
        return held, []
    fresh, rejects = looped.lines(block, ends=("|", "+"))
    lines = pl.concat([held, fresh])
    if lines.height and re.search(_CARD[1:], lines["text"][-1]):
        rounds.waiting, lines = lines.tail(1), lines.head(lines.height - 1)
    return lines, rejects


def _entries(lines: pl.DataFrame) -> pl.DataFrame:
    """Return one entry a value; a card's line and that of its chip behind it make one reading."""
    card = [
        pl.col("rest").str.extract(_CARD, i).alias(n)
        for i, n in enumerate(("card", "model", "power", "temperature"), 1)
    ]
    chip = [pl.col("rest").str.extract(_CHIP, i).shift(-1).alias(n) for i, n in enumerate(("chip", "load"), 1)]
    cards = lines.with_columns(*card, *chip, next_line=pl.col("line").shift(-1)).filter(pl.col("card").is_not_null())
    later = (pl.col("chip") != "0").fill_null(value=False)
    name = pl.concat_str(
        pl.lit("npu:"), "card", pl.when(later).then(pl.lit("/") + pl.col("chip")).otherwise(pl.lit(""))
    )
    cards = cards.with_columns(
        device=name, row=pl.col("line"), power=pl.when(~(later & (pl.col("power") == _NO_POWER))).then("power")
    )
    made = [
        cards.select(
            "row", pl.col("next_line" if column == "load" else "line").alias("line"), "device", "ts_utc", quantity=pl.lit(quantity),
            header=pl.lit(header), unit=pl.lit(unit), raw=pl.col(column), model="model",
        ).filter(pl.col("raw").is_not_null())
        for column, header, quantity, unit in _VALUES
    ]  # fmt: skip
    return pl.concat(made).sort("row", "line", maintain_order=True)


ADAPTER = Adapter(
    name="npu-smi",
    title="npu-smi info (text, looped)",
    yields="power, temperature and load of each Ascend card",
    sniff=_sniff,
    parse=_parse,
    needs_zone=True,
)
