"""Points of a calibration: mean reading and mean reference over the same stretches of time."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from joulebook import serial, stats, totals

COLUMNS = ("reading_w", "reference_w", "reading_se_w", "reference_se_w", "recording")
"""Columns of a frame of points."""

MARGIN_S = 5.0
"""What is cut off both ends of a stretch [s]: lags and averaging windows carry the neighbouring load into it."""

LEAST_READINGS = 10
"""Fewest readings of either side in a stretch."""

Z95 = 1.959964


def from_segments(
    reading: pl.DataFrame,
    reference: pl.DataFrame,
    segments: pl.DataFrame,
    *,
    margin_s: float = MARGIN_S,
    recording: str = "",
) -> pl.DataFrame:
    """Make one point of each stable stretch.

    Parameters
    ----------
    reading, reference
        Total power of both on one clock: ``ts_utc``, ``power_w`` [W].
    segments
        ``start_utc``, ``end_utc`` and, where given, ``kind``: only ``stable`` and ``idle`` ones are used.
    margin_s
        What is cut off both ends [s].
    recording
        Name of the measurement, where several are pooled later.

    Returns
    -------
    pl.DataFrame
        ``reading_w``, ``reference_w``, ``reading_se_w``, ``reference_se_w`` [W], ``recording``, ``start_utc``,
        ``end_utc``, ``n``; a stretch without enough readings of both is left out.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> t = [t0 + timedelta(seconds=i) for i in range(60)]
    >>> log = pl.DataFrame({"ts_utc": t, "power_w": [100.0 + i % 7 for i in range(60)]})
    >>> whole = pl.DataFrame({"start_utc": [t0], "end_utc": [t[-1]]})
    >>> from_segments(log, log.with_columns(pl.col("power_w") + 20), whole).height
    1
    """
    for name, frame, need in (
        ("reading", reading, ("ts_utc", "power_w")),
        ("reference", reference, ("ts_utc", "power_w")),
        ("segments", segments, ("start_utc", "end_utc")),
    ):
        missing = [c for c in need if c not in frame.columns]
        if missing:
            raise ValueError(f"{name}: no column {', '.join(missing)}; it has {', '.join(frame.columns)}")
    if "kind" in segments.columns:
        segments = segments.filter(pl.col("kind").is_in(["stable", "idle"]))
    margin = pl.duration(microseconds=round(margin_s * 1e6))
    bounds = segments.select(pl.col("start_utc") + margin, pl.col("end_utc") - margin).unique(maintain_order=True)
    reading, reference = totals.in_time([f.select("ts_utc", "power_w").drop_nulls() for f in (reading, reference)])
    rows = []
    for start, end in bounds.iter_rows():
        a, b = (_between(f, start, end) for f in (reading, reference))
        if min(len(a), len(b)) >= LEAST_READINGS:
            rows.append((*_mean(a), *_mean(b), start, end, min(len(a), len(b))))
    names = ["reading_w", "reading_se_w", "reference_w", "reference_se_w", "start_utc", "end_utc", "n"]
    times = pl.Datetime("us", "UTC")
    schema = {n: times if n.endswith("utc") else pl.Int64 if n == "n" else pl.Float64 for n in names}
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.lit(recording).alias("recording"))
    return frame.select(*COLUMNS, "start_utc", "end_utc", "n")


def _between(rows: pl.DataFrame, start: datetime, end: datetime) -> pl.Series:
    """Return the power from start to end (exclusive) [W]."""
    first, after = (rows["ts_utc"].search_sorted(at, side="left") for at in (start, end))
    return rows["power_w"].slice(first, max(after - first, 0))


def _mean(values: pl.Series) -> tuple[float, float]:
    """Return a mean and its standard error, autocorrelation and resolution included [W]."""
    estimate = serial.mean_interval(values.to_numpy())
    sd = float(values.std() or 0.0)  # pyrefly: ignore[bad-argument-type]
    # without an interval the readings are worth few independent ones: the standard deviation itself bounds the error
    se = estimate.half_width / Z95 if estimate.half_width is not None else sd
    return float(values.mean()), max(se, stats.resolution(values.to_numpy()) / 12**0.5)  # pyrefly: ignore[bad-argument-type]


def by_bin(reading: pl.DataFrame, reference: pl.DataFrame, *, every_s: float, recording: str = "") -> pl.DataFrame:
    """Make points of equal windows, for when stable stretches show fewer than three levels.

    The mean over a window is a valid level whatever happens inside it, as long as both clocks agree.

    Parameters
    ----------
    reading, reference
        Total power of both on one clock: ``ts_utc``, ``power_w`` [W].
    every_s
        Length of a window [s]; long against lag, period and clock error.
    recording
        Name of the measurement.

    Returns
    -------
    pl.DataFrame
        As :func:`from_segments`; errors are those of edges: one sample's share of the spread within the window.

    Examples
    --------
    >>> from datetime import datetime, timedelta, timezone
    >>> t = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=i) for i in range(120)]
    >>> log = pl.DataFrame({"ts_utc": t, "power_w": [100.0 + i for i in range(120)]})
    >>> by_bin(log, log, every_s=30).height
    4
    """
    means = []
    for name, frame in (("reading", reading), ("reference", reference)):
        start = pl.col("ts_utc").dt.truncate(f"{round(every_s * 1e3)}ms").alias("start_utc")
        grouped = frame.drop_nulls("power_w").group_by(start).agg(
            pl.col("power_w").mean().alias(f"{name}_w"),
            (pl.col("power_w").std().fill_null(0.0) / pl.len()).alias(f"{name}_se_w"),
            pl.len().alias(f"{name}_n"),
        )  # fmt: skip
        full = 0.9 * float(grouped[f"{name}_n"].median() or 0)  # pyrefly: ignore[bad-argument-type]
        means.append(grouped.filter(pl.col(f"{name}_n") >= full))
    both = means[0].join(means[1], on="start_utc").sort("start_utc")
    return both.select(
        *COLUMNS[:4],
        pl.lit(recording).alias("recording"),
        "start_utc",
        (pl.col("start_utc") + pl.duration(microseconds=round(every_s * 1e6))).alias("end_utc"),
        pl.min_horizontal("reading_n", "reference_n").cast(pl.Int64).alias("n"),
    )
