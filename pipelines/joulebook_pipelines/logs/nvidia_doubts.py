"""Doubts about a whole ``nvidia-smi --query-gpu`` table, from its header and from a pass over it."""

from __future__ import annotations

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs.contract import Log
from joulebook_pipelines.logs.local_time import Localiser
from joulebook_pipelines.logs.nvidia_query import Layout


def about(log: Log, layout: Layout, header_at: int | None) -> tuple[Finding, ...]:
    """Return what the header shows: no power, or no header."""
    found = []
    if layout.power is None and not layout.counts:
        found.append(Finding(
            "no-power-column", Severity.WARNING, log.name,
            "The log has no power.draw column: it says nothing about energy. Utilisation and temperature are read.",
            {"columns": list(layout.headers)},
        ))  # fmt: skip
    if layout.others:
        beside = ", ".join(f.header.split(" [")[0] for f in layout.others)
        found.append(Finding(
            "several-power-fields", Severity.NOTE, log.name,
            f"{layout.power} is read as the card's power; beside it, as parts and in no total: {beside}. power.draw and "
            "power.draw.average are means of about a second on most boards, power.draw.instant is not: compare like with like.",
            {"used": layout.power, "beside": [f.header for f in layout.others]},
        ))  # fmt: skip
    if header_at is None:
        found.append(Finding(
            "header-missing", Severity.NOTE, log.name,
            "The file has no header; its columns are read by position as study.toml says.", {"columns": dict(log.options.columns)},
        ))  # fmt: skip
    return tuple(found)


def about_cards(log: Log, header: Layout, used: Layout) -> tuple[Finding, ...]:
    """Return what the first rows show about the column that the header offers for telling cards apart.

    Parameters
    ----------
    header, used
        The columns as the header names them, and as they are read.
    """
    if header.index is None or header.index == used.key:
        return ()

    def title(column: str | None) -> str:
        return header.headers[header.names.index(column)] if column else ""

    return (Finding(
        "card-number-repeated", Severity.NOTE, log.name,
        f"The column {title(header.index)!r} gives several cards one number; they are told apart by {title(used.key)!r}.",
        {"column": title(header.index), "used": title(used.key)},
    ),)  # fmt: skip


def afterwards(log: Log, clock: Localiser, *, incomplete_ticks: int) -> tuple[Finding, ...]:
    """Return what a whole pass has shown: rounds left out, an hour that came twice."""
    found = []
    if incomplete_ticks:
        found.append(Finding(
            "incomplete-ticks", Severity.WARNING, log.name,
            f"{incomplete_ticks} sampling rounds lack a card's line and were left out; the order of lines names the card, so a "
            "round with a missing line cannot be told apart.", {"rounds": incomplete_ticks},
        ))  # fmt: skip
    if clock.unresolved_hours:
        found.append(Finding(
            "repeated-hour", Severity.WARNING, log.name,
            f"{clock.unresolved_hours} stamps lie in the hour that comes twice when summer time ends; they were read as the first pass.",
            {"stamps": clock.unresolved_hours},
        ))  # fmt: skip
    return tuple(found)
