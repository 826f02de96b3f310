"""What a run of joulebook says at its end: a line a run, what was not given, and how many doubts there are."""

from __future__ import annotations

from typing import Any

import polars as pl

from joulebook import boundaries, sharing_part
from joulebook.wording import counted
from joulebook_pipelines import metrics, shown
from joulebook_pipelines.store import Store

MOST_SAID = 8
"""Findings of what was not given that are printed; all of them are in the store."""

_SAID = ["code", "subject", "message"]


def answered(store: Store) -> bool:
    """Tell whether there is anything to give: some run, of which logs tell or which power readings are."""
    return store.runs().height > 0


def lines(store: Store) -> list[str]:
    """Return a line a run: energy at the widest scope with its interval; then what was not given, and what doubts there are."""
    energies = store.results().filter(
        (pl.col("metric") == "energy_j") & (pl.col("device") == "") & (pl.col("phase") == "")
    )
    shares = store.table("shares")
    made = []
    for run_id in store.runs()["run_id"]:
        rows = {r["scope"]: r for r in energies.filter(pl.col("run_id") == run_id).rows(named=True)}
        told = [_shared(r, shares) or f"{_energy(r)} at the {r['scope']}{_doubt(r)}" for r in _widest(rows)]
        made += [f"{run_id}: {', '.join(told)}"] if told else []
    findings = store.table("findings")
    said = findings.filter((pl.col("severity") == "error") & (pl.col("stage") != "recognise"))
    said = said.unique(_SAID, keep="first", maintain_order=True)
    made += [f"✖ {code} — {subject}: {text}" for code, subject, text in said.head(MOST_SAID)[_SAID].iter_rows()]
    counts = dict(findings.group_by("severity").len().iter_rows())
    doubts = ", ".join(counted(counts.get(s, 0), s) for s in ("error", "warning", "note"))
    return [*made, f"findings: {doubts}"]


def _widest(rows: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the widest known scope, or of those beside each other, and of what was refused above them."""
    known = boundaries.widest([s for s, r in rows.items() if r["value"] is not None])
    wanted = boundaries.widest(rows)
    return [rows[s] for s in (*known, *(w for w in wanted if w not in known))]


def _energy(row: dict[str, Any]) -> str:
    unit = metrics.unit_for("energy_j", [row["value"]])
    return shown.number(row["value"], row["lo"], row["hi"], unit=unit).full


def _shared(row: dict[str, Any], shares: pl.DataFrame) -> str | None:
    """Return what a run took of a machine that others used as well."""
    part = sharing_part.part_of(shares, row["run_id"], scope=row["scope"])
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
