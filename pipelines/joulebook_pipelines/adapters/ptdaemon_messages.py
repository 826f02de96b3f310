"""PTDaemon's own messages (``ptd_logs.txt``): no readings, but what the analyser was unsure of."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import sections
from joulebook_pipelines.logs.contract import Adapter, Head, Log, Part

_MESSAGE = r"^\d\d-\d\d-\d{4} \d\d:\d\d:\d\d\.\d+: (ERROR|WARNING): (.*)$"
_ABOVE = r"Uncertainty ([\d.]+)%,?(?: which is)? above ([\d.]+)% limit"
_SHOWN = 5
"""Kinds of messages that are told; the rest is counted."""


def _sniff(head: Head) -> bool:
    if "SPEC PTDaemon Tool" in head.text[:4000]:
        return True
    first = [line for line in head.lines[:20] if line.strip()]
    return bool(first) and any(re.match(_MESSAGE, line) for line in first)


def _parse(log: Log) -> Iterator[Part]:
    kinds: Counter[tuple[str, str]] = Counter()
    above, highest, limit = 0, 0.0, 0.0
    for block in log.blocks():
        found = sections.lines_of(block).select(
            level=pl.col("raw").str.extract(_MESSAGE, 1), text=pl.col("raw").str.extract(_MESSAGE, 2),
            by=pl.col("raw").str.extract(_ABOVE, 1).cast(pl.Float64, strict=False),
            over=pl.col("raw").str.extract(_ABOVE, 2).cast(pl.Float64, strict=False),
        ).drop_nulls("level")  # fmt: skip
        unsure = found.filter(pl.col("by").is_not_null())
        above += unsure.height
        if unsure.height:
            highest, limit = max(highest, float(str(unsure["by"].max()))), float(unsure["over"][0] or 0.0)
        others = found.filter(pl.col("by").is_null()).with_columns(pl.col("text").str.replace_all(r"[\d.]+", "#"))
        for level, text, n in others.group_by("level", "text").len().iter_rows():
            kinds[(level, text)] += n
        yield Part(lines=block.count)
    yield Part(findings=(*_unsure(log, above, highest, limit), *_told(log, kinds)))


def _unsure(log: Log, above: int, highest: float, limit: float) -> tuple[Finding, ...]:
    if not above:
        return ()
    return (Finding(
        "analyser-uncertain", Severity.WARNING, log.name,
        f"{above} samples were measured with more uncertainty than allowed, up to {highest:g} % (limit {limit:g} %): the ranges of the "
        "analyser did not fit the load.", {"samples": above, "highest_ratio": highest / 100, "limit_ratio": limit / 100},
    ),)  # fmt: skip


def _told(log: Log, kinds: Counter[tuple[str, str]]) -> tuple[Finding, ...]:
    found = []
    for level, severity in (("ERROR", Severity.WARNING), ("WARNING", Severity.NOTE)):
        mine = [(text, n) for (lev, text), n in kinds.most_common() if lev == level]
        if not mine:
            continue
        total = sum(n for _, n in mine)
        shown = "; ".join(f"{n} × {text!r}" for text, n in mine[:_SHOWN]) + (" …" if len(mine) > _SHOWN else "")
        word = "errors" if level == "ERROR" else "warnings"
        found.append(Finding(
            f"analyser-{word}", severity, log.name, f"The analyser's daemon reports {total} {word}: {shown}.", {word: total},
        ))  # fmt: skip
    return tuple(found)


ADAPTER = Adapter(
    name="ptdaemon-messages",
    title="messages of SPEC PTDaemon (ptd_logs.txt)",
    yields="findings: errors, and samples measured with too much uncertainty; no readings",
    sniff=_sniff,
    parse=_parse,
)
