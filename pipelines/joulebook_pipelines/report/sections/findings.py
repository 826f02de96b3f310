"""Groups of findings as they are shown: what, where, which number, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from joulebook_pipelines.report.blocks import Block, Items, Text
from joulebook_pipelines.report.footnotes import EXAMPLES, SUBJECTS, Group, evidence
from joulebook_pipelines.report.source import Source

SIGNS = {"error": "✖", "warning": "▲", "note": "ℹ"}
_UNITS = {"s": "s", "w": "W", "j": "J", "c": "°C", "ppm": "ppm", "hz": "Hz"}
"""Units that names end in."""
_PROOFS = 5
"""Values of evidence that are shown; the store has all."""


def blocks(source: Source, groups: Sequence[Group]) -> list[Block]:
    """Return the groups as blocks with their anchors: one entry a code, with the list of what it is about."""
    paths = dict(source.rows("sources").select("source_id", "path").iter_rows())
    made: list[Block] = []
    for group in groups:
        head = Markup('<span id="{}" class="finding {}"><b>{}</b> {} {} <code>{}</code>{}</span>').format(
            group.anchor, group.severity, group.number, SIGNS.get(group.severity, ""), group.severity, group.code,
            f" × {len(group.findings)}" if len(group.findings) > 1 else "",
        )  # fmt: skip
        made.append(Text(head, kind="finding-head"))
        made.append(Items([_one(f, paths) for f in group.findings[:EXAMPLES]]))
        others = group.findings[EXAMPLES:]
        if others:
            made.append(Text(_subjects(group.findings[0], others), kind="more"))
    return made


def _subjects(told: dict[str, Any], others: Sequence[dict[str, Any]]) -> Markup:
    """Return what the other findings of a group are about."""
    names = list(dict.fromkeys(n for f in others if (n := _about(f)) != _about(told)))
    more = len(names) - SUBJECTS
    listed = ", ".join(names[:SUBJECTS]) + (f" and {more} more" if more > 0 else "")
    again = sum(_about(f) == _about(told) for f in others)
    parts = [p for p in (f"{again} more of it" if again else "", f"the same for {listed}" if listed else "") if p]
    command = Markup("<code>joulebook findings STUDY</code>")
    return Markup("… {}. Each in full: {}.").format("; ".join(parts), command)


def _about(finding: dict[str, Any]) -> str:
    """Return what a finding is about, with its run where the subject does not name it."""
    subject, run = finding["subject"] or "", finding["run_id"] or ""
    return subject if not run or run in subject else f"{run}: {subject}" if subject else run


def _one(finding: dict[str, Any], paths: dict[int, str]) -> Markup:
    proof = evidence(finding)
    where = [paths.get(finding["source_id"], "")] if finding["source_id"] is not None else []
    lines = next((proof[k] for k in ("lines", "line", "first_line") if k in proof), None)
    if lines is not None:
        where.append(f"line {_value(lines)}")
    touched = ", ".join(str(proof[k]) for k in ("scope", "metric") if proof.get(k))
    rest = [_named(k, v) for k, v in proof.items() if k not in {"lines", "line", "first_line", "scope", "metric"}]
    about = _about(finding)
    # a message that names a place in a file begins with that file
    said = finding["message"].removeprefix(about).removeprefix(": ")
    text = Markup("<b>{}</b>{}{}").format(about, "" if said.startswith(":") else ": ", said)
    tail = " · ".join(p for p in (" ".join(where), touched, ", ".join(rest[:_PROOFS])) if p)
    return text + (Markup(' <span class="proof">{}</span>').format(tail) if tail else Markup(""))


def _named(key: str, value: Any) -> str:
    """Return a value of evidence with its unit behind it, which the name of the column carries."""
    name, _, end = key.rpartition("_")
    if end == "ratio" and name and isinstance(value, float):
        return f"{name.replace('_', ' ')} {_value(100 * value)} %"
    if end in _UNITS and name and isinstance(value, int | float):
        return f"{name.replace('_', ' ')} {_value(value)} {_UNITS[end]}"
    return f"{key.replace('_', ' ')} {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    if isinstance(value, list):
        return ", ".join(map(_value, value[:_PROOFS])) + (" …" if len(value) > _PROOFS else "")
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
