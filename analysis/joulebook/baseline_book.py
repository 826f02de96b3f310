"""Named baselines over time: what a reference run drew then and now, and whether the machine has drifted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import polars as pl

from joulebook import conditions
from joulebook.findings import Finding, Severity

DRIFT_RATIO: Final = 0.01
"""A reference that moved by more is no reference; the usual gate of control workloads in energy benchmarking."""

ENTRY_SCHEMA: Final = {
    "name": pl.String, "scope": pl.String, "date": pl.Date, "study": pl.String, "runs": pl.Int64,
    "mean_w": pl.Float64, "lo": pl.Float64, "hi": pl.Float64, "device_model": pl.String, "power_limit_w": pl.Float64,
    "batch_size": pl.Float64,
}  # fmt: skip
"""One entry of a book: a baseline with its 95 % interval and the conditions that must be equal to compare it."""


@dataclass(frozen=True)
class Drift:
    """How the baselines of a book moved.

    Parameters
    ----------
    frame
        The entries in order of name, scope and date, with ``since_last_ratio`` and ``since_first_ratio`` (change of the
        mean), ``half_ratio`` (half width of the 95 % interval of the change since the first) and ``drifted``.
    findings
        Baselines that drifted, and entries whose conditions differ.
    """

    frame: pl.DataFrame
    findings: tuple[Finding, ...]


def drift(entries: pl.DataFrame) -> Drift:
    """Compare every baseline with the one before and with the first of its name and scope.

    Parameters
    ----------
    entries
        Columns of :data:`ENTRY_SCHEMA`.

    Returns
    -------
    Drift
        A change counts as drift when its interval excludes zero and it is more than :data:`DRIFT_RATIO`.

    Examples
    --------
    >>> from datetime import date
    >>> row = {"name": "resnet", "scope": "node", "study": "s", "runs": 3, "device_model": "A"}
    >>> book = pl.DataFrame(
    ...     [row | {"date": date(2026, 1, 1), "mean_w": 500.0, "lo": 498.0, "hi": 502.0},
    ...      row | {"date": date(2026, 2, 1), "mean_w": 520.0, "lo": 518.0, "hi": 522.0}])
    >>> [f.code for f in drift(book).findings]
    ['baseline-drifted']
    """
    key = ["name", "scope"]
    ordered = entries.sort(*key, "date", "study", maintain_order=True)
    half = (pl.col("hi") - pl.col("lo")) / 2
    first, first_half = pl.col("mean_w").first().over(key), half.first().over(key)
    change = pl.col("mean_w") / first - 1
    spread = (half**2 + first_half**2).sqrt() / first
    frame = ordered.with_columns(
        since_last_ratio=pl.col("mean_w") / pl.col("mean_w").shift().over(key) - 1,
        since_first_ratio=change,
        half_ratio=spread,
        drifted=(change.abs() > pl.max_horizontal(spread, pl.lit(DRIFT_RATIO))).fill_null(value=False),
    )
    return Drift(frame, (*_drifted(frame), *_differing(frame)))


def _drifted(frame: pl.DataFrame) -> list[Finding]:
    last = frame.group_by("name", "scope", maintain_order=True).last().filter("drifted")
    return [
        Finding(
            "baseline-drifted", Severity.WARNING, f"{r['name']} at {r['scope']}",
            f"The baseline is {100 * r['since_first_ratio']:+.1f} % off its first entry (± {100 * (r['half_ratio'] or 0):.1f} %): "
            "what is measured on this machine now cannot be compared with then. Look at cooling, drivers and limits.",
            {"since_first_ratio": r["since_first_ratio"]},
        )
        for r in last.iter_rows(named=True)
    ]  # fmt: skip


def _differing(frame: pl.DataFrame) -> list[Finding]:
    found: list[Finding] = []
    known = [c for c in ("device_model", "power_limit_w", "batch_size") if c in frame.columns]
    for (name, scope), rows in frame.partition_by("name", "scope", as_dict=True, maintain_order=True).items():
        dated = rows.with_columns(run_id=pl.col("date").cast(pl.String))
        for finding in conditions.differences(dated, equal=known):
            found.append(
                Finding(finding.code, finding.severity, f"{name} at {scope}", finding.message, finding.evidence)
            )
    return found
