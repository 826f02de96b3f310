"""What should I do? At most five lines, each with the energy at stake and the evidence."""

from __future__ import annotations

import polars as pl
from markupsafe import Markup

from joulebook_pipelines.report import shown
from joulebook_pipelines.report.blocks import Items, Section, Text, copyable
from joulebook_pipelines.report.sections import sureness
from joulebook_pipelines.report.source import Source

LINES = 5
"""Lines of advice: more are not read."""

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


def build(source: Source) -> Section:
    """Return the lines in order of the energy at stake."""
    lines = [*_settings(source), *_waste(source), *_surer(source)]
    worst = [g for g in source.footnotes.groups if g.severity == "error"]
    for group in worst[: max(LINES - len(lines), 0)]:
        link = Markup('<a href="#{}">{}</a>').format(group.anchor, group.code)
        lines.append(Markup("Mend the data: {} ({}).").format(group.findings[0]["message"], link))
    if not lines:
        return Section("advice", "What should I do?", [Text("Nothing in the data calls for a change.")])
    return Section("advice", "What should I do?", [Items(lines[:LINES], ordered=True)])


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
    unit = shown.unit_for("energy_j", rows["value"].to_list())
    return [
        Markup("{} took {} at the {} in run {} (<a href='#table-waste'>waste</a>).").format(
            _WASTE[r["metric"]], copyable(shown.of_row(r, unit=unit)), r["scope"], r["run_id"]
        )
        for r in rows.iter_rows(named=True)
    ]


def _settings(source: Source) -> list[Markup]:
    first = pl.col("objective") != "energy_to_target_j"
    found = source.rows("sweet_spots").filter(pl.col("status") == "found").sort("sweep", first, "objective")
    knobs = dict(source.rows("sweeps").select("sweep", "knob").drop_nulls().iter_rows())
    found = found.unique("sweep", keep="first", maintain_order=True)
    lines = []
    for r in found.iter_rows(named=True):
        at = copyable(shown.number(r["x"], r["x_lo"], r["x_hi"]))
        about = shown.number(r["value"], unit=shown.unit_for(r["objective"], [r["value"]]))
        label, knob = shown.metric(r["objective"]).label, knobs.get(r["sweep"], "it").replace("_", " ")
        lines.append(
            Markup("Sweep {}: set {} near {}; {} is {} there (<a href='#sweeps'>curves</a>).").format(
                r["sweep"], knob, at, label, copyable(about)
            )
        )
    return lines


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
    do = next((text for key, text in _SURER.items() if key in part["part"]), f"Make {part['part']} smaller")
    stake = shown.width(part["hi"], unit=shown.unit_for("energy_j", [part["hi"]]))
    return [
        Markup("{}: {} leaves up to {} open in run {} (<a href='#sure'>how sure</a>).").format(
            do, part["part"], copyable(stake), run
        )
    ]
