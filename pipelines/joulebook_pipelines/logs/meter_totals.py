"""Columns that are the sum of the columns beside them, told by their numbers where no title says so."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import cells
from joulebook_pipelines.logs.meter_columns import Group, Layout

FEWEST_VALUES, SHARE, TOLERANCE = 5, 0.95, 0.01
"""Different powers from which a sum is no chance; in which share of the rows it must hold, and how closely."""

SINGLE = 2
"""A column and one other."""


def found(sample: pl.DataFrame, layout: Layout, decimal: str) -> tuple[Layout, str]:
    """Return the layout with the parts of a sum as parts, and the title of the sum; ``""`` where there is none.

    Parameters
    ----------
    sample
        Text cells of the first rows.
    decimal
        Decimal sign of the file.
    """
    groups = {g.device: g for g in layout.groups if g.device and any(f.quantity == "power_w" for f in g.fields)}
    for scope in dict.fromkeys(g.scope for g in groups.values() if g.scope not in {"part", "dc"}):
        powers = _powers(sample, [g for g in groups.values() if g.scope == scope], decimal)
        total = _sum_of_the_rest(powers)
        if total:
            parts = set(powers.columns) - {total}
            told = tuple(
                replace(g, scope="part", judged=g.scope or "facility") if g.device in parts else g
                for g in layout.groups
            )
            return replace(layout, groups=told), next(f.header for f in groups[total].fields if f.quantity == "power_w")
    return layout, ""


def about(name: str, total: str) -> tuple[Finding, ...]:
    """Say which column of a file is the sum of the others, where one is."""
    if not total:
        return ()
    return (Finding(
        "column-is-total", Severity.NOTE, name,
        f"{total!r} is the sum of all power beside it in each row: what stands beside it is read as a part and not added.",
        {"title": total},
    ),)  # fmt: skip


def _powers(sample: pl.DataFrame, groups: list[Group], decimal: str) -> pl.DataFrame:
    """Return the powers [W] of each device, in rows where all of them say one."""
    fields = {g.device: next(f for f in g.fields if f.quantity == "power_w") for g in groups}
    numbers = [cells.number(pl.col(f.column), "power_w", f.unit, decimal=decimal).alias(d) for d, f in fields.items()]
    return sample.select(numbers).drop_nulls() if numbers else pl.DataFrame()


def _among_equals(name: str, names: list[str]) -> bool:
    """Tell whether a device is one of several of its kind, as cards and phases are: none of those is the sum of the others."""
    kind = re.match(r"(?:gpu|cpu|dram|psu|phase|outlet):", name)
    return kind is not None and sum(n.startswith(kind[0]) for n in names) > 1


def _sum_of_the_rest(powers: pl.DataFrame) -> str:
    """Return the column that is the sum of the others in nearly every row; ``""`` where none is.

    A single other must say the very same: two machines at rest may be as close as a sum is to its parts.
    """
    names = powers.columns
    tolerance = TOLERANCE if len(names) > SINGLE else 0.0
    for name in (n for n in names if len(names) >= SINGLE and not _among_equals(n, names)):
        rest = pl.sum_horizontal([pl.col(n) for n in names if n != name])
        close = (pl.col(name) - rest).abs() <= tolerance * pl.col(name).abs()
        if powers[name].n_unique() >= FEWEST_VALUES and float(powers.select(close.mean()).item() or 0.0) >= SHARE:
            return name
    return ""
