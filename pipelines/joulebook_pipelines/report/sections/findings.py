"""Groups of findings as they are shown: what, where, which number, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from joulebook_pipelines.report.blocks import Block, Items, Text
from joulebook_pipelines.report.footnotes import EXAMPLES, Group, evidence
from joulebook_pipelines.report.source import Source

SIGNS = {"error": "✖", "warning": "▲", "note": "ℹ"}
_PROOFS = 5
"""Values of evidence that are shown; the store has all."""


def blocks(source: Source, groups: Sequence[Group]) -> list[Block]:
    """Return the groups as blocks with their anchors."""
    paths = dict(source.rows("sources").select("source_id", "path").iter_rows())
    made: list[Block] = []
    for group in groups:
        head = Markup('<span id="{}" class="finding {}"><b>{}</b> {} {} <code>{}</code>{}</span>').format(
            group.anchor, group.severity, group.number, SIGNS.get(group.severity, ""), group.severity, group.code,
            f" × {len(group.findings)}" if len(group.findings) > 1 else "",
        )  # fmt: skip
        made.append(Text(head, kind="finding-head"))
        made.append(Items([_one(f, paths) for f in group.findings[:EXAMPLES]]))
        more = len(group.findings) - EXAMPLES
        if more > 0:
            command = Markup("<code>joulebook findings STUDY</code>")
            made.append(Text(Markup("… and {} more of this kind: {}").format(more, command), kind="more"))
    return made


def _one(finding: dict[str, Any], paths: dict[int, str]) -> Markup:
    proof = evidence(finding)
    where = [paths.get(finding["source_id"], "")] if finding["source_id"] is not None else []
    lines = next((proof[k] for k in ("lines", "line", "first_line") if k in proof), None)
    if lines is not None:
        where.append(f"line {_value(lines)}")
    touched = f"run {finding['run_id']}" if finding["run_id"] else ""
    touched += "".join(f", {proof[k]}" for k in ("scope", "metric") if proof.get(k))
    rest = [f"{k} {_value(v)}" for k, v in proof.items() if k not in {"lines", "line", "first_line", "scope", "metric"}]
    text = Markup("<b>{}</b>: {}").format(finding["subject"], finding["message"])
    tail = " · ".join(p for p in (" ".join(where), touched.strip(", "), ", ".join(rest[:_PROOFS])) if p)
    return text + (Markup(' <span class="proof">{}</span>').format(tail) if tail else Markup(""))


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, list):
        return ", ".join(map(_value, value[:_PROOFS])) + (" …" if len(value) > _PROOFS else "")
    text = str(value)
    return text if len(text) <= 80 else f"{text[:79]}…"
