"""Which energies of a meter's table count on, which are of an interval each, and how long the intervals are."""

from __future__ import annotations

import re
from dataclasses import replace

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook_pipelines.logs import cells, local_time, meter_energy
from joulebook_pipelines.logs.contract import Log, LogRefusedError
from joulebook_pipelines.logs.meter_columns import Layout
from joulebook_pipelines.logs.meter_form import END_OF_DAY, Understood, naive_stamps, stamp_text
from joulebook_pipelines.logs.table import Field

DAY_S = 86_400.0

_BY_UNIT = {"energy_j": "interval", "energy_counter_j": "counter"}
"""What the name says under which study.toml gives the unit of an energy."""


def decide(log: Log, found: Understood, sample: pl.DataFrame) -> Understood:
    """Return the form with each energy as a counter or per span, and with the length of spans.

    Parameters
    ----------
    log
        The file.
    found
        What is known so far.
    sample
        Rows from the beginning, as text.

    Raises
    ------
    LogRefusedError
        Neither the titles nor the numbers tell; the message says what to add to study.toml.
    """
    layout, options = found.layout, log.options
    if layout.device is not None:
        sample = sample.filter(pl.col(layout.device) == pl.col(layout.device).mode().first())
    naive = naive_stamps(stamp_text(sample, layout), found, options.date)
    first = str(sample[layout.time[0]][0])
    zoned = replace(log, options=replace(options, timezone=options.timezone or "UTC"))
    clock = local_time.localiser(zoned, found.form, 1, first)
    # In the hour that comes twice, local times in order would mix two passes: no register counts on there.
    utc = clock.to_utc(naive)
    groups = tuple(
        replace(g, fields=tuple(f for f in (_decided(log, found, f, sample, utc) for f in g.fields) if f is not None))
        for g in layout.groups
    )
    left = [f.header for f in layout.fields if not any(f.column == k.column for g in groups for k in g.fields)]
    found = replace(found, layout=replace(layout, groups=groups))
    if left:
        found = replace(found, findings=(*found.findings, _untold(log, layout, found, left)))
    return _with_spans(log, found, utc, naive, stamp_text(sample, layout))


def _decided(log: Log, found: Understood, field: Field, sample: pl.DataFrame, utc: pl.Series) -> Field | None:
    """Return the field, an energy as what it is; ``None`` where nothing tells and a power beside it can be read."""
    if field.quantity not in {"energy_j", "energy_counter_j"}:
        return field
    layout = found.layout
    kind = layout.counting(field.column) or ("interval" if layout.label or found.months else "")
    power = next((f for f in layout.fields if f.quantity == "power_w"), None)
    if not log.options.columns:
        energy_j = _numbers(sample, field, found)
        kind = meter_energy.counting(
            energy_j, utc, kind, beside_power=power is not None, bare_title=meter_energy.is_bare(field.header)
        )
        said = kind == layout.counting(field.column) and not bool((energy_j.diff() < 0).any())
        if power is not None and (not kind or (said and kind == "interval")):
            # A title alone does not make intervals of energies that no such power can draw in one.
            told = meter_energy.beside_power(energy_j, _numbers(sample, power, found), utc)
            kind = told if told == "counter" else kind or told
    # Whoever gives the unit of a register, where nothing else decides, says that it is one.
    kind = kind or next((k for q, k in _BY_UNIT.items() if q in log.options.units), "")
    if not kind and power is not None:
        return None
    if not kind:
        raise LogRefusedError(_which_energy(log, layout, field.header, found))
    return replace(field, quantity="energy_counter_j" if kind == "counter" else "energy_j")


def _numbers(sample: pl.DataFrame, field: Field, found: Understood) -> pl.Series:
    """Return the numbers of a column in its quantity's own unit."""
    number = cells.number(pl.col(field.column), field.quantity, field.unit, decimal=found.decimal)
    return sample.select(number).to_series()


