"""Logs that hold no reading within any run: a wrong zone looks like an empty log."""

from __future__ import annotations

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook.wording import lasting

ZONE_STEP_S = 900.0
"""Zones differ by quarters of an hour."""

ZONE_SLACK_S = 120.0
"""A log and a run seldom begin in the same minute; so near to a whole hour a zone is likely."""

NEAREST_ZONE_S = 1800.0
"""Zones in which one person works differ by more: a quarter of an hour is how long a run before this one took."""

FARTHEST_ZONE_S = 14 * 3600.0


def find(sources: pl.DataFrame, channels: pl.DataFrame, runs: pl.DataFrame) -> list[Finding]:
    """Return a finding for each source with powers whose whole time lies outside of the runs of its host.

    Parameters
    ----------
    sources
        ``source_id, path, host, first_utc, last_utc``.
    channels
        ``source_id, scope, n``.
    runs
        ``run_id, host, start_utc, end_utc``.
    """
    speaking = channels.filter((pl.col("n") > 0) & ~pl.col("scope").is_in(["", "part"]))
    mine = sources.filter(pl.col("source_id").is_in(speaking["source_id"].implode())).drop_nulls(
        ["first_utc", "last_utc"]
    )
    pairs = mine.join(runs.select("run_id", "host", "start_utc", "end_utc"), on="host", how="inner")
    return [_finding(r) for r in _away(pairs)]


def find_phases(phases: pl.DataFrame, sources: pl.DataFrame, runs: pl.DataFrame) -> list[Finding]:
    """Return a finding for each source of phases of which none falls into a run that it may belong to.

    Parameters
    ----------
    phases
        ``source_id, run_id, start_utc, end_utc``; ``""`` for a run that is not named.
    sources
        ``source_id, path``.
    runs
        ``run_id, start_utc, end_utc``.
    """
    spans = phases.drop_nulls(["start_utc", "end_utc"]).group_by("source_id", wanted="run_id").agg(
        first_utc=pl.col("start_utc").min(), last_utc=pl.col("end_utc").max()
    )  # fmt: skip
    named = runs.select(pl.col("run_id", "start_utc", "end_utc"))
    pairs = spans.join(named, how="cross").filter((pl.col("wanted") == "") | (pl.col("wanted") == pl.col("run_id")))
    told = pairs.join(sources.select("source_id", "path"), on="source_id")
    return [_finding(r, code="phases-outside-runs", holds="no phase") for r in _away(told)]


def _away(pairs: pl.DataFrame) -> list[dict[str, object]]:
    """Return the nearest run of each source that lies away from all of its runs, with how far on which side [s]."""

    def seconds(later: str, earlier: str) -> pl.Expr:
        return (pl.col(later) - pl.col(earlier)).dt.total_microseconds() / 1e6

    apart = pairs.with_columns(
        before_s=seconds("start_utc", "last_utc"), after_s=seconds("first_utc", "end_utc"), begin_s=seconds("first_utc", "start_utc")
    ).with_columns(away_s=pl.max_horizontal("before_s", "after_s"))  # fmt: skip
    nearest = apart.sort("away_s", maintain_order=True).unique("path", keep="first", maintain_order=True)
    return nearest.filter(pl.col("away_s") > 0).sort("path").rows(named=True)


def _finding(row: dict[str, object], *, code: str = "source-outside-runs", holds: str = "no reading") -> Finding:
    side = "before" if float(str(row["before_s"])) > 0 else "after"
    away_s, begin_s = float(str(row["away_s"])), float(str(row["begin_s"]))
    off_s = round(begin_s / ZONE_STEP_S) * ZONE_STEP_S
    zone = ""
    if abs(begin_s - off_s) <= ZONE_SLACK_S and NEAREST_ZONE_S <= abs(off_s) <= FARTHEST_ZONE_S:
        side_of = "before" if off_s < 0 else "after"
        zone = (
            f" It begins {abs(off_s) / 3600:g} h {side_of} the run, to within two minutes: is its timezone right, and that of the run? "
            "Correct timezone or utc_offset_s of this [[source]]."
        )
    return Finding(
        code, Severity.WARNING if zone or holds == "no phase" else Severity.NOTE, str(row["path"]),
        f"{row['path']} holds {holds} within any run: it ends or begins {lasting(away_s)} {side} the nearest, {row['run_id']}, so it is in "
        f"the energy of none.{zone or ' Check its clock and zone, and the times of the runs.'}",
        {"away_s": away_s, "run_id": row["run_id"]},
    )  # fmt: skip
