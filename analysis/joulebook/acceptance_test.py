"""The five-minute test of a software reading against a meter: idle and two loads, Olympic means, within 5 %."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from joulebook.findings import Finding, Severity

MINUTES = 5
"""Non-overlapping minutes of a level (MLPerf Training power rules)."""

TOLERANCE_RATIO = 0.05
"""Largest relative difference of a level (the same rules)."""

LEAST_LEVELS = 3
"""Idle and two loads."""

LEAST_READINGS = 2
"""Fewest readings of either side in a minute."""


@dataclass(frozen=True)
class Verdict:
    """Outcome of the test.

    Parameters
    ----------
    status
        ``passed``, ``failed`` or ``refused``.
    reason
        Why.
    frame
        One row a level: ``label``, ``reading_w``, ``reference_w`` (Olympic means [W]), ``deviation_ratio``, ``passed``.
    findings
        What the reader should know.
    """

    status: str
    reason: str
    frame: pl.DataFrame
    findings: tuple[Finding, ...]


def run(reading: pl.DataFrame, reference: pl.DataFrame, levels: pl.DataFrame, *, subject: str = "meter") -> Verdict:
    """Compare a reading with a reference at idle and at least two loads.

    Of the five one-minute means of a level, the highest and the lowest are dropped and the rest is averaged.

    Parameters
    ----------
    reading, reference
        Total power of both on one clock: ``ts_utc``, ``power_w`` [W]; the reading already in the reference's terms.
    levels
        ``label`` and ``start_utc`` of each level; the five minutes from there on are used.
    subject
        Name for findings.

    Returns
    -------
    Verdict
        ``refused`` with fewer than three levels or a level without five full minutes.

    Raises
    ------
    ValueError
        A column is missing.

    Examples
    --------
    >>> empty = pl.DataFrame(schema={"ts_utc": pl.Datetime("us", "UTC"), "power_w": pl.Float64})
    >>> none = pl.DataFrame(schema={"label": pl.String, "start_utc": pl.Datetime("us", "UTC")})
    >>> run(empty, empty, none).status
    'refused'
    """
    for name, frame, need in (
        ("reading", reading, ("ts_utc", "power_w")),
        ("reference", reference, ("ts_utc", "power_w")),
        ("levels", levels, ("label", "start_utc")),
    ):
        missing = [c for c in need if c not in frame.columns]
        if missing:
            raise ValueError(f"{name}: no column {', '.join(missing)}; it has {', '.join(frame.columns)}")
    schema = {"label": pl.String, "reading_w": pl.Float64, "reference_w": pl.Float64}
    rows = [
        (label, _olympic(reading, start), _olympic(reference, start))
        for label, start in levels.select("label", "start_utc").iter_rows()
    ]
    deviation = pl.col("reading_w") / pl.col("reference_w") - 1
    frame = pl.DataFrame(rows, schema=schema, orient="row").with_columns(
        deviation.alias("deviation_ratio"), (deviation.abs() <= TOLERANCE_RATIO).alias("passed")
    )
    if len(frame) < LEAST_LEVELS:
        return _refused(f"{len(frame)} levels; idle and two loads are needed", frame, subject)
    short = frame.filter(pl.col("deviation_ratio").is_null())["label"].to_list()
    if short:
        return _refused(f"{', '.join(short)}: fewer than {MINUTES} full minutes of both", frame, subject)
    worst = frame.sort(pl.col("deviation_ratio").abs(), descending=True).row(0, named=True)
    what = f"largest deviation {worst['deviation_ratio']:+.1%} at {worst['label']}, allowed ± {TOLERANCE_RATIO:.0%}"
    if frame["passed"].all():
        return Verdict("passed", what, frame, ())
    finding = Finding(
        "acceptance-failed", Severity.WARNING, subject, f"The reading does not pass the five-minute test: {what}.",
        {"deviation_ratio": worst["deviation_ratio"], "label": worst["label"]},
    )  # fmt: skip
    return Verdict("failed", what, frame, (finding,))


def _olympic(power: pl.DataFrame, start: object) -> float | None:
    """Return the mean of five one-minute means without the highest and the lowest [W]; null where one is missing."""
    minute = ((pl.col("ts_utc") - pl.lit(start)).dt.total_microseconds() / 60e6).floor().alias("minute")
    means = (
        power.drop_nulls("power_w").with_columns(minute).filter(pl.col("minute").is_between(0, MINUTES - 1))
        .group_by("minute").agg(pl.col("power_w").mean(), pl.len()).filter(pl.col("len") >= LEAST_READINGS)
    )["power_w"].sort()  # fmt: skip
    return float(means[1:-1].mean()) if len(means) == MINUTES else None  # pyrefly: ignore[bad-argument-type]


def _refused(reason: str, frame: pl.DataFrame, subject: str) -> Verdict:
    """Return the refusal of the test."""
    return Verdict(
        "refused", reason, frame, (Finding("acceptance-refused", Severity.NOTE, subject, f"No verdict: {reason}."),)
    )