def _untold(log: Log, layout: Layout, found: Understood, left: list[str]) -> Finding:
    """Say which energies were not read."""
    return Finding(
        "energies-not-read", Severity.WARNING, log.name,
        f"{_which_energy(log, layout, left[0], found).removeprefix(f'{log.name}: ')}. It was not read; the power beside it was.",
        {"columns": left},
    )  # fmt: skip


def _which_energy(log: Log, layout: Layout, header: str, found: Understood) -> str:
    time = found.dialect.titles[found.dialect.names.index(layout.time[0])]
    return (
        f"{log.name}: whether {header!r} counts on or gives each interval its own energy cannot be told; add to this "
        f"[[source]] "
        f'columns = {{ time = "{time}", energy_counter_j = "{header}" }} for a register, or energy_j in its place '
        f"for intervals"
    )


def _of_intervals(found: Understood) -> bool:
    """Return whether the title of the time speaks of an interval: a power beside it is the mean of that."""
    titles = [found.dialect.titles[found.dialect.names.index(c)] for c in found.layout.time]
    return found.layout.label is not None and any(re.search(r"(?i)interval|period", t) for t in titles)


def _without_energies(log: Log, found: Understood) -> Understood:
    """Return the form without the energies of intervals whose length nobody knows; the power beside them is read."""
    left = [f.header for f in found.layout.fields if f.quantity == "energy_j"]
    groups = tuple(
        replace(g, fields=tuple(f for f in g.fields if f.quantity != "energy_j")) for g in found.layout.groups
    )
    layout = replace(found.layout, groups=tuple(g for g in groups if g.fields))
    finding = Finding(
        "energies-not-read", Severity.WARNING, log.name,
        f"{', '.join(map(repr, left))} falls too often for a register (two counters in turn?), and the stamps keep no common step, so as "
        "energies of intervals they have no known length: they were not read, the power beside them was.", {"columns": left},
    )  # fmt: skip
    return replace(found, layout=layout, findings=(*found.findings, finding))


def _with_spans(log: Log, found: Understood, utc: pl.Series, naive: pl.Series, text: pl.Series) -> Understood:
    """Find the length of spans where the table gives values of spans."""
    layout, options = found.layout, log.options
    if found.months:
        return found
    per_span = any(f.quantity == "energy_j" for f in layout.fields)
    if layout.end is not None:
        return replace(found, label=None)
    means = not per_span and _of_intervals(found) and any(f.quantity == "power_w" for f in layout.fields)
    label = options.interval_label or (layout.label if per_span or means else None)
    if label is None and per_span and text.str.contains(END_OF_DAY).any():
        label = "end"  # no interval begins with the end of a day
    if not per_span and not (options.kind == "mean" and label) and not (means and options.kind is None):
        return found
    # Days of a zone are 23 or 25 hours long twice a year; their dates are a day apart all the same.
    local_s = None if found.form.aware else meter_energy.interval_s(naive.dt.replace_time_zone("UTC"))
    days = local_s == DAY_S and options.distance_s is None and label != "end"
    span_s = options.distance_s or (DAY_S if days else meter_energy.interval_s(utc))
    if span_s is None and per_span and not options.columns and any(f.quantity == "power_w" for f in layout.fields):
        return _with_spans(log, _without_energies(log, found), utc, naive, text)
    if span_s is None:
        raise LogRefusedError(
            f"{log.name}: the stamps keep no common step, so how long each interval is cannot be told; add period_s, "
            f"or name both columns: "
            'columns = { start = "…", end = "…", energy_j = "…" }'
        )
    more: tuple[Finding, ...] = ()
    if label is None:
        label = "start"
        more = (Finding(
            "interval-label-assumed", Severity.WARNING, log.name,
            f"Nothing says whether a stamp is the start or the end of its {span_s:g} s; it was taken for the start. "
            f"The sum does not depend "
            'on it, its place in time does: add interval_label = "start" or "end" to this '
            '[[source]].', {"span_s": span_s},
        ),)  # fmt: skip
    return replace(found, label=label, span_s=span_s, local_days=days, findings=(*found.findings, *more))
