"""What a run means outside: work per joule, facility energy, carbon and cost."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from joulebook import boundaries, carbon, efficiency, energy, estimates, power_shares, schema
from joulebook.findings import Estimate, Finding, Severity
from joulebook_pipelines import curves
from joulebook_pipelines.stages.context import Context, Run, Stage
from joulebook_pipelines.stages.numbers import Numbers

SHIFTS_H = 12
"""Other starts are tried this many hours before and after the real one."""


def _work(context: Context) -> Numbers:
    numbers = Numbers()
    context.store.replace("what_if", schema.table("what_if").empty())
    for run in context.runs():
        for scope in context.known_scopes(run.run_id):
            _efficiency(context, run, scope, numbers)
        _facility(context, run, numbers)
    numbers.findings = _once(numbers.findings)
    return numbers


def _from_part(subject: str, measured: str) -> Finding:
    return Finding(
        "facility-from-part", Severity.WARNING, subject,
        f"Measured is {measured}, not the node: the facility energy, carbon and cost leave out the rest of the machine. Add a "
        "node meter.", {"measured": measured, "scope": "facility", "metric": "facility_energy_j"},
    )  # fmt: skip


def _once(found: list[tuple[str, Finding]]) -> list[tuple[str, Finding]]:
    """Tell what holds for many runs of a sweep once a scope, of the study, instead of once a run."""
    runs: dict[str, list[str]] = {}
    for run_id, finding in found:
        if finding.code == "facility-from-part":
            runs.setdefault(str(finding.evidence["measured"]), []).append(run_id)
    kept = [(r, f) for r, f in found if f.code != "facility-from-part" or len(runs[str(f.evidence["measured"])]) == 1]
    return kept + [("", _from_part(f"{len(ids)} runs", measured)) for measured, ids in runs.items() if len(ids) > 1]


def _efficiency(context: Context, run: Run, scope: str, numbers: Numbers) -> None:
    spent = context.number(run.run_id, scope, "energy_j")
    power = context.number(run.run_id, scope, "mean_power_w")
    coverage = context.coverage(run.run_id, scope, "energy_j")
    if spent is not None and spent.value and run.tokens:
        numbers.add(
            run.run_id, scope, "tokens_per_j", efficiency.tokens_per_j(run.tokens, spent), coverage_ratio=coverage
        )
        numbers.add(
            run.run_id,
            scope,
            "energy_per_token_j",
            efficiency.energy_per_token_j(run.tokens, spent),
            coverage_ratio=coverage,
        )
    if run.tokens:
        rate = efficiency.tokens_per_s(run.tokens, run.duration_s)
        numbers.add(run.run_id, scope, "tokens_per_s", rate)
        if scope == "board":
            _mfu(context, run, rate, numbers)
    tdp_w = context.study.devices.tdp_w
    if scope == "board" and tdp_w and power is not None and power.value is not None:
        cards = context.cards(run.run_id)
        share = power_shares.tdp_ratio(power, tdp_w=tdp_w * cards)
        ratio = replace(share.ratio, method=f"mean power / ({cards} × {tdp_w:g} W)")
        numbers.add(run.run_id, scope, "tdp_ratio", ratio)
        numbers.find(run.run_id, (replace(f, subject=f"{run.run_id} at {scope}") for f in share.findings))


def _mfu(context: Context, run: Run, rate: Estimate, numbers: Numbers) -> None:
    model = context.study.model
    if model.parameters is None or model.peak_flops_per_device is None:
        return
    peak = model.peak_flops_per_device * context.cards(run.run_id)
    # Work that is done again is the hardware's, not the model's.
    for name in ("MFU", "HFU") if model.recomputation == "full" else ("MFU",):
        flops = efficiency.flops_per_token(
            model.parameters, layers=model.layers or 0, hidden=model.hidden or 0,
            sequence_length=model.sequence_length or 0, recomputation=name == "HFU",
        )  # fmt: skip
        share = efficiency.mfu_ratio(rate, token_flops=flops, peak_flops=peak, name=name)
        numbers.add(run.run_id, "board", f"{name.lower()}_ratio", share.ratio)
        numbers.find(run.run_id, share.findings)


def _facility(context: Context, run: Run, numbers: Numbers) -> None:
    """Facility energy from the widest measured scope, once a run; what is narrower than a node is not stretched.

    Cards, processors and memory lie beside each other: where nothing wider is known, it comes from their sum.
    """
    widest = boundaries.widest(context.known_scopes(run.run_id))
    parts = [e for s in widest if (e := context.number(run.run_id, s, "energy_j")) is not None]
    if not parts:
        return
    spent = parts[0] if len(parts) == 1 else estimates.combine(lambda *each: sum(each), *parts, unit="J")
    if spent.value is None:
        return
    coverage = min((c for s in widest if (c := context.coverage(run.run_id, s, "energy_j")) is not None), default=None)
    measured, pue = " + ".join(widest), context.study.site.pue
    if widest == ("facility",):
        facility = spent
    elif pue is None:
        return
    else:
        made = carbon.facility_energy(spent, pue)
        facility = Estimate(
            made.value, made.lo, made.hi, "J", spent.n, None, f"{measured} energy × PUE {pue:g}", made.reason
        )
        if boundaries.WIDTH[widest[0]] < boundaries.WIDTH["node"]:
            numbers.find(run.run_id, [_from_part(run.run_id, measured)])
    numbers.add(run.run_id, "facility", "facility_energy_j", facility, coverage_ratio=coverage)
    site = context.study.site
    for metric, factor, unit, source in (
        ("carbon_kg", site.carbon_kg_per_kwh, "kg", site.carbon_source),
        ("cost", site.price_per_kwh, site.currency or "", site.price_source),
    ):
        if factor is not None:
            _priced(context, run, widest, facility, metric, factor, unit, source, numbers)


def _priced(
    context: Context, run: Run, scopes: tuple[str, ...], facility: Estimate, metric: str, factor: float | str, unit: str,
    source: str | None, numbers: Numbers,
) -> None:  # fmt: skip
    about = f"facility energy × {{}} {unit}/kWh ({source or 'source not stated'})"
    if isinstance(factor, float):
        made = carbon.per_kwh(facility, factor, unit=unit)
        method = about.format(f"{factor:g}")
        numbers.add(
            run.run_id, "facility", metric,
            Estimate(made.value, made.lo, made.hi, unit, facility.n, None, f"{method}; {facility.method}", made.reason),
        )  # fmt: skip
        return
    curve = curves.read(context.study.beside(factor), context.study.general.timezone)
    bins = _hourly(context, run, scopes, facility)
    priced = carbon.by_curve(bins, curve, unit=unit)
    numbers.find(run.run_id, priced.findings)
    _other_hours(context, run, metric, bins, curve)
    made = priced.total
    method = f"{about.format('hourly')} from {factor}; {facility.method}"
    estimate = Estimate(made.value, made.lo, made.hi, unit, facility.n, None, method, made.reason)
    numbers.add(run.run_id, "facility", metric, estimate)


def _other_hours(context: Context, run: Run, metric: str, bins: pl.DataFrame, curve: pl.DataFrame) -> None:
    """Keep what the same run would have come to at other hours of the same curve."""
    moved = carbon.shifted(bins, curve, hours=[float(h) for h in range(-SHIFTS_H, SHIFTS_H + 1)])
    rows = moved.select(
        "value", "lo", "hi", shift_h=pl.col("shift_hours"), run_id=pl.lit(run.run_id), metric=pl.lit(metric)
    )
    context.store.insert("what_if", schema.conform(rows, "what_if"))


def _hourly(context: Context, run: Run, scopes: tuple[str, ...], facility: Estimate) -> pl.DataFrame:
    """Return the run's facility energy by hour: where scopes lie beside each other, of hours that all of them cover."""
    bins = pl.concat(
        energy.by_bin(context.power(run, s, margin=True), start_utc=run.start_utc, end_utc=run.end_utc, every="1h")
        for s in scopes
    )
    whole = (pl.col(c).sum() * pl.when(pl.col(c).null_count() == 0).then(1.0) for c in ("energy_j", "lo", "hi"))
    bins = bins.group_by("start_utc", "end_utc", maintain_order=True).agg(
        *whole, pl.col("covered_s", "coverage_ratio").min()
    )
    numbers = [context.number(run.run_id, s, "energy_j") for s in scopes]
    measured = sum(n.value for n in numbers if n is not None and n.value is not None)
    scale = 1.0 if not measured or facility.value is None else facility.value / measured
    return bins.with_columns(pl.col("energy_j", "lo", "hi") * scale)


STAGE = Stage("site", "efficiency, carbon and cost", _work)
