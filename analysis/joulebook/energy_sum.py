"""The energies of several devices as one result: rows, parts of the uncertainty, gaps, their sum and findings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import polars as pl

from joulebook import energy_findings
from joulebook.energy_device import DeviceEnergy
from joulebook.findings import Estimate, Finding
from joulebook.schema import UTC

ENERGY_SCHEMA = {
    "device": pl.String, "energy_j": pl.Float64, "lo": pl.Float64, "hi": pl.Float64,
    "mean_power_w": pl.Float64, "mean_lo": pl.Float64, "mean_hi": pl.Float64, "covered_s": pl.Float64,
    "coverage_ratio": pl.Float64, "n": pl.Int64, "peak_power_w": pl.Float64, "method": pl.String, "reason": pl.String,
}  # fmt: skip
"""One row a device, and ``device == ''`` for their sum."""

PARTS_SCHEMA = {"device": pl.String, "part": pl.String, "lo": pl.Float64, "hi": pl.Float64}
"""By how much a value may be lower or higher for each named reason [J]."""

GAPS_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "device": pl.String, "start_utc": UTC, "end_utc": UTC, "seconds": pl.Float64,
}  # fmt: skip
"""Open time: what no reading speaks for."""

TICKS_PER_READING = 16
"""Where a window has more ticks than this for each reading, the log is too sparse for a highest sum."""

PARTS = ("noise", "edges", "resolution", "aliasing", "unknown time")


@dataclass(frozen=True)
class Energy:
    """Energy of a window.

    Parameters
    ----------
    total
        Energy of all devices together [J].
    mean_power
        Sum of the devices' mean powers, each over its own covered time [W].
    frame
        Columns of ``ENERGY_SCHEMA``; the first row, ``device == ''``, is the total.
    parts
        Columns of ``PARTS_SCHEMA``.
    gaps
        Columns of ``GAPS_SCHEMA``.
    findings
        What the reader of the number should know.
    """

    total: Estimate
    mean_power: Estimate
    frame: pl.DataFrame
    parts: pl.DataFrame
    gaps: pl.DataFrame
    findings: tuple[Finding, ...]


def combine(devices: list[DeviceEnergy], *, start_utc: datetime, end_utc: datetime) -> Energy:
    """Return the result of several devices: rows, parts, gaps, total, findings.

    Parameters
    ----------
    devices
        Each device's energy over the window.
    start_utc, end_utc
        The window.
    """
    devices = sorted(devices, key=lambda d: d.device)
    length_s = (end_utc - start_utc).total_seconds()
    peak = _peak_w(devices, length_s)
    total = _total(devices, length_s=length_s, peak_w=peak)
    frame = pl.DataFrame([total, *(_row(d, length_s) for d in devices)], schema=ENERGY_SCHEMA, orient="row")
    gaps = _gaps(devices, start_utc)
    top = frame.row(0, named=True)
    energy = _estimate(top, "energy_j", "lo", "hi", "J")
    power = _estimate(top, "mean_power_w", "mean_lo", "mean_hi", "W")
    found = energy_findings.of(devices, start_utc=start_utc, length_s=length_s)
    whole = Energy(energy, power, frame, _parts(devices), gaps, found)
    return floored(whole) if all(_consumes(d) for d in devices) else whole


def _consumes(d: DeviceEnergy) -> bool:
    """Tell whether a device has only drawn power, never given any back."""
    ends = d.stretches.power_start_w, d.stretches.power_end_w
    return all(float(w.min(initial=0.0)) >= 0.0 for w in ends)


def floored(found: Energy) -> Energy:
    """Return an energy of consumers whose intervals end at zero: what draws power never draws less than nothing.

    Where the parts of an interval would take more than there is, as with few readings that jump, they are all cut in the
    same proportion: what is left of them still adds up, in squares, to the interval.

    Parameters
    ----------
    found
        Energies that are not negative, of devices that give no power back.
    """
    below = (pl.col("lo") < 0) & (pl.col("energy_j") >= 0)
    if not found.frame.select(below.any()).item():
        return found
    share = found.frame.filter(below).select("device", share=pl.col("energy_j") / (pl.col("energy_j") - pl.col("lo")))
    frame = found.frame.with_columns(pl.when(below).then(0.0).otherwise(pl.col(c)).alias(c) for c in ("lo", "mean_lo"))
    parts = found.parts.join(share, on="device", how="left", maintain_order="left").select(
        "device", "part", lo=pl.col("lo") * pl.col("share").fill_null(1.0), hi="hi"
    )
    top = frame.row(0, named=True)
    total, power = (
        _estimate(top, "energy_j", "lo", "hi", "J"),
        _estimate(top, "mean_power_w", "mean_lo", "mean_hi", "W"),
    )
    return replace(found, total=total, mean_power=power, frame=frame, parts=parts)


def _estimate(row: dict[str, object], value: str, lo: str, hi: str, unit: str) -> Estimate:
    v, a, b, n = (row[c] for c in (value, lo, hi, "n"))
    assert v is None or isinstance(v, float)
    assert (a is None or isinstance(a, float)) and (b is None or isinstance(b, float)) and isinstance(n, int)
    return Estimate(v, a, b, unit=unit, n=n, method=str(row["method"]), reason=str(row["reason"]))


def _row(d: DeviceEnergy, length_s: float) -> tuple[object, ...]:
    if not d.known:
        return (d.device, *[None] * 6, 0.0, 0.0, d.n, None, d.method, d.reason)
    e, u, t = d.energy_j, d.half_j, d.covered_s
    return (
        d.device, e, e - u, e + u + d.unknown_j, e / t, (e - u) / t, (e + u) / t, t, t / length_s, d.n, d.peak_w,
        d.method, d.reason,
    )  # fmt: skip


def _sizes(devices: list[DeviceEnergy]) -> dict[str, float]:
    """Return the parts of the sum: what devices of one job share adds up, rounding is each device's own."""
    return {
        "noise": sum(d.noise_j for d in devices),
        "edges": sum(d.edges_j for d in devices),
        "resolution": float(np.sqrt(sum(d.resolution_j**2 for d in devices))),
        "aliasing": sum(d.aliasing_j for d in devices),
        "unknown time": float(np.nansum([d.unknown_j for d in devices])),
    }


