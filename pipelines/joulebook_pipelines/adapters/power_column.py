"""One column of powers and nothing else: ``nvidia-smi --query-gpu=power.draw`` in a loop, without times."""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs import damage, device_places, table, untimed
from joulebook_pipelines.logs.contract import Adapter, Block, Channel, Head, Log, LogRefusedError, Part
from joulebook_pipelines.logs.table import Field

_TITLE = re.compile(r'^"?(power\.draw(?:\.\w+)?)(?: \[(m?W)\])?"?$', re.IGNORECASE)
_POWER = re.compile(r'^"?-?\d+(?:\.\d+)?\s*(m?W)?"?$')
_MISSING = re.compile(r"^\[?(?:N/A|Not Supported|Unknown Error|GPU is lost)\]?$", re.IGNORECASE)

FEWEST_LINES = 3
"""A column is claimed from this many lines on."""

LINES_LOOKED_AT = 200


def _title(head: Head) -> re.Match[str] | None:
    return _TITLE.match(head.top[1].strip())


def _cells(head: Head) -> list[str]:
    first = head.top[0] if _title(head) else 0
    return [line.strip() for line in head.lines[first:LINES_LOOKED_AT] if line.strip()]


def _sniff(head: Head) -> bool:
    cells = _cells(head)
    powers = [c for c in cells if _POWER.match(c)]
    if len(powers) < (1 if _title(head) else FEWEST_LINES) or len(powers) * 2 < len(cells):
        return False
    if _title(head) or any(c.endswith("W") for c in powers):
        return all(_POWER.match(c) or _MISSING.match(c) or _TITLE.match(c) or " " in c for c in cells)
    # Whole numbers alone are counters, stamps or steps rather than powers.
    return all("." in c for c in powers) and all(_POWER.match(c) or _MISSING.match(c) for c in cells)


def _parse(log: Log) -> Iterator[Part]:
    title = _title(log.head)
    unit = (title[2] or "" if title else "") or log.options.units.get("power_w", "")
    if not title and not unit and not any(c.rstrip('"').endswith("W") for c in _cells(log.head)):
        raise LogRefusedError(
            f"{log.name}:1: is one column of numbers and nothing says that they are powers; if they are, add units = "
            '{ power_w = "W" } and period_s = (seconds from one line to the next) to this [[source]]'
        )
    steps = untimed.Steps(log)
    scope = "board" if title else log.options.scope or ""
    device = log.options.device or device_places.MAIN_DEVICE.get(scope, "meter")
    yield Part(channels=(Channel(device, scope, kind="mean", window_s=None),))
    field = Field("c0", title[0].strip('"') if title else "column 1", "power_w", unit, required=True)
    for block in log.blocks():
        yield _read(block, field, device, scope, steps)
    yield Part(findings=steps.findings)


def _read(block: Block, field: Field, device: str, scope: str, steps: untimed.Steps) -> Part:
    block, nul = damage.without_nul(block)
    raw = block.numbered("c0").with_columns(pl.col("c0").str.strip_chars(' \t\r"'))
    raw = raw.filter((pl.col("c0") != "") & ~pl.col("c0").str.contains(f"(?i){_TITLE.pattern}"))
    raw, cut = damage.cut_last(block, raw, ("c0",), ",")
    raw = raw.with_columns(device=pl.lit(device))
    values, bad = table.convert(raw, [field])
    values, judged = table.judge(values, raw, [field], scope or "facility")
    values = values.with_columns(steps.next(raw.height), span_s=pl.lit(steps.step_s))
    return Part(lines=block.count, readings=table.kept(values), rejects=pl.concat([nul, cut, bad, judged]))


ADAPTER = Adapter(
    name="power-column",
    title="one column of powers without times (nvidia-smi --query-gpu=power.draw in a loop)",
    yields="power, one reading every period_s seconds as study.toml says",
    sniff=_sniff,
    parse=_parse,
)
