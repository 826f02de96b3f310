"""Where counters of energy start again from zero, as study.toml or the logs themselves say."""

from __future__ import annotations

import json

import polars as pl

from joulebook_pipelines.config_study import Study
from joulebook_pipelines.store import Store

Ranges = dict[tuple[int, str | None], float]
"""Where counters wrap [J], by number of the source and name of the device, ``None`` for all of a source."""


def told(store: Store, study: Study) -> Ranges:
    """Return where counters wrap [J]: by file as study.toml says, by file and device as the file itself does."""
    options = {s.name: s.options.range_j for s in study.sources_resolved() if s.options.range_j}
    sources = store.table("sources").select("source_id", "path")
    said: Ranges = {(i, None): options[path] for i, path in sources.iter_rows() if path in options}
    findings = store.table("findings").filter(pl.col("code") == "counter-range").select("source_id", "evidence")
    return said | {(i, d): r for i, text in findings.iter_rows() for d, r in json.loads(text).items()}


def of(ranges: Ranges, power: pl.DataFrame) -> dict[str, float]:
    """Return where the counters of each device wrap [J]: as study.toml says, else as their file does."""
    if power["energy_counter_j"].null_count() == power.height:
        return {}
    found = {}
    for device, source_id in power.select("device", "source_id").unique().iter_rows():
        names = (None, device, device.split("/", 1)[-1])
        range_j = next((ranges[source_id, n] for n in names if ranges.get((source_id, n))), None)
        if range_j:
            found[device] = range_j
    return found
