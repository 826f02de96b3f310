"""Parts of a file joined to the size that is written fastest."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from joulebook_pipelines.logs.contract import Part

GATHERED_ROWS = 250_000
"""Two row groups of the database: below, each insert costs more than its rows; above, only memory grows."""


def gathered(parts: Iterator[Part]) -> Iterator[Part]:
    """Join parts that follow each other and hold readings only: fewer and larger ones are written faster."""
    held: list[Part] = []
    rows = 0
    for part in parts:
        alone = (
            part.readings is None
            or part.devices
            or any(f is not None and f.height for f in (part.rejects, part.runs, part.steps, part.phases))
        )
        if held and (alone or rows >= GATHERED_ROWS or _schema(held[0]) != _schema(part)):
            yield _joined(held)
            held, rows = [], 0
        if alone or part.readings is None:
            yield part
        else:
            held.append(part)
            rows += part.readings.height
    if held:
        yield _joined(held)


def _schema(part: Part) -> pl.Schema | None:
    return None if part.readings is None else part.readings.schema


def _joined(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    return Part(
        lines=sum(p.lines for p in parts),
        readings=pl.concat([p.readings for p in parts if p.readings is not None]),
        channels=tuple(c for p in parts for c in p.channels),
        findings=tuple(f for p in parts for f in p.findings),
        tool_version=next((p.tool_version for p in parts if p.tool_version), ""),
    )
