"""What should I do? At most five lines, each with the energy at stake and the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from markupsafe import Markup

from joulebook import boundaries
from joulebook_pipelines import metrics, shown
from joulebook_pipelines.report.blocks import Inline, Items, Section, Text, copyable
from joulebook_pipelines.report.sections import context, sureness
from joulebook_pipelines.report.source import Source
from joulebook_pipelines.shown import Number

LINES = 5
"""Lines of advice: more are not read."""

_VERDICTS = (
    ("saves", "Keep {}: less"),
    ("costs", "Think again about {}: more"),
    ("refused", "Measure {} again, to know its"),
)
_WASTE = {
    "stall_energy_j": "Feed the accelerators: stalls",
    "gap_idle_energy_j": "Close the gaps between runs: the idle machine",
    "checkpoint_energy_j": "Look at the checkpoints: saving",
    "rework_energy_j": "Save more often or fail less: repeated work",
}
_SURER = {
    "alignment": "Log an edge that both clocks see (start and stop a load)",
    "calibration": "Calibrate over more load levels",
    "unknown time": "Find out why readings are missing",
    "edges": "Start the log before the run and stop it after",
    "noise": "Log longer or more often",
    "resolution": "Log with a finer resolution or a shorter period",
}


NOTHING = "Nothing in the data calls for a change."


def build(found: Sequence[Markup]) -> Section:
    """Return the lines of advice as a section."""
    block = Items(found, ordered=True) if found else Text(NOTHING)
    return Section("advice", "What should I do?", [block])


def brief(found: Sequence[Markup]) -> Inline:
    """Return the first line of advice, and how many more there are."""
    if not found:
        return NOTHING
    more = len(found) - 1
    link = Markup(' <a href="#advice">{} more</a>.').format(more) if more else Markup("")
    return found[0] + link


def lines(source: Source) -> list[Markup]:
    """Return what to do, the energy at stake first; data that hide a whole number come before everything."""
    mend = [
        Markup("Mend the data: {} (<a href='#{}'>{}</a>{}).").format(
            _sentence(g.findings[0]["message"]), g.anchor, g.code, f", {n} in all" if (n := len(g.findings)) > 1 else ""
        )
        for g in source.footnotes.groups
        if g.severity == "error"
    ]
    hidden = any((source.result(r, source.widest(r) or "", "energy_j") or {}).get("value") is None for r in source.runs)
    first = mend if hidden or not source.runs else []
    hour = context.better_hour(source)
    gains = [*_settings(source), *_changes(source), *_waste(source), *([hour] if hour else [])]
    last = [*_surer(source), *([] if first else mend)]
    kept = max(LINES - len(first) - min(len(last), 2), 0)
    return [*first, *gains[:kept], *last][:LINES]


def _sentence(message: str) -> str:
    """Return a finding's message as the middle of a sentence."""
    return message.rstrip(".")


def _waste(source: Source) -> list[Markup]:
    order = pl.col("scope").replace_strict({s: i for i, s in enumerate(("facility", "rack", "node"))}, default=9)
    rows = (
        source.rows("results")
        .filter(pl.col("metric").is_in(_WASTE), pl.col("device") == "", pl.col("phase") == "", pl.col("value") > 0)
        .sort(order)
        .unique(["run_id", "metric"], keep="first", maintain_order=True)
        .sort("value", descending=True)
        .unique("metric", keep="first", maintain_order=True)
    )
    unit = metrics.unit_for("energy_j", rows["value"].to_list())
    return [
        Markup("{} took {} at the {} in run {} (<a href='#table-waste'>waste</a>).").format(
            _WASTE[r["metric"]], copyable(shown.of_row(r, unit=unit)), r["scope"], r["run_id"]
        )
        for r in rows.iter_rows(named=True)
    ]


def _settings(source: Source) -> list[Markup]:
    # A limit on time that was asked for holds. What is least a token may cost most in the end: where the energy to the target is
    # known, it alone decides.
    asked = pl.col("objective").str.contains("_within_", literal=True) & pl.col("value").is_not_null()
    spots = source.rows("sweet_spots").filter(asked | ~asked.any().over("sweep"))
    whole = pl.col("objective").str.starts_with("energy_to_target_") & pl.col("value").is_not_null()
    spots = spots.filter(whole | ~whole.any().over("sweep"))
    found = spots.filter(pl.col("status").is_in(["found", "edge"]) & (whole | (pl.col("status") == "found")))
    found = found.sort("sweep", "objective")
    knobs = dict(source.rows("sweeps").select("sweep", "knob").drop_nulls().iter_rows())
    found = found.unique("sweep", keep="first", maintain_order=True)
    lines = []
    for r in found.iter_rows(named=True):
        at = copyable(shown.number(r["x"], r["x_lo"], r["x_hi"]))
        about = shown.number(r["value"], unit=metrics.unit_for(r["objective"], [r["value"]]))
        label, knob = metrics.of(r["objective"]).label, knobs.get(r["sweep"], "it").replace("_", " ")
        if r["status"] == "edge":
            side, text = (
                "below" if r["x_lo"] is None else "above",
                "Extend sweep {} {} {} {}: the {} is least there, {} {}.",
            )
            curves = Markup("(<a href='#sweeps'>curves</a>)")
            lines.append(Markup(text).format(r["sweep"], side, knob, f"{r['x']:g}", label, copyable(about), curves))
            continue
        lines.append(
            Markup("Sweep {}: set {} near {}: the {} is least there, {} (<a href='#sweeps'>curves</a>).").format(
                r["sweep"], knob, at, label, copyable(about)
            )
        )
    return lines


def _changes(source: Source) -> list[Markup]:
    """Return which changes of the campaigns to keep, which to look at again, and which to measure again."""
    rows = source.rows("changes")
    made = []
    for name in rows["campaign"].unique(maintain_order=True):
        of = rows.filter(pl.col("campaign") == name)
        scope = boundaries.leading(of["scope"].unique().to_list())
        of = of.filter(pl.col("scope") == scope).sort("position")
        for verdict, words in _VERDICTS:
            told = [
                Markup("{} ({})").format(r["change"], copyable(_effect(r)))
                if r["effect_ratio"] is not None
                else r["change"]
                for r in of.filter(pl.col("verdict") == verdict).iter_rows(named=True)
            ]
            if told:
                text = Markup(words + " {} at the {} (<a href='#changes'>campaign {}</a>).")
                about = metrics.of(of["metric"][0] or "").label
                made.append(text.format(Markup(", ").join(told), about, scope, name))
    return made


def _effect(row: dict[str, Any]) -> Number:
    return shown.ratio(row["effect_ratio"], row["effect_lo"], row["effect_hi"])


def _surer(source: Source) -> list[Markup]:
    """Return how the number that is least known could be known better."""
    worst = None
    for run in source.runs:
        scope = source.widest(run) or ""
        part = sureness.largest(source, run, scope)
        if part is not None and (worst is None or (part["hi"] or 0.0) > (worst[1]["hi"] or 0.0)):
            worst = (run, part)
    if worst is None or not worst[1]["hi"]:
        return []
    run, part = worst
    energy = (source.result(run, part["scope"], "energy_j") or {}).get("value")
    if energy and part["hi"] < sureness.NEGLIGIBLE * energy:
        return []
    do = next((text for key, text in _SURER.items() if key in part["part"]), f"Make {part['part']} smaller")
    stake = shown.width(part["hi"], unit=metrics.unit_for("energy_j", [part["hi"]]))
    return [
        Markup("{}: up to {} of run {} is open because of {} (<a href='#sure'>how sure</a>).").format(
            do, copyable(stake), run, part["part"]
        )
    ]
