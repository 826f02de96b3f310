"""All sources of one run side by side: counter against integral, parts against the whole, and what is left over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from joulebook.boundaries import BESIDE, SCOPES, SUMMED_SCOPES
from joulebook.findings import Finding, Severity
from joulebook.wording import energy as energy_of

AGREE_SHARE = 0.05
"""Two energies of one scope agree within this share (InferenceX's limit for counter against integral)."""

ERROR_RATIO = 3.0
"""Above this ratio two energies of one scope differ by a unit or boundary: an error, not a calibration."""

PLAUSIBLE_REST = (0.02, 0.60)
"""Share of a node outside of boards, packages and memory: fans, losses, disks; 20-30 % is usual for dense nodes."""

ROUNDING = 1e-3
"""Share of the whole by which parts may exceed it through the digits that a tracker writes."""

WHOLES = ("components", "dc", "node", "rack", "facility")
"""Scopes that hold others. Boards, packages and memory lie side by side: none is the whole of another."""

Row: TypeAlias = dict[str, Any]

_FRAME = {
    "scope": pl.String,
    "source": pl.String,
    "energy_j": pl.Float64,
    "lo": pl.Float64,
    "hi": pl.Float64,
    "share_ratio": pl.Float64,
    "share_lo": pl.Float64,
    "share_hi": pl.Float64,
    "role": pl.String,
}


@dataclass(frozen=True)
class Reconciliation:
    """Sources of one run against the widest scope.

    Parameters
    ----------
    frame
        One row per source with its share of the widest scope (``role`` = ``whole``, ``part``, ``inside``,
        ``duplicate``; ``beside``, without a share, where no scope holds the others), and one row ``residual`` (whole
        minus parts) with its interval.
    findings
        What is implausible.
    """

    frame: pl.DataFrame
    findings: tuple[Finding, ...]


def run(energies: pl.DataFrame, *, subject: str = "run") -> Reconciliation:
    """Compare the energies that the sources of one run give.

    Parameters
    ----------
    energies
        ``scope``, ``source`` (a name such as "meter counter"), ``energy_j`` [J] and optionally the interval ``lo``,
        ``hi`` [J]. Several sources of one scope are compared with each other; the first one stands for the scope.
    subject
        Name of the run, for findings.

    Returns
    -------
    Reconciliation

    Raises
    ------
    ValueError
        A column is missing or a scope unknown.

    Examples
    --------
    >>> both = pl.DataFrame({"scope": ["node", "node"], "source": ["power", "counter"], "energy_j": [7.2e6, 0.72e6]})
    >>> [f.code for f in run(both).findings]
    ['sources-differ-by-factor']
    """
    rows = _clean(energies)
    if rows.is_empty():
        return Reconciliation(pl.DataFrame(schema=_FRAME), ())
    first = rows.unique("scope", keep="first", maintain_order=True)
    whole = max(first.iter_rows(named=True), key=lambda r: SCOPES.index(r["scope"]))
    holds = whole["scope"] in WHOLES
    parts = _parts(first, whole["scope"]) if holds else ()
    duplicates, findings = _same_scope(rows, first, subject)
    lines = [_row(whole, whole, "whole" if holds or first.height == 1 else "beside")]
    for r in first.iter_rows(named=True):
        if r["scope"] != whole["scope"]:
            lines.append(_row(r, whole, "part" if r["scope"] in parts else "inside" if holds else "beside"))
    lines += [_row(r, whole, "duplicate" if holds or first.height == 1 else "beside") for r in duplicates]
    if parts:
        inside = [r for r in first.iter_rows(named=True) if r["scope"] in parts]
        rest = _residual(whole, inside)
        lines.append(_row(rest, whole, "residual"))
        findings += _parts_findings(whole, inside, rest, subject)
    return Reconciliation(pl.DataFrame(lines, schema=_FRAME), tuple(findings))


def _clean(energies: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with a value, checked, with interval columns."""
    missing = [c for c in ("scope", "source", "energy_j") if c not in energies.columns]
    if missing:
        raise ValueError(f"energies: no column {', '.join(missing)}; they have {', '.join(energies.columns)}")
    unknown = sorted(set(energies["scope"].to_list()) - set(SUMMED_SCOPES))
    if unknown:
        raise ValueError(f"energies: scope {', '.join(map(repr, unknown))}; allowed are {', '.join(SUMMED_SCOPES)}")
    full = energies.with_columns(*(pl.col("energy_j").alias(c) for c in ("lo", "hi") if c not in energies.columns))
    full = full.with_columns(pl.col("lo").fill_null(pl.col("energy_j")), pl.col("hi").fill_null(pl.col("energy_j")))
    return full.drop_nulls("energy_j").select("scope", "source", pl.col("energy_j", "lo", "hi").cast(pl.Float64))


def _parts(first: pl.DataFrame, whole: str) -> tuple[str, ...]:
    """Return the scopes that add up within the whole, none of them inside another."""
    there = set(first["scope"].to_list()) - {whole}
    fine = tuple(s for s in BESIDE if s in there)
    # measured parts say more than a tool's total of the same parts
    return fine or tuple(s for s in ("components",) if s in there)


def _same_scope(rows: pl.DataFrame, first: pl.DataFrame, subject: str) -> tuple[list[Row], list[Finding]]:
    """Return further sources of scopes that have one, and findings where they disagree with it."""
    lead = {r["scope"]: r for r in first.iter_rows(named=True)}
    others: list[Row] = []
    out: list[Finding] = []
    for r in rows.iter_rows(named=True):
        one = lead[r["scope"]]
        if r["source"] == one["source"] and r["energy_j"] == one["energy_j"]:
            continue
        others.append(r)
        ratio = one["energy_j"] / r["energy_j"] if r["energy_j"] else np.inf
        evidence = {"ratio": ratio, one["source"]: one["energy_j"], r["source"]: r["energy_j"]}
        text = (
            f"{r['scope']}: {one['source']} says {energy_of(one['energy_j'])}, {r['source']} says "
            f"{energy_of(r['energy_j'], beside=one['energy_j'])} "
            f"(ratio {ratio:.3g})."
        )
        if not 1 / ERROR_RATIO <= ratio <= ERROR_RATIO:
            out.append(Finding(
                "sources-differ-by-factor", Severity.ERROR, subject,
                f"{text} A wrong unit, scale or boundary: find out which is right; neither is averaged or corrected.",
                evidence,
            ))  # fmt: skip
        elif abs(ratio - 1) > AGREE_SHARE and not (one["lo"] <= r["hi"] and r["lo"] <= one["hi"]):
            out.append(Finding(
                "sources-disagree", Severity.WARNING, subject,
                f"{text} More than {AGREE_SHARE:.0%} apart and outside of both intervals: compare what they cover and when. Logs of two "
                "machines are told apart by their host in [[source]].", evidence,
            ))  # fmt: skip
    return others, out


def _row(r: Row, whole: Row, role: str) -> Row:
    """Return a row of the frame: energy and share of the whole, with the ends of its interval."""
    energy, lo, hi = (float(r[k]) for k in ("energy_j", "lo", "hi"))
    all_j = float(whole["energy_j"])
    share: tuple[float, float, float] | tuple[None, None, None] = (None, None, None)
    if role == "beside":
        pass
    elif role == "whole" or all_j == 0:
        share = (1.0, 1.0, 1.0) if all_j else (None, None, None)
    else:
        of_whole = max(whole["hi"] - all_j, all_j - whole["lo"]) / all_j
        value = energy / all_j
        down, up = (
            np.hypot((energy - lo) / all_j, value * of_whole),
            np.hypot((hi - energy) / all_j, value * of_whole),
        )
        share = (value, value - float(down), value + float(up))
    names = dict(zip(("share_ratio", "share_lo", "share_hi"), share, strict=True))
    return {"scope": r["scope"], "source": r["source"], "energy_j": energy, "lo": lo, "hi": hi, "role": role, **names}


def _residual(whole: Row, parts: list[Row]) -> Row:
    """Return the whole less its parts; the errors are independent and add in squares."""
    rest = float(whole["energy_j"]) - sum(float(p["energy_j"]) for p in parts)
    below = [whole["energy_j"] - whole["lo"], *(p["hi"] - p["energy_j"] for p in parts)]
    above = [whole["hi"] - whole["energy_j"], *(p["energy_j"] - p["lo"] for p in parts)]
    names = " + ".join(str(p["scope"]) for p in parts)
    return {
        "scope": whole["scope"], "source": f"{whole['scope']} − ({names})", "energy_j": rest,
        "lo": rest - float(np.linalg.norm(below)), "hi": rest + float(np.linalg.norm(above)),
    }  # fmt: skip


def _parts_findings(whole: Row, parts: list[Row], rest: Row, subject: str) -> list[Finding]:
    """Return what is implausible about parts and whole."""
    total, left = float(whole["energy_j"]), float(rest["energy_j"])
    names = " + ".join(str(p["scope"]) for p in parts)
    evidence = {"parts_j": total - left, "whole_j": total, "residual_j": left}
    if left < -ROUNDING * abs(total):
        # the parts' claim is impossible whatever its interval; how sure that is, the interval says
        sure = rest["hi"] < 0
        return [Finding(
            "parts-exceed-whole", Severity.ERROR if sure else Severity.WARNING, subject,
            f"{names} claim {energy_of(total - left, beside=total)}, more than the {whole['scope']} that holds them ({energy_of(total)}). "
            "A device counted twice, a sensor that wakes what it reads, or one that sees part of the time: do not use "
            "its baseline.",
            evidence,
        )]  # fmt: skip
    share = left / total if total else 0.0
    low, high = PLAUSIBLE_REST
    if whole["scope"] == "node" and any(p["scope"] == "board" for p in parts) and not low <= share <= high:
        why = "a double count or a wrong unit" if share < low else "a missing device or a wrong unit"
        return [Finding(
            "residual-implausible", Severity.WARNING, subject,
            f"{share:.0%} of the node is outside of {names}; {low:.0%} to {high:.0%} is plausible. Look for {why}.",
            {**evidence, "share_ratio": share},
        )]  # fmt: skip
    return []
