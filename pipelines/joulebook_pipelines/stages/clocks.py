"""How the clocks of the study relate: each is aligned to the reference from the power signals, or assumed, or refused."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import polars as pl

from joulebook import align, schema, ticks
from joulebook.align import Alignment
from joulebook.findings import Finding, Severity
from joulebook_pipelines.adapters import ADAPTERS
from joulebook_pipelines.stages.context import Context, Stage, side_by_side
from joulebook_pipelines.stages.numbers import Numbers

ASKED = ("ipmitool", "freeipmi", "redfish")
"""Readers of controllers that are asked for their last value: it may be as old as the time since they were asked last."""

METERS = frozenset(a.name for a in ADAPTERS if a.family == "meter")

_WIDE, _NARROW = ("node", "rack", "facility"), ("board", "package", "components")

LEAST_APART_S = 0.5
"""Half a second is what logs of one clock differ by through windows and polling [s]."""


def _work(context: Context) -> Numbers:
    numbers = Numbers()
    store = context.store
    channels = store.channels_by_clock()
    clocks = sorted(set(store.table("sources")["clock"]))
    if not clocks:
        return numbers
    reference = context.study.general.reference_clock or _widest(channels, clocks)
    others = [c for c in clocks if c != reference]
    base = _signal(context, channels, reference)
    jobs = (partial(_estimate, _signal(context, channels, clock), base, clock) for clock in others)
    rows = [_reference_row(reference)]
    pairs = list(zip(others, side_by_side(jobs), strict=True))
    for clock, found in pairs:
        rows.append(_row(found, clock, reference, numbers))
    store.replace("alignments", pl.DataFrame(rows, schema=schema.table("alignments").schema))
    trails = [_trails(channels, reference, pairs)]
    for clock in clocks:
        told, trail = _shared(context, channels, clock)
        numbers.find("", told)
        trails.append(trail)
    store.replace("trails", pl.concat(trails).unique(["source_id", "device"], keep="first", maintain_order=True))
    return numbers


def _shared(context: Context, channels: pl.DataFrame, clock: str) -> tuple[list[Finding], pl.DataFrame]:
    """Say where a meter that is said to share a clock with the machine's own logs does not keep its time, else by how much it trails."""
    mine = channels.filter(pl.col("clock") == clock)
    wide = mine.filter(pl.col("scope").is_in(_WIDE) & pl.col("adapter").is_in(METERS))
    narrow = mine.filter(pl.col("scope").is_in(_NARROW) & ~pl.col("source_id").is_in(wide["source_id"].implode()))
    none = schema.table("trails").empty()
    if wide.is_empty() or narrow.is_empty():
        return [], none
    meter, own = _signal(context, wide, clock), _signal(context, narrow, clock)
    found = _estimate(meter, own, "meter")
    steps = [
        *wide["period_s"].drop_nulls(),
        *narrow["period_s"].drop_nulls(),
        *wide["window_s"].drop_nulls(),
        LEAST_APART_S,
    ]
    apart_s = 2 * max(steps)
    if found is None or found.status != "aligned":
        return [], none
    offset_s, lo_s, hi_s = found.offset_s, found.offset_lo, found.offset_hi
    if offset_s is None or lo_s is None or hi_s is None:
        return [], none
    if lo_s <= apart_s and hi_s >= -apart_s:
        return [], _late(wide, clock, found)
    paths = context.store.table("sources").filter(pl.col("source_id").is_in(wide["source_id"].implode()))["path"]
    side = "ahead of" if offset_s > 0 else "behind"
    return [Finding(
        "clocks-differ", Severity.WARNING, clock,
        f"{', '.join(paths.head(3))} is said to be on the clock {clock}, but its power moves {abs(offset_s):.4g} s {side} that of the "
        f"machine's own logs ({lo_s:.4g} to {hi_s:.4g} s): it has a clock of its own. Nothing is moved; give its "
        '[[source]] clock = "meter" and it is aligned.', {"clock": clock, "offset_s": offset_s},
    )], none  # fmt: skip


def _late(wide: pl.DataFrame, clock: str, found: Alignment) -> pl.DataFrame:
    """Return by how much a meter on the machine's own clock trails: there, what looks like an offset is delay as well."""
    mine = _instrument(wide, clock)
    if mine is None or found.reading_trail_s is None or found.offset_s is None:
        return schema.table("trails").empty()
    trail_s = max(found.offset_s + found.reading_trail_s, 0.0)
    return mine.select("source_id", "device", trail_s=pl.lit(trail_s), against_clock=pl.lit(clock))


def _widest(channels: pl.DataFrame, clocks: list[str]) -> str:
    """Return the clock with the widest scope; of equals the one with the most readings."""
    order = {s: i for i, s in enumerate(schema.SCOPES)}
    ranked = channels.group_by("clock").agg(
        width=pl.col("scope").replace_strict(order, default=-1, return_dtype=pl.Int64).max(), n=pl.col("n").sum()
    ).sort("width", "n", "clock", descending=[True, True, False])  # fmt: skip
    return str(ranked["clock"][0]) if ranked.height else clocks[0]


