"""Can I trust the data? A tile per check: colour, word, and what it opens."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from markupsafe import Markup

from joulebook_pipelines import metrics, shown
from joulebook_pipelines.report.blocks import Block, Column, Inline, Section, Table, Text, Tile, Tiles
from joulebook_pipelines.report.footnotes import Group
from joulebook_pipelines.report.sections import findings
from joulebook_pipelines.report.source import Source

WORDS = {"good": "good", "doubt": "look", "bad": "bad", "none": "not checked"}
EXPECTED = ("not-applicable",)
"""Rules by which a format itself says that it has nothing to tell in a cell: counted, not alarming."""
DOUBTS = 3
"""Kinds of finding that a tile names before it is opened."""
RULES_SHOWN = 20
"""Kinds of reject that are listed."""


@dataclass(frozen=True)
class State:
    """What the tables say about one check."""

    state: str
    summary: str
    blocks: tuple[Block, ...] = ()


def checks(source: Source) -> list[Tile]:
    """Return a tile a check, with the findings that belong to it."""
    tiles = [_tile(source, name, topic, look) for name, topic, look in CHECKS]
    other = source.footnotes.on("other")
    if other:
        tiles.append(
            _made(
                source,
                "analysis",
                "other",
                State("good", f"{_plural(len(other), 'remark')} on comparisons and methods"),
                other,
            )
        )
    return tiles


def build(tiles: Sequence[Tile]) -> Section:
    """Return the strip of checks."""
    lead = Text("Each tile opens what was found: where, what it does to which number, and what to do.")
    return Section("trust", "Can I trust the data?", [lead, Tiles(tiles)])


def brief(tiles: Sequence[Tile]) -> Inline:
    """Return in words which checks are bad and which call for a look, each a link to its tile."""
    parts = []
    for state, css, words in (("bad", "wrong", "✖ bad"), ("doubt", "look", "▲ look at")):
        links = [
            Markup('<a href="#{}">{}</a>{}').format(
                t.anchor, t.name, f" ({t.summary.rpartition('; ')[2]})" if state == "bad" else ""
            )
            for t in tiles
            if t.state == state
        ]
        if links:
            parts.append(Markup('<span class="{}">{}</span>: {}').format(css, words, Markup(", ").join(links)))
    good = sum(t.state == "good" for t in tiles)
    parts.append(Markup('<span class="ok">✓ good</span>: {} of {} checks').format(good, len(tiles)))
    return Markup("; ").join(parts) + Markup(".")


def _tile(source: Source, name: str, topic: str, look: Callable[[Source], State]) -> Tile:
    return _made(source, name, topic, look(source), source.footnotes.on(topic))


def _made(source: Source, name: str, topic: str, state: State, groups: list[Group]) -> Tile:
    severities = {g.severity for g in groups}
    worst = "bad" if "error" in severities else "doubt" if "warning" in severities else "good"
    order = ("none", "good", "doubt", "bad")
    final = max(state.state, worst if groups else "none", key=order.index)
    told = [f["message"] for g in groups for f in g.findings]
    more = [b for b in state.blocks if not (isinstance(b, Text) and any(str(b.body) in message for message in told))]
    shown_blocks = [*findings.blocks(source, groups), *more]
    raised = _doubts(groups) if final != state.state else []
    summary = "; ".join([state.summary, *raised])
    opened = shown_blocks or [Text("Nothing was found.")]
    return Tile(name, final, WORDS[final], summary, opened, f"check-{topic}")


def _doubts(groups: list[Group]) -> list[str]:
    """Return the names of what casts doubt: a tile that calls for a look says why."""
    names = [re.sub(r"-\d+s$", "", g.code).replace("-", " ") for g in groups if g.severity != "note"]
    return [", ".join(dict.fromkeys(names[:DOUBTS])) + (" …" if len(names) > DOUBTS else "")] if names else []


def _plural(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}".replace(",", shown.THIN)


def _sources(source: Source) -> State:
    rows = source.rows("sources")
    refused = sum(len(g.findings) for g in source.footnotes.groups if g.code == "source-refused")
    summary = f"{_plural(rows.height, 'file')} read" + (f", {refused} refused" if refused else "")
    return State("bad" if rows.is_empty() else "doubt" if refused else "good", summary)


def _rejects(source: Source) -> State:
    rows = source.store.rejects_by_rule()
    if source.rows("sources").is_empty():
        return State("none", "nothing was read")
    if rows.is_empty():
        return State("good", "every cell was read")
    kinds = (
        rows.group_by("path", "rule")
        .agg(pl.col("cells").sum(), pl.col("first_line").min(), pl.col("example").sort_by("first_line").first())
        .sort("cells", "path", "rule", descending=[True, False, False])
    )
    made = [
        [r["path"], r["rule"], str(r["cells"]), str(r["first_line"]), (r["example"] or "")[:60]]
        for r in kinds.head(RULES_SHOWN).iter_rows(named=True)
    ]
    columns = [Column(c) for c in ("file", "rule", "rejected", "first at line", "its text")]
    rest = kinds.height - RULES_SHOWN
    caption = "Rejected cells by rule." + (f" {rest} more kinds: joulebook rejects STUDY." if rest > 0 else "")
    table = Table(columns, made, caption, "rejects")
    every = int(rows["cells"].sum())
    bad = int(rows.filter(~pl.col("rule").is_in(EXPECTED))["cells"].sum())
    fillers = f"{_plural(every - bad, 'cell')} marked as not applicable by the format" if every > bad else ""
    if not bad:
        return State("good", f"every reading was read; {fillers}", (table,))
    return State("doubt", f"{_plural(bad, 'cell')} or lines set aside" + (f"; {fillers}" if fillers else ""), (table,))


def _gaps(source: Source) -> State:
    rows = source.rows("channels")
    if rows.is_empty():
        return State("none", "no readings")
    torn = rows.filter(pl.col("gaps") > 0)
    if torn.is_empty():
        return State("good", "no gap in any channel")
    paths = source.rows("sources").select("source_id", "path")
    made = [
        [r["path"] or "", r["device"], str(r["gaps"]), shown.number(r["coverage_ratio"], unit=metrics.Unit("%", 0.01))]
        for r in torn.join(paths, on="source_id", how="left").sort("coverage_ratio").head(40).iter_rows(named=True)
    ]
    table = Table(
        [Column("file"), Column("device"), Column("gaps"), Column("covered", "%")], made, "Channels with gaps.", "gaps"
    )
    return State("doubt", f"gaps in {torn.height} of {_plural(rows.height, 'channel')}", (table,))


_CLOCK_WORDS = {
    "reference": "reference", "aligned": "put right against it", "assumed": "taken as right", "refused": "not comparable",
}  # fmt: skip


def _clocks(source: Source) -> State:
    rows = source.rows("alignments")
    if rows.is_empty():
        return State("none", "one clock, or none compared")
    found = dict(rows.group_by("status").len().iter_rows())
    summary = ", ".join(f"{found[s]} {word}" for s, word in _CLOCK_WORDS.items() if s in found)
    return State("bad" if "refused" in found else "doubt" if "assumed" in found else "good", summary)


def _calibration(source: Source) -> State:
    rows = source.rows("calibrations")
    if rows.is_empty():
        return State("none", "no reading was held against a reference")
    found = dict(rows.group_by("status").len().iter_rows())
    summary = ", ".join(f"{n} {s}" for s, n in sorted(found.items()))
    return State("good" if set(found) == {"calibrated"} else "doubt", summary)


def _metric(source: Source, name: str, good: str, missing: str) -> State:
    rows = source.rows("results").filter(
        (pl.col("metric") == name) & (pl.col("device") == "") & (pl.col("phase") == "")
    )
    known = rows.filter(pl.col("value").is_not_null())
    if known.is_empty():
        reasons = rows["reason"].drop_nulls().unique().sort().to_list()
        return State("none" if rows.is_empty() else "doubt", missing, tuple(Text(r) for r in reasons[:5] if r))
    partly = rows.filter(pl.col("value").is_null(), pl.col("run_id").is_in(known["run_id"].to_list()))
    refused = partly["run_id"].n_unique()
    runs = known["run_id"].n_unique()
    summary = f"{good} in {runs} of {_plural(max(len(source.runs), runs), 'run')}"
    partly_known = ", but not at every boundary" if refused == runs else f", in {refused} of them not at every boundary"
    summary += partly_known if refused else ""
    why = rows.filter(pl.col("value").is_null()).group_by("scope", "reason", maintain_order=True).len()
    told = tuple(
        Text(f"At the {scope}, in {_plural(n, 'run')}: {reason or 'no value'}.") for scope, reason, n in why.iter_rows()
    )
    return State("doubt" if refused or runs < len(source.runs) else "good", summary, told)


def _idle(source: Source) -> State:
    return _metric(source, "idle_power_w", "idle level known", "no idle level")


def _steady(source: Source) -> State:
    return _metric(source, "stable_power_w", "steady state found", "no steady state")


def _sampling(source: Source) -> State:
    rows = source.rows("channels").drop_nulls("period_s")
    if rows.is_empty():
        return State("none", "period unknown")
    low, high = (float(f"{end:.3g}") for end in np.quantile(rows["period_s"].to_numpy(), (0.0, 1.0)))
    return State("good", f"every {low:g} s" if low == high else f"every {low:g} to {high:g} s")


CHECKS: tuple[tuple[str, str, Callable[[Source], State]], ...] = (
    ("sources read", "sources", _sources),
    ("rejects", "rejects", _rejects),
    ("gaps", "gaps", _gaps),
    ("clocks", "clocks", _clocks),
    ("calibration", "calibration", _calibration),
    ("idle baseline", "idle", _idle),
    ("steady state", "steady", _steady),
    ("sampling", "sampling", _sampling),
)
