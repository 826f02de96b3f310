"""Runs of which one instrument saw a part and another one the rest: joined where both read the same sensor alike.

The better instrument is used for all of its own time, the other one before and after that only: no second counts twice.
"""

from __future__ import annotations

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook.instrument_order import SCOPE

LEAST_SHARE = 0.01
"""Share of the run from which on what an instrument adds is worth a second one."""

TOLD_SHARE = 0.05
"""Share of the run that must lack before it is told who else has it."""

DEVICE = (*SCOPE, "device")

NEEDED = frozenset({"begin_s", "end_s", "kind", "spanned"})
"""What must be known of channels to join them."""

_CUT = ("passed_from_s", "passed_until_s")

_APART = ("counter", "on-change")
"""Kinds whose readings say nothing without those of the same instrument before them."""


def joined(ranked: pl.DataFrame) -> pl.DataFrame:
    """Choose, beside the best instrument of each scope, those that saw its devices before and after it.

    Parameters
    ----------
    ranked
        Channels in the order of their instruments: ``run_id, host, scope, device, family, coverage_ratio, usable, chosen,
        place, best, reason``, and ``begin_s, end_s, kind, spanned``, without which none is joined.

    Returns
    -------
    polars.DataFrame
        The same rows, with ``passed_from_s`` and ``passed_until_s``: between these a better instrument has the device.
    """
    ranked = ranked.with_columns(pl.lit(None, pl.Float64).alias(c) for c in _CUT)
    if not set(ranked.columns) >= NEEDED:
        return ranked
    for place in ranked.filter(pl.col("place") > 0)["place"].unique().sort():
        beside = _beside(ranked)
        fit = (
            (pl.col("place") == place) & pl.col("usable") & (_obstacle() == "") & (pl.col("adds_ratio") >= LEAST_SHARE)
        ).fill_null(value=False)
        fresh = beside.select(fit & ~pl.col("chosen")).to_series()
        ranked = ranked.with_columns(
            chosen=pl.col("chosen") | fresh,
            reason=pl.when(fresh).then(pl.format("used before and after the time of {}", "best")).otherwise("reason"),
            passed_from_s=pl.when(fresh).then(beside["had_from_s"]).otherwise("passed_from_s"),
            passed_until_s=pl.when(fresh).then(beside["had_until_s"]).otherwise("passed_until_s"),
        )
    return ranked


def find(ranked: pl.DataFrame, paths: dict[int, str], elsewhere: pl.DataFrame) -> list[Finding]:
    """Say where several instruments were joined, and which log has what those that are used lack.

    Parameters
    ----------
    ranked
        As :func:`joined` returns.
    paths
        File of each source.
    elsewhere
        Channels of other hosts that saw the time of a run, like those ranked.

    Returns
    -------
    list of Finding
        Their subjects are runs.
    """
    if not set(ranked.columns) >= NEEDED or ranked.is_empty():
        return []
    several = pl.col("place").n_unique().over(*SCOPE) > 1
    found = [_told_joined(own, paths) for own in _groups(ranked.filter("chosen").filter(several))]
    beside = _beside(ranked).filter(~pl.col("chosen") & pl.col("usable"))
    away = _beside(
        pl.concat([ranked.filter("chosen"), elsewhere.with_columns(chosen=False)], how="diagonal"),
        by=("run_id", "scope", "device"),
    )
    before_or_after = (pl.col("end_s") <= pl.col("had_from_s")) | (pl.col("begin_s") >= pl.col("had_until_s"))
    away = away.filter(~pl.col("chosen") & before_or_after)
    for rows, why in ((beside, _obstacle()), (away, pl.lit("it is said to be of another host"))):
        lacking = rows.filter(pl.col("adds_ratio") >= TOLD_SHARE).with_columns(why=why)
        found += [_told_lacking(own, paths) for own in _groups(lacking, "source_id", "why")]
    return found


def _groups(rows: pl.DataFrame, *more: str) -> list[pl.DataFrame]:
    return rows.partition_by(*SCOPE, *more, maintain_order=True) if rows.height else []


def _beside(ranked: pl.DataFrame, by: tuple[str, ...] = DEVICE) -> pl.DataFrame:
    """Return channels with what the chosen ones of the same device are, and which share of the run each has beyond their time."""
    had = ranked.filter("chosen").sort("place").group_by(*by, maintain_order=True).agg(
        had_from_s=pl.col("begin_s").min(), had_until_s=pl.col("end_s").max(),
        had_family=pl.col("family").first(), had_kind=pl.col("kind").first(),
        had_spanned=pl.col("spanned").first(), had_source=pl.col("source_id").first(),
    )  # fmt: skip
    seen_s = pl.col("end_s") - pl.col("begin_s")
    before_s = pl.min_horizontal("end_s", "had_from_s") - pl.col("begin_s")
    after_s = pl.col("end_s") - pl.max_horizontal("begin_s", "had_until_s")
    outside = (before_s.clip(0.0) + after_s.clip(0.0)) / seen_s
    return ranked.join(had, on=list(by), how="left", maintain_order="left").with_columns(
        adds_ratio=pl.when((seen_s > 0) & pl.col("had_from_s").is_not_null()).then(pl.col("coverage_ratio") * outside)
    )


def _obstacle() -> pl.Expr:
    """Return why an instrument cannot be joined to those that are used, nothing where it can."""
    apart = pl.col("kind").is_in(_APART) | pl.col("had_kind").is_in(_APART)
    return (
        pl.when(pl.col("family") != pl.col("had_family")).then(pl.lit("it is an instrument of another kind"))
        .when(apart | (pl.col("spanned") != pl.col("had_spanned"))).then(pl.lit("its values are of another kind"))
        .otherwise(pl.lit(""))
    )  # fmt: skip


def _told_joined(own: pl.DataFrame, paths: dict[int, str]) -> Finding:
    first, more = own.filter(pl.col("place") == 0), own.filter(pl.col("place") > 0)
    devices = sorted(set(more["device"]))
    used, added = _files(first, paths), _files(more, paths)
    covered = float(first["coverage_ratio"].sum()) / first["device"].n_unique()
    return Finding(
        "sources-joined", Severity.NOTE, own["run_id"][0],
        f"{used} covers {100 * covered:.3g} % of the run; before and after its time {', '.join(devices)} is taken from {added}. "
        "Each second counts once.",
        {"scope": own["scope"][0], "devices": devices, "used": used, "added": added},
    )  # fmt: skip


def _told_lacking(own: pl.DataFrame, paths: dict[int, str]) -> Finding:
    path, devices, why = paths[own["source_id"][0]], sorted(set(own["device"])), own["why"][0]
    used = paths[own["had_source"][0]]
    share = 100 * float(own["adds_ratio"].min())  # pyrefly: ignore[bad-argument-type]
    cure = (
        "If both are of one machine, give both the same host in [[source]]." if "host" in why
        else "What is given is the part that the first one saw."
    )  # fmt: skip
    return Finding(
        "missing-part-elsewhere", Severity.WARNING, own["run_id"][0],
        f"{path} has {', '.join(devices)} over {share:.3g} % of the run beyond the time of {used}. It is not added: {why}. {cure}",
        {"scope": own["scope"][0], "devices": devices, "path": path, "used": used, "adds_ratio": share / 100},
    )  # fmt: skip


def _files(rows: pl.DataFrame, paths: dict[int, str]) -> str:
    return ", ".join(sorted({paths[s] for s in rows["source_id"]}))
