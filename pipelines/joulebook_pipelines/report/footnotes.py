"""Findings, grouped and numbered, so that a thousand of one kind are one footnote with a count."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from joulebook.boundaries import SCOPES

_AT = re.compile(r"\bat (\w+)")
"""How a subject names its boundary, as in "train-1 at node"."""
SEVERITIES = ("error", "warning", "note")
EXAMPLES = 1
"""Findings of a group that are told in full; of the rest the subjects are listed."""
SUBJECTS = 24
"""Subjects of a group that are listed; the rest is counted."""
MARKS = 4
"""Marks a number carries at most; more are noise."""

TOPICS = (
    (
        "other",
        (
            "campaign-",
            "sweet-spot-",
            "order-average",
            "critical-batch",
            "mfu-",
            "efficiency-",
            "curve-",
            "marginal-energy-rises",
            "drivers-",
        ),
    ),
    (
        "sampling",
        ("sampl", "alias", "quanti", "coarse", "stuck", "flat-sensor", "spikes", "on-change"),
    ),
    ("clocks", ("clock", "align", "drift", "zone", "local-time", "no-such-time", "time-goes-back", "relative-time")),
    ("calibration", ("calib", "residual", "parts-off", "scope", "total-is-not", "facility-from", "fans-", "supplies-")),
    ("idle", ("idle", "marginal-")),
    ("steady", ("steady", "warm", "stable", "segment", "variation", "throttl", "stall", "several-levels")),
    (
        "gaps",
        (
            "gap",
            "coverage",
            "missing",
            "device-lost",
            "device-without",
            "short-tick",
            "starts-late",
            "ends-early",
            "no-readings",
        ),
    ),
    (
        "rejects",
        (
            "reject",
            "physical",
            "possible",
            "implausible",
            "counter",
            "cell",
            "duplicate",
            "unit",
            "zero-",
            "negative",
            "sign-",
        ),
    ),
    ("sources", ("source", "file", "format", "adapter", "empty", "column", "header", "tracker", "nul-bytes")),
)
"""Words in a finding's code that tell which check it belongs to, first match wins."""
_STAGES = {
    "recognise": "sources", "ingest": "sources", "clocks": "clocks", "calibration": "calibration", "steady": "steady",
    "idle": "idle",
}  # fmt: skip


@dataclass(frozen=True)
class Group:
    """Findings of one code and severity."""

    number: int
    code: str
    severity: str
    topic: str
    findings: tuple[dict[str, Any], ...]

    @property
    def anchor(self) -> str:
        """Anchor on the page."""
        return f"finding-{self.number}"


@dataclass(frozen=True)
class Footnotes:
    """All findings of a study, numbered by group; errors first."""

    groups: tuple[Group, ...]
    devices: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, findings: pl.DataFrame, devices: Mapping[str, frozenset[str]] | None = None) -> Footnotes:
        """Group the rows of table ``findings``; ``devices`` tells at which scopes each device is read."""
        kinds: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in findings.iter_rows(named=True):
            kinds.setdefault((row["severity"], row["code"]), []).append(row)
        rank = {s: i for i, s in enumerate(SEVERITIES)}
        order = sorted(kinds, key=lambda k: (rank.get(k[0], len(rank)), k[1]))
        return cls(
            tuple(
                Group(i, key[1], key[0], topic(key[1], kinds[key][0]["stage"] or ""), tuple(kinds[key]))
                for i, key in enumerate(order, start=1)
            ),
            devices or {},
        )

    def on(self, name: str) -> list[Group]:
        """Return the groups of one topic."""
        return [g for g in self.groups if g.topic == name]

    def marks(self, row: dict[str, Any]) -> list[Group]:
        """Return the groups that cast doubt on a row of ``results``, worst first."""
        doubted = [g for g in self.groups if g.severity != "note" and any(self._touches(f, row) for f in g.findings)]
        return doubted[:MARKS]

    def _touches(self, finding: dict[str, Any], row: dict[str, Any]) -> bool:
        if not finding["run_id"] or finding["run_id"] != row["run_id"]:
            return False
        proof = evidence(finding)
        told, covered = proof.get("coverage_ratio"), row.get("coverage_ratio")
        if told is not None and covered is not None and not math.isclose(told, covered, abs_tol=1e-9):
            return False  # it is about another boundary, whose coverage it tells
        scopes = self._scopes(finding["subject"] or "", proof)
        # what names no metric is said once, at the energy: marks on every number of a run are not read
        return (not scopes or row["scope"] in scopes) and proof.get("metric", "energy_j") == row["metric"]

    def _scopes(self, subject: str, proof: Mapping[str, Any]) -> frozenset[str]:
        """Return the boundaries that a finding is about: what it says itself, else those of the device it names."""
        said = proof.get("scope") or next((m for m in (subject, *_AT.findall(subject)) if m in SCOPES), None)
        return frozenset({said}) if said else self.devices.get(subject, frozenset())


def topic(code: str, stage: str) -> str:
    """Return the check that a finding belongs to, ``other`` where none fits.

    Examples
    --------
    >>> topic("clock-refused", "align"), topic("gap-not-bridged", "energy"), topic("odd", "campaign")
    ('clocks', 'gaps', 'other')
    """
    found = next((name for name, words in TOPICS if any(w in code for w in words)), None)
    return found or _STAGES.get(stage, "other")


def evidence(finding: dict[str, Any]) -> dict[str, Any]:
    """Return a finding's evidence, empty where it is not a JSON object."""
    try:
        found = json.loads(finding["evidence"] or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