def _reference_row(reference: str) -> dict[str, object]:
    return {
        "clock": reference, "reference_clock": reference, "offset_s": 0.0, "offset_lo": 0.0, "offset_hi": 0.0, "drift_ppm": 0.0,
        "drift_lo": 0.0, "drift_hi": 0.0, "residual_s": 0.0, "status": "reference", "reason": "the others are aligned to it",
    }  # fmt: skip


def _estimate(mine: _Log | None, other: _Log | None, clock: str) -> Alignment | None:
    """Return how a clock relates to the reference, ``None`` where one of them has no power."""
    if mine is None or other is None:
        return None
    return align.estimate(
        mine.power, other.power, reading_window_s=mine.window_s, reference_window_s=other.window_s,
        reading_age_s=mine.age_s, reference_age_s=other.age_s, subject=clock,
    )  # fmt: skip


def _row(found: Alignment | None, clock: str, reference: str, numbers: Numbers) -> dict[str, object]:
    if found is None:
        return _assumed(clock, reference, "no power readings on both clocks", numbers)
    # The refusal is told once, with what it does to the numbers.
    numbers.find("", (f for f in found.findings if f.code != "clock-not-aligned"))
    if found.status == "refused":
        numbers.find("", [Finding(
            "clock-not-aligned", Severity.WARNING, clock,
            f"The clock could not be aligned to {reference}: {found.reason}. Its readings are used as they are stamped; numbers that "
            "combine both clocks may be off by the unknown offset, and the intervals of energies hold whatever stretch of the log as long "
            "as the run.", {"clock": clock},
        )])  # fmt: skip
    return {
        "clock": clock, "reference_clock": reference, "anchor_utc": found.anchor_utc, "offset_s": found.offset_s,
        "offset_lo": found.offset_lo, "offset_hi": found.offset_hi, "drift_ppm": found.drift_ppm, "drift_lo": found.drift_lo,
        "drift_hi": found.drift_hi, "residual_s": found.residual_s, "status": str(found.status), "reason": found.reason,
    }  # fmt: skip


def _assumed(clock: str, reference: str, why: str, numbers: Numbers) -> dict[str, object]:
    numbers.find("", [Finding(
        "clock-assumed", Severity.WARNING, clock,
        f"The clock is taken to agree with {reference} ({why}): it was not tested.", {"clock": clock},
    )])  # fmt: skip
    row = _reference_row(reference)
    return row | {
        "clock": clock, "status": "assumed", "reason": why, "offset_lo": None, "offset_hi": None, "drift_lo": None, "drift_hi": None,
        "residual_s": None,
    }  # fmt: skip


def _trails(channels: pl.DataFrame, reference: str, pairs: Iterable[tuple[str, Alignment | None]]) -> pl.DataFrame:
    """Return by how much readings trail what they speak of; those of the reference as its best known pair tells."""
    told: dict[str, tuple[float, str]] = {}
    for clock, found in sorted(pairs, key=lambda pair: _width_s(pair[1])):
        if found is None or found.status != "aligned":
            continue
        if found.reading_trail_s is not None:
            told[clock] = found.reading_trail_s, reference
        if found.reference_trail_s is not None:
            told.setdefault(reference, (found.reference_trail_s, clock))
    rows = [
        mine.select("source_id", "device", trail_s=pl.lit(trail_s), against_clock=pl.lit(against))
        for clock, (trail_s, against) in told.items() if (mine := _instrument(channels, clock)) is not None
    ]  # fmt: skip
    return pl.concat([pl.DataFrame(schema=schema.table("trails").schema), *rows])


def _width_s(found: Alignment | None) -> float:
    if found is None or found.offset_lo is None or found.offset_hi is None:
        return math.inf
    return found.offset_hi - found.offset_lo


class _Log(NamedTuple):
    """Total power on a clock, its averaging window and the largest age of its values [s]."""

    power: pl.DataFrame
    window_s: float | None
    age_s: float


def _instrument(channels: pl.DataFrame, clock: str) -> pl.DataFrame | None:
    """Return the channels of a clock at its widest scope that are of its densest instrument."""
    order = {s: i for i, s in enumerate(schema.SUMMED_SCOPES)}
    mine = channels.filter(
        (pl.col("clock") == clock) & pl.col("scope").is_in(list(order)) & (pl.col("kind") != "energy")
    )
    if mine.is_empty():
        return None
    scope = max(set(mine["scope"]), key=lambda s: order[s])
    mine = mine.filter(pl.col("scope") == scope)
    adapter = mine.sort("n", descending=True)["adapter"][0]
    mine = mine.filter(pl.col("adapter") == adapter)
    whole = mine.filter(pl.col("device") == scope)
    return whole if whole.height else mine


def _signal(context: Context, channels: pl.DataFrame, clock: str) -> _Log | None:
    """Return the total power of a clock, as measured."""
    mine = _instrument(channels, clock)
    if mine is None:
        return None
    power = context.store.measured_power(mine.select("source_id", "device"))
    if power["device"].n_unique() > 1:
        power = ticks.total(power)
    window_s = mine["window_s"].drop_nulls()
    period_s = mine["period_s"].drop_nulls()
    return _Log(
        power,
        float(window_s[0]) if len(window_s) == mine.height and len(window_s) else None,
        float(period_s.median()) if mine["adapter"][0] in ASKED and len(period_s) else 0.0,  # pyrefly: ignore[bad-argument-type]
    )


STAGE = Stage("clocks", "aligning clocks", _work)
