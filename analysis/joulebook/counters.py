"""Typed differences of cumulative energy counters: first, difference, wrap, reset, glitch, unknown; never negative."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from joulebook import bridges
from joulebook.counter_walk import CEILING_W, KINDS, LIKELY_TOP_W, Limits, walk
from joulebook.findings import Finding, Severity
from joulebook.schema import UTC
from joulebook.stretches import Floats
from joulebook.uncertainty import grain_w
from joulebook.wording import counted as counted_of

REASONS = {
    "first": "no reading before it",
    "difference": "",
    "wrap": "the counter wrapped; corrected by its range",
    "reset": "the counter started again; what it lost is not known",
    "glitch": "a jump that no power explains; rejected",
    "unknown": "a drop or a step that a wrap, several wraps or a reset may explain",
    "duplicate": "no news: same stamp as the reading before it, or its last digit trembles",
}

USUAL_RANGES_J = (4294.967296, 65532.610987, 65712.999613, 262143.328850)
"""Where counters of processors wrap: 32 bits of µJ, and what kernels say of 32 bits of a chip's own unit [J]."""

NEAR_RANGE, MANY_RESETS = 0.95, 3
"""A counter that came so near to one of these and started again so often wraps there, most likely."""

PerDevice: TypeAlias = float | Mapping[str, float] | None