def _total(devices: list[DeviceEnergy], *, length_s: float, peak_w: float | None) -> tuple[object, ...]:
    known = [d for d in devices if d.known]
    n = sum(d.n for d in devices)
    if not known:
        reason = next((d.reason for d in devices), "no readings of power")
        return ("", *[None] * 6, 0.0, 0.0, n, None, "", reason)
    sizes = _sizes(devices)
    e, open_j = sum(d.energy_j for d in known), sizes["unknown time"]
    u = float(np.sqrt(sizes["noise"] ** 2 + sizes["edges"] ** 2 + sizes["resolution"] ** 2 + sizes["aliasing"] ** 2))
    covered = sum(d.covered_s for d in known)
    mean = sum(d.energy_j / d.covered_s for d in known)
    mean_u = u * mean / e if e else 0.0
    lost = [d.device for d in devices if not d.known]
    reason = f"without {', '.join(lost)}, whose energy is not known" if lost else ""
    doubts = [reason, known[0].reason if len(devices) == 1 else _open_reason(known, length_s)]
    # A device without a single reading has no highest power: nothing bounds what the total lacks.
    hi = None if any(np.isnan(d.unknown_j) for d in devices) else e + u + open_j
    return (
        "", e, e - u, hi, mean, mean - mean_u, mean + mean_u, covered / len(devices),
        covered / (len(devices) * length_s), n, peak_w, "; ".join(sorted({d.method for d in known})),
        "; ".join(filter(None, doubts)),
    )  # fmt: skip


def _open_reason(devices: list[DeviceEnergy], length_s: float) -> str:
    open_s = len(devices) * length_s - sum(d.covered_s for d in devices)
    if not any(d.hole_start_s.size for d in devices):
        return ""
    return (
        f"{open_s:.6g} of {len(devices) * length_s:.6g} device-seconds not covered; "
        f"open time is in the interval, not in the value"
    )


def _peak_w(devices: list[DeviceEnergy], length_s: float) -> float | None:
    """Return the highest power of the sum, over ticks in which every device has a reading."""
    known = [d for d in devices if d.known]
    if len(known) <= 1:
        return known[0].peak_w if known else None
    period = max((d.period_s or 0.0) for d in known)
    ticks = length_s / period if period else np.inf
    if ticks > TICKS_PER_READING * sum(d.n for d in known):
        return None
    # Rounding to the nearest tick keeps readings that jitter around it together.
    total, complete = np.zeros(int(ticks) + 2), np.ones(int(ticks) + 2, dtype=bool)
    for d in known:
        tick = np.rint(d.stamp_s / period).astype(np.int64)
        count = np.bincount(tick, minlength=total.size)
        total += np.bincount(tick, weights=d.power_w, minlength=total.size) / np.maximum(count, 1)
        complete &= count > 0
    return float(total[complete].max()) if complete.any() else None


def _parts(devices: list[DeviceEnergy]) -> pl.DataFrame:
    rows: list[tuple[str, str, float, float]] = []
    several: list[tuple[str, list[DeviceEnergy]]] = [("", devices), *((d.device, [d]) for d in devices)]
    for name, some in several:
        for part, size in _sizes(some).items():
            rows.append((name, part, 0.0 if part == "unknown time" else size, size))
    return pl.DataFrame(rows, schema=PARTS_SCHEMA, orient="row")


def _gaps(devices: list[DeviceEnergy], start_utc: datetime) -> pl.DataFrame:
    frames = [
        pl.DataFrame({"device": [d.device] * d.hole_start_s.size, "a": d.hole_start_s, "b": d.hole_end_s},
                     schema={"device": pl.String, "a": pl.Float64, "b": pl.Float64})
        for d in devices
    ]  # fmt: skip
    if not frames:
        return pl.DataFrame(schema=GAPS_SCHEMA)
    origin = pl.lit(start_utc).cast(UTC)

    def at(name: str) -> pl.Expr:
        return origin + pl.duration(microseconds=(pl.col(name) * 1e6).round().cast(pl.Int64))

    return pl.concat(frames).select(
        "device", at("a").alias("start_utc"), at("b").alias("end_utc"), (pl.col("b") - pl.col("a")).alias("seconds")
    )
