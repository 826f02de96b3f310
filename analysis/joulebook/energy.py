"""Energy of a window from readings of power: per device and summed, with its interval, coverage and doubts."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import polars as pl

from joulebook import arrays
from joulebook import counters as counting
from joulebook.energy_counter import measure_counter
from joulebook.energy_device import Kind, Rule, measure
from joulebook.energy_sum import ENERGY_SCHEMA, GAPS_SCHEMA, PARTS_SCHEMA, Energy, combine, floored
from joulebook.schema import UTC
from joulebook.totals import by_device

__all__ = [
    "ENERGY_SCHEMA", "GAPS_SCHEMA", "PARTS_SCHEMA", "Energy", "Kind", "by_bin", "floored", "from_counter", "integrate",
]  # fmt: skip

NEAR_EDGE_S = 3600.0
"""How far around a bin readings are looked at [s]: far more than the usual period of a log."""

BINS_SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "start_utc": UTC, "end_utc": UTC, "energy_j": pl.Float64, "lo": pl.Float64, "hi": pl.Float64,
    "covered_s": pl.Float64, "coverage_ratio": pl.Float64,
}  # fmt: skip


def integrate(
    power: pl.DataFrame,
    *,
    start_utc: datetime,
    end_utc: datetime,
    kind: Kind | None = None,
    period_s: float | None = None,
    max_gap_s: float | None = None,
    window_s: float = 0.0,
    update_s: float | None = None,
    step_s: float | None = None,
    attempts: pl.DataFrame | None = None,
    hold_edges: bool = True,
    trail_s: float = 0.0,
    load_edges: bool = False,
    steps: pl.DataFrame | None = None,
) -> Energy:
    """Return the energy within ``[start_utc, end_utc)``, per device and in total.

    Instantaneous readings are joined by straight lines on their own stamps; readings over a span cover the span that
    ends at their stamp; readings of a log that is written on change are held until the next. Steps up to 3 s or 3
    periods, whichever is more, are bridged. Longer ones are open: the value is the energy of the covered time, and the
    interval reaches from an open time that drew nothing to one that drew the highest power seen of that device. A
    window that reaches beyond the first or last reading by up to a period is covered by holding that reading.

    Parameters
    ----------
    power
        Readings: ``device``, ``ts_utc``, ``power_w`` [W] and, optionally, ``span_s`` [s] (null = instantaneous) and
        ``energy_j`` [J] (energy within the span, used where ``power_w`` is null). Readings outside of the window are
        used to interpolate at its edges.
    start_utc, end_utc
        The window, with a time zone.
    kind
        ``"instant"``, ``"mean"`` or ``"hold"``; by default ``"mean"`` for a device with spans, else ``"instant"``.
    period_s
        Period of the log [s]; by default the median step of each device.
    max_gap_s
        Longest step that is bridged [s]; by default 3 s or 3 periods, and no limit for ``"hold"``.
    window_s, update_s
        Averaging window and update period of the sensor behind point readings [s]: stamps are moved back by the lag.
    step_s
        Duration of a repeating step of the load [s], where known: point readings that keep meeting its same phase are
        refused, and those that beat with it get the beat's energy as a part of their interval.
    attempts
        When the tool asked, with or without success: ``ts_utc`` and, optionally, ``device``. Tells the period of a log
        that mostly failed.
    hold_edges
        Whether a window that reaches beyond the outer readings by up to a period is covered by holding them. Not so where
        the window is nothing but the log itself: then each device speaks from its first to its last reading.
    trail_s
        By how much point readings trail the power that they speak of, where the sensor's window is not known but this was
        found with the offset of its clock [s]: stamps are moved back by it.
    load_edges
        Whether the load begins and stops with the window, as a run's does: where power jumps at an end, it is held there from
        the reading inside, as a line over the jump would put some of it outside. Two windows that meet do not add up then.
    steps
        Logged steps of the load, ``step`` and ``end_utc``: as ``step_s``, by where each point reading falls within its own step.

    Returns
    -------
    Energy
        Total, mean power, frame by device, parts of the uncertainty, gaps and findings.

    Raises
    ------
    ValueError
        A column is missing, the window is empty or has no time zone, or an option is not positive.

    References
    ----------
    JCGM 100:2008 (GUM); Yang, Adamek, Armour 2024, arXiv:2312.02741 (lag and window of board sensors).

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> rows = [("gpu:0", t + timedelta(seconds=i), 200.0) for i in range(11)]
    >>> power = pl.DataFrame(rows, schema=["device", "ts_utc", "power_w"], orient="row")
    >>> integrate(power, start_utc=t, end_utc=t + timedelta(seconds=10)).total.value
    2000.0
    """
    _check(power, start_utc, end_utc, period_s=period_s, max_gap_s=max_gap_s, update_s=update_s, step_s=step_s)
    readings = _readings(power)
    length_s = (end_utc - start_utc).total_seconds()
    origin = pl.Series([start_utc]).cast(UTC).to_physical()[0]
    ends = (
        None if steps is None else (arrays.seconds(steps["end_utc"], origin), steps["step"].cast(pl.Float64).to_numpy())
    )
    rule = Rule(kind, period_s, max_gap_s, window_s, update_s, step_s, hold_edges, trail_s, load_edges, ends)
    devices = [
        measure(rows, device=name, origin_us=origin, length_s=length_s, rule=rule, attempts=_attempts(attempts, name))
        for name, rows in by_device(readings)
    ]
    return combine(devices, start_utc=start_utc, end_utc=end_utc)


def _check(power: pl.DataFrame, start: datetime, end: datetime, **positive: float | None) -> None:
    missing = [c for c in ("device", "ts_utc", "power_w") if c not in power.columns]
    if missing and not (missing == ["power_w"] and "energy_j" in power.columns):
        raise ValueError(f"power: no column {', '.join(missing)}; it has {', '.join(power.columns)}")
    _window(start, end)
    for name, option in positive.items():
        if option is not None and not option > 0:
            raise ValueError(f"{name}: {option} is not positive")


def _window(start: datetime, end: datetime) -> None:
    for name, value in (("start_utc", start), ("end_utc", end)):
        if value.tzinfo is None:
            raise ValueError(f"{name}: {value} has no time zone; give an aware datetime")
    if end <= start:
        raise ValueError(f"end_utc: {end} is not after start_utc {start}")


def _readings(power: pl.DataFrame) -> pl.DataFrame:
    """Return device, stamp, span and power; power from the energy of a span where the tool gives only that."""
    span = pl.col("span_s").cast(pl.Float64) if "span_s" in power.columns else pl.lit(None, dtype=pl.Float64)
    watts = pl.col("power_w").cast(pl.Float64) if "power_w" in power.columns else pl.lit(None, dtype=pl.Float64)
    if "energy_j" in power.columns and power["energy_j"].null_count() < power.height:
        watts = pl.coalesce(watts, pl.when(span > 0).then(pl.col("energy_j") / span))
    several = "source_id" in power.columns and power.select(pl.col("source_id").n_unique()).item() > 1
    logs = ["source_id"] if several else []
    readings = power.select("device", "ts_utc", span.alias("span_s"), watts.alias("power_w"), *logs)
    return readings.drop_nulls("ts_utc") if readings["ts_utc"].has_nulls() else readings


def _attempts(attempts: pl.DataFrame | None, device: str) -> pl.Series | None:
    if attempts is None:
        return None
    own = attempts.filter(pl.col("device") == device) if "device" in attempts.columns else attempts
    return own["ts_utc"] if own.height else None


def from_counter(
    counters: pl.DataFrame,
    *,
    start_utc: datetime,
    end_utc: datetime,
    range_j: counting.PerDevice = None,
    max_power_w: counting.PerDevice = None,
    quantum_j: float | None = None,
) -> Energy:
    """Return the energy within ``[start_utc, end_utc)`` by cumulative counters, per device and in total.

    A counter knows the energy of a gap in its own log, so no step is too long as long as the counter cannot have
    wrapped unseen. What a reset, a glitch or an ambiguous step hides is open, as a gap is to ``integrate``. A span that
    an edge of the window cuts is shared by its length.

    Parameters
    ----------
    counters
        ``device``, ``ts_utc``, ``energy_counter_j`` [J].
    start_utc, end_utc
        The window, with a time zone.
    range_j, max_power_w
        Range of the counter [J] and highest power of the device [W], for all or by device.
    quantum_j
        Step of the counter [J]; by default as seen in its values.

    Returns
    -------
    Energy
        As of ``integrate``, with the findings of the counters.

    Raises
    ------
    ValueError
        A column is missing, or the window is empty or has no time zone.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> rows = [("cpu:0", t + timedelta(seconds=i), 50.0 * i) for i in range(5)]
    >>> frame = pl.DataFrame(rows, schema=["device", "ts_utc", "energy_counter_j"], orient="row")
    >>> from_counter(frame, start_utc=t, end_utc=t + timedelta(seconds=4)).total.value
    200.0
    """
    found = counting.deltas(counters, range_j=range_j, max_power_w=max_power_w)
    _window(start_utc, end_utc)
    length_s = (end_utc - start_utc).total_seconds()
    origin = pl.Series([start_utc]).cast(UTC).to_physical()[0]
    steps = dict(found.devices.select("device", "quantum_j").iter_rows())
    devices = [
        measure_counter(
            rows, device=name, origin_us=origin, length_s=length_s, quantum_j=quantum_j or steps.get(name, 0.0)
        )
        for name, rows in by_device(found.frame)
    ]
    result = combine(devices, start_utc=start_utc, end_utc=end_utc)
    return replace(result, findings=result.findings + found.findings)


def by_bin(power: pl.DataFrame, *, start_utc: datetime, end_utc: datetime, every: str = "1h") -> pl.DataFrame:
    """Return the energy of each hour (or other bin of the UTC calendar) of a window, for curves of carbon and price.

    Parameters
    ----------
    power
        Readings as for ``integrate``.
    start_utc, end_utc
        The window, with a time zone.
    every
        Length of a bin, as polars writes it.

    Returns
    -------
    pl.DataFrame
        ``start_utc``, ``end_utc``, ``energy_j``, ``lo``, ``hi`` [J] (null where nothing is covered), ``covered_s``,
        ``coverage_ratio``; the first and last bin end at the window's edges.

    Raises
    ------
    ValueError
        As ``integrate``.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = datetime(2026, 1, 1, 0, 59, tzinfo=timezone.utc)
    >>> rows = [("gpu:0", t + timedelta(seconds=i), 100.0) for i in range(121)]
    >>> power = pl.DataFrame(rows, schema=["device", "ts_utc", "power_w"], orient="row")
    >>> by_bin(power, start_utc=t, end_utc=t + timedelta(seconds=120))["energy_j"].to_list()
    [6000.0, 6000.0]
    """
    _check(power, start_utc, end_utc)
    edges = pl.datetime_range(
        pl.lit(start_utc).cast(UTC).dt.truncate(every), end_utc, every, time_unit="us", time_zone="UTC", eager=True
    )
    inner = [e for e in edges.to_list() if start_utc < e < end_utc]
    stops = [start_utc, *inner, end_utc]
    ordered = power.with_columns(pl.col("ts_utc").cast(UTC)).sort("ts_utc", maintain_order=True)
    longest = ordered["span_s"].max() if "span_s" in ordered.columns else None
    # Readings on both sides of an edge, for its interpolation.
    margin = timedelta(seconds=max(NEAR_EDGE_S, 4 * float(longest or 0.0)))  # pyrefly: ignore[bad-argument-type]
    rows = []
    for a, b in pairwise(stops):
        first, after = ordered["ts_utc"].search_sorted(pl.Series([a - margin, b + margin]).cast(UTC))
        near = ordered.slice(first, after - first)
        top = integrate(near, start_utc=a, end_utc=b).frame.row(0, named=True)
        rows.append((a, b, *(top[c] for c in ("energy_j", "lo", "hi", "covered_s", "coverage_ratio"))))
    return pl.DataFrame(rows, schema=BINS_SCHEMA, orient="row")
