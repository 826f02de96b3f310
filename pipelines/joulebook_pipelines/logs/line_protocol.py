"""Points of InfluxDB's line protocol as columns: ``measurement,tag=… field=…,field=… nanoseconds``.

The syntax is that of https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/. Texts in quotes hold no reading and
are emptied; lines of measurements that know no power are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import polars as pl

from joulebook_pipelines.logs.contract import Head, Log
from joulebook_pipelines.logs.json_columns import Columns

_KEY = r"[^\s,=]+"
_POINT = rf"^({_KEY})((?:,{_KEY}=[^\s,=]+)*) ({_KEY}=[^\s,=]*(?:,{_KEY}=[^\s,=]*)*) (\d{{10,19}})$"
_QUOTED = r'="(?:[^"\\]|\\.)*"'
_ESCAPED = {r"\ ": "\x01", r"\,": "\x02", r"\=": "\x03"}
"""Signs that belong to a name or a tag, and what stands for them while a line is taken apart."""

_WHOLE = r"^(-?\d+)[iu]$"
"""Whole numbers carry a letter."""

_OF_CARDS = {
    "index": "gpu", "host": "host", "power_draw": "power_w", "power_limit": "power_limit_w", "temperature_gpu": "temperature_c",
    "utilization_gpu": "utilization_pct", "utilization_memory": "utilization.memory", "memory_used": "memory.used",
    "clocks_current_sm": "clocks.sm", "clocks_current_memory": "clocks.mem", "fan_speed": "fan.speed",
}  # fmt: skip
"""Telegraf's ``nvidia_smi``: what is read of a card, with the units of its manual; the others say nothing of a reading."""

SEEN_LINES, MOST = 60, 0.8


def sniff(head: Head, knows: Callable[[Sequence[str]], bool]) -> bool:
    """Tell whether most lines at the beginning are points, and one of them knows a time and a power."""
    lines = [line for line in head.lines if line.strip() and not line.startswith("#")]
    lines = (lines if head.complete else lines[:-1])[:SEEN_LINES]
    if not lines or " " not in lines[0] or "=" not in lines[0]:
        return False
    found = _split(pl.DataFrame({"line": range(1, len(lines) + 1), "raw": lines}))
    good = found.filter(pl.col("fields").is_not_null())
    return good.height >= MOST * len(lines) and any(
        knows(names) for names in {tuple(n for _, n in plan) for plan in _plans(good).values()}
    )


def of_lines(log: Log, knows: Callable[[Sequence[str]], bool]) -> Iterator[Columns]:
    """Yield the points of each block as columns."""
    for block in log.blocks():
        lines = block.numbered()
        lines = lines.filter((pl.col("raw").str.strip_chars() != "") & ~pl.col("raw").str.starts_with("#"))
        found = _split(lines)
        good = found.filter(pl.col("fields").is_not_null())
        frames = []
        for shape, plan in _plans(good).items():
            if not knows([n for _, n in plan]):
                continue
            mine = good.filter(pl.col("shape") == shape)
            cells = pl.col("cells").list
            values = [
                cells.get(i).str.extract(r"=(.*)$").str.replace(_WHOLE, "${1}").alias(n) for i, n in plan if i >= 0
            ]
            restored = [_restored(v) for v in values]
            frames.append(mine.select("line", pl.col("at").alias("time"), *restored))
        told = pl.concat(frames, how="diagonal").sort("line") if frames else pl.DataFrame(schema={"line": pl.Int64})
        odd = found.filter(pl.col("fields").is_null()).select("line", "raw").rows()
        yield told, odd, block.count


def _split(lines: pl.DataFrame) -> pl.DataFrame:
    """Add the parts of each point, null where a line is none, and its shape: the names without the values."""
    text = pl.col("raw").str.strip_chars().str.replace_all(_QUOTED, "=")
    for sign, stand_in in _ESCAPED.items():
        text = text.str.replace_all(sign, stand_in, literal=True)
    parts = lines.with_columns(text=text).with_columns(
        name=pl.col("text").str.extract(_POINT, 1), tags=pl.col("text").str.extract(_POINT, 2),
        fields=pl.col("text").str.extract(_POINT, 3), at=pl.col("text").str.extract(_POINT, 4),
    )  # fmt: skip
    cells = pl.concat_str(pl.col("tags").str.strip_prefix(","), "fields", separator=",").str.strip_chars_start(",")
    shape = pl.concat_str("name", cells.str.replace_all(r"=[^,]*", "="), separator=" ")
    return parts.with_columns(cells=cells.str.split(","), shape=shape).drop("text", "tags")


def _plans(good: pl.DataFrame) -> dict[str, list[tuple[int, str]]]:
    """Return, by shape, the place and the name of each cell that is looked at."""
    plans = {}
    for shape in good["shape"].unique(maintain_order=True):
        measurement, _, keys = shape.partition(" ")
        names = [k.removesuffix("=") for k in keys.split(",")]
        cards = measurement == "nvidia_smi"
        wanted = [_OF_CARDS.get(n, "") if cards else n for n in names]
        # A name that a damaged line holds twice is read once.
        places = {n: i for i, n in reversed(list(enumerate(wanted))) if n and n not in {"time", "line"}}
        plans[shape] = [(-1, "time"), *sorted((i, n) for n, i in places.items())]
    return plans


def _restored(value: pl.Expr) -> pl.Expr:
    for sign, stand_in in _ESCAPED.items():
        value = value.str.replace_all(stand_in, sign[1:], literal=True)
    return value