_NOTHING = (np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


@dataclass(frozen=True)
class Deltas:
    """Energy between readings of counters.

    Parameters
    ----------
    frame
        ``device, ts_utc, span_s, energy_j, kind, reason``: the energy of the span that ends at ``ts_utc``; null where it is not
        known.
    devices
        ``device``, ``quantum_j`` (step of the counter [J]), ``safe_interval_s`` (the longest step that hides no wrap:
        range / highest power, of a large socket where that is not known; null where the range is not).
    findings
        Wraps, resets, glitches and steps that are too long, one a device and kind.
    """

    frame: pl.DataFrame
    devices: pl.DataFrame
    findings: tuple[Finding, ...]


def deltas(counters: pl.DataFrame, *, range_j: PerDevice = None, max_power_w: PerDevice = None) -> Deltas:
    """Return the energy between the readings of cumulative counters, each with its kind.

    A step down is a wrap only where the range is known and the wrapped energy is one that the device can have used in
    that time; the correction is refused where the step is so long that half the range could have gone by. A single
    reading that no power explains, followed by one that goes on from before, is a glitch and is left out.

    Parameters
    ----------
    counters
        ``device``, ``ts_utc``, ``energy_counter_j`` [J].
    range_j
        Value at which the counter starts again from 0 [J], for all devices or by device.
    max_power_w
        Highest power the device can draw [W], for all devices or by device. Where it is not given, a step in which a
        large socket would have gone once more through the range is not known.

    Returns
    -------
    Deltas
        One row a reading of a counter, in order of device and time.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> rows = [("cpu:0", t + timedelta(seconds=i), c) for i, c in enumerate([900.0, 980.0, 60.0, 140.0])]
    >>> frame = pl.DataFrame(rows, schema=["device", "ts_utc", "energy_counter_j"], orient="row")
    >>> deltas(frame, range_j=1000.0, max_power_w=200.0).frame["energy_j"].to_list()
    [None, 80.0, 80.0, 80.0]
    """
    missing = [c for c in ("device", "ts_utc", "energy_counter_j") if c not in counters.columns]
    if missing:
        raise ValueError(f"counters: no column {', '.join(missing)}; it has {', '.join(counters.columns)}")
    rows = counters.select("device", pl.col("ts_utc").cast(UTC), pl.col("energy_counter_j").cast(pl.Float64))
    rows = (
        rows.filter(pl.col("energy_counter_j").is_finite()).drop_nulls().sort("device", "ts_utc", maintain_order=True)
    )
    walks: list[tuple[NDArray[np.int64], Floats, Floats]] = []
    facts: list[tuple[str, float, float | None]] = []
    for own in rows.partition_by("device", maintain_order=True):  # in the order of rows, which are sorted by device
        device = str(own["device"][0])
        range_, top = _for(range_j, device), _for(max_power_w, device)
        steps, quantum = _one(own, range_, top)
        walks.append(steps)
        facts.append((device, quantum, None if range_ is None else range_ / (top or LIKELY_TOP_W)))
    kind, energy, length = (np.concatenate(c) for c in zip(*walks, strict=True)) if walks else _NOTHING
    frame = rows.select(
        "device", "ts_utc", pl.Series("span_s", length).fill_nan(None), pl.Series("energy_j", energy).fill_nan(None),
        pl.Series("kind", np.array(KINDS)[kind], dtype=pl.String),
    ).with_columns(pl.col("kind").replace_strict(REASONS, return_dtype=pl.String).alias("reason"))  # fmt: skip
    schema = {"device": pl.String, "quantum_j": pl.Float64, "safe_interval_s": pl.Float64}
    devices = pl.DataFrame(facts, schema=schema, orient="row")
    tops = dict(rows.group_by("device").agg(pl.col("energy_counter_j").max()).iter_rows())
    unranged = {device: top for device, top in tops.items() if _for(range_j, device) is None}
    return Deltas(frame, devices, _findings(frame, devices, unranged))


def _for(value: PerDevice, device: str) -> float | None:
    return value.get(device) if isinstance(value, Mapping) else value


def _one(
    own: pl.DataFrame, range_j: float | None, max_power_w: float | None
) -> tuple[tuple[NDArray[np.int64], Floats, Floats], float]:
    us = own["ts_utc"].to_physical().to_numpy()
    stamp, counter = (us - us[0]) / 1e6, own["energy_counter_j"].to_numpy(writable=True)
    quantum = grain_w(counter)
    limits = Limits(
        range_j=np.nan if range_j is None else range_j, top_w=float(max_power_w or CEILING_W),
        known_top=max_power_w is not None, quantum_j=quantum, gap_s=bridges.limit_s(bridges.median_step_s(stamp)),
    )  # fmt: skip
    return walk(stamp, counter, limits), quantum


def unsigned_differences(
    differences: pl.DataFrame, *, unit_j: float, range_counts: int | None = None, max_power_w: float = CEILING_W
) -> Deltas:
    """Return the energy of differences that a tool stored as unsigned 64-bit numbers: a wrap shows as nearly 2^64.

    Parameters
    ----------
    differences
        ``device``, ``ts_utc`` and ``count``: whole numbers (``UInt64``), as a double would lose their last digits.
    unit_j
        Energy of one count [J].
    range_counts
        Counts at which the counter starts again; with it such a difference is corrected, without it rejected.
    max_power_w
        Highest power the device can draw [W].

    Returns
    -------
    Deltas
        One row a difference; the first of a device spans its usual step.

    Raises
    ------
    ValueError
        ``count`` is missing or not whole.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> rows = [("cpu:0", t, 2000), ("cpu:0", t + timedelta(seconds=3), 2**64 - 9000)]
    >>> frame = pl.DataFrame(rows, schema={"device": pl.String, "ts_utc": UTC, "count": pl.UInt64}, orient="row")
    >>> unsigned_differences(frame, unit_j=0.5, range_counts=10000).frame["energy_j"].to_list()
    [1000.0, 500.0]
    """
    if not differences.schema.get("count", pl.Null()).is_integer():
        raise ValueError(f"differences: count is {differences.schema.get('count')}; whole numbers (UInt64) are needed")
    rows = differences.sort("device", "ts_utc").with_columns(pl.col("count").cast(pl.UInt64))
    step = pl.col("ts_utc").diff().over("device").dt.total_microseconds() / 1e6
    back = pl.lit(2**64 - 1, dtype=pl.UInt64) - pl.col("count") + 1
    wrapped = pl.lit(range_counts, dtype=pl.UInt64) - back
    below = pl.col("count") >= 2**63
    counts = pl.when(~below).then("count").when(back <= pl.lit(range_counts, dtype=pl.UInt64)).then(wrapped)
    frame = rows.select(
        "device", pl.col("ts_utc").cast(UTC), step.fill_null(step.median().over("device")).alias("span_s"),
        (counts.cast(pl.Float64) * unit_j).alias("energy_j"), below.alias("below"),
    )  # fmt: skip
    sound = pl.col("energy_j") <= max_power_w * pl.col("span_s").fill_null(float("inf"))
    energy = pl.when(sound).then("energy_j")
    kind = pl.when(energy.is_null()).then(pl.lit("glitch")).when("below").then(pl.lit("wrap"))
    frame = frame.with_columns(energy, kind.otherwise(pl.lit("difference")).alias("kind")).drop("below")
    frame = frame.with_columns(pl.col("kind").replace_strict(REASONS, return_dtype=pl.String).alias("reason"))
    safe = None if range_counts is None else range_counts * unit_j / max_power_w
    devices = frame.select(pl.col("device").unique().sort()).with_columns(
        pl.lit(unit_j).alias("quantum_j"), pl.lit(safe, dtype=pl.Float64).alias("safe_interval_s")
    )
    return Deltas(frame, devices, _findings(frame, devices))


def _range_said(top_j: float | None, resets: int) -> str:
    """Return what to write where a counter of unknown range starts again so often that it may only have come to its end."""
    if top_j is None or resets < MANY_RESETS:
        return ""
    known = next((r for r in USUAL_RANGES_J if NEAR_RANGE * r < top_j < r), None)
    value = "the height at which it does" if known is None else f"{known:.6f}"
    return f" If it starts again at the same height each time ({top_j:.6g} J is the highest read), add range_j = {value} to its [[source]]."


def _findings(
    frame: pl.DataFrame, devices: pl.DataFrame, unranged: Mapping[str, float] | None = None
) -> tuple[Finding, ...]:
    notable = frame.filter(pl.col("kind").is_in(["wrap", "reset", "glitch", "unknown"]))
    counted = notable.group_by("device", "kind").agg(n=pl.len(), at=pl.col("ts_utc").min()).sort("device", "kind")
    found = []
    for device, kind, n, at in counted.iter_rows():
        severity = Severity.NOTE if kind == "wrap" else Severity.WARNING
        places = "once" if n == 1 else f"{n} times"
        message = f"{places}, first at {at:%Y-%m-%dT%H:%M:%S}Z: {REASONS[kind]}."
        message += _range_said((unranged or {}).get(device), n) if kind == "reset" else ""
        found.append(Finding(f"counter-{kind}", severity, device, message, {"count": n}))
    long = frame.join(devices, on="device").filter(pl.col("span_s") >= pl.col("safe_interval_s"))
    for device, n, safe in (
        long.group_by("device").agg(pl.len(), pl.col("safe_interval_s").first()).sort("device").iter_rows()
    ):
        message = (
            f"{counted_of(n, 'step')} {'is' if n == 1 else 'are'} longer than {safe:.4g} s, in which the counter may wrap unseen: "
            "log it more often than that."
        )
        found.append(
            Finding("counter-read-too-seldom", Severity.WARNING, device, message, {"count": n, "safe_interval_s": safe})
        )
    return tuple(found)
