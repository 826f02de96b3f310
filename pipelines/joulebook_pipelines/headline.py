"""What a run of joulebook says at its end: a line a run, what was not given, and how many doubts there are."""

from __future__ import annotations

from typing import Any

import polars as pl

from joulebook import schema, sharing
from joulebook_pipelines import console, shown
from joulebook_pipelines.store import Store

MOST_SAID = 8
"""Findings of what was not given that are printed; all of them are in the store."""

_SAID = ["code", "subject", "message"]
_BESIDE = frozenset({"board", "package", "dram"})
"""Cards, processors and memory lie beside each other: none of them is the widest."""


def answered(store: Store) -> bool:
    """Tell whether there is anything to give: some run, of which logs tell or which power readings are."""
    return store.runs().height > 0


def lines(store: Store) -> list[str]:
    """Return a line a run: energy at the widest scope with its interval; then what was not given, and what doubts there are."""
    order = {s: i for i, s in enumerate(schema.SCOPES)}
    energies = store.results().filter(
        (pl.col("metric") == "energy_j") & (pl.col("device") == "") & (pl.col("phase") == "")
    )
    energies = energies.sort(pl.col("scope").replace_strict(order, default=-1))
    shares = store.table("shares")
    made = []
    for run_id in store.runs()["run_id"]:
        rows = energies.filter(pl.col("run_id") == run_id).rows(named=True)
        if not rows:
            continue
        widest = [r for r in rows if r["scope"] in _BESIDE] if rows[-1]["scope"] in _BESIDE else rows[-1:]
        told = [_shared(r, shares) or f"{_energy(r)} at the {r['scope']}{_doubt(r)}" for r in widest]
        made.append(f"{run_id}: {', '.join(told)}")
    findings = store.table("findings")
    said = findings.filter((pl.col("severity") == "error") & (pl.col("stage") != "recognise"))
    said = said.unique(_SAID, keep="first", maintain_order=True)
    made += [f"✖ {code} — {subject}: {text}" for code, subject, text in said.head(MOST_SAID)[_SAID].iter_rows()]
    counts = dict(findings.group_by("severity").len().iter_rows())
    doubts = ", ".join(console.counted(counts.get(s, 0), s) for s in ("error", "warning", "note"))
    return [*made, f"findings: {doubts}"]


def _energy(row: dict[str, Any]) -> str:
    unit = shown.unit_for("energy_j", [row["value"]])
    return shown.number(row["value"], row["lo"], row["hi"], unit=unit).full


def _shared(row: dict[str, Any], shares: pl.DataFrame) -> str | None:
    """Return what a run took of a machine that others used as well."""
    part = sharing.part_of(shares, row["run_id"], scope=row["scope"])
    if part is None:
        return None
    mine = _energy({"value": part.energy.value, "lo": part.energy.lo, "hi": part.energy.hi})
    others = ", ".join(part.others) or "no other run"
    return f"{mine} of the {row['scope']} that it shared with {others}, which took {_energy(row)} in that time{_doubt(row)}"


def _doubt(row: dict[str, Any]) -> str:
    if row["value"] is None:
        return f" — {row['reason']}"
    covered = row["coverage_ratio"]
    return f" ({100 * covered:.1f} % of the time covered)" if isinstance(covered, float) and covered < 0.9995 else ""
