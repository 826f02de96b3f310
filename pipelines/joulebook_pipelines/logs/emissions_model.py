"""What the tracker's model of the memory tells: how much of a total is assumed, and how long the tracker measured at all.

The tracker does not measure memory: it assumes constant watts, so the memory's energy counts the seconds that were measured.
"""

from __future__ import annotations

import polars as pl

from joulebook.findings import Finding, Severity

LEAST_MEASURED = 0.9
"""A run measured for a smaller share of its time missed some: of 681 runs of a minute and more, half reach 0.9996, all but
2 % reach 0.9."""

LEAST_S = 60.0
"""Of shorter runs [s] the first and last sample decide the share."""

LARGE_SHARE, LARGE_W = 0.25, 50.0
"""From this share of a total on, and these watts, an assumed memory decides the result."""


def measured_share(with_pue_from: int) -> pl.Expr:
    """Return the share of a run's time that was measured: the memory's energy over its watts times the duration; null if unknown.

    Parameters
    ----------
    with_pue_from
        Version from which the printed watts include the PUE, which ``ram_j`` does not.
    """
    share = _share("ram", with_pue_from)
    # Where the tracker slept, no part has all of its time: one that has shows that the memory's watts were others.
    others = pl.max_horizontal(_share("cpu", with_pue_from), _share("gpu", with_pue_from))
    awake = (others >= LEAST_MEASURED).fill_null(value=False)
    known = (
        (share > 0) & (pl.col("duration_s") >= LEAST_S) & pl.col("machine_mode") & ~((share < LEAST_MEASURED) & awake)
    )
    return pl.when(known).then(share)


def _share(part: str, with_pue_from: int) -> pl.Expr:
    """Return the energy of a part over its printed watts times the duration; null where one of them is missing or 0."""
    text = pl.col(f"{part}_power").fill_null("").str.strip_chars().str.replace(",", ".")
    watts = text.cast(pl.Float64, strict=False) / (
        pl.when(pl.col("version") >= with_pue_from).then(pl.col("pue")).otherwise(1.0)
    )
    energy = pl.col(f"{part}_j")
    return pl.when((watts > 0) & (energy > 0) & (pl.col("duration_s") > 0)).then(
        energy / (watts * pl.col("duration_s"))
    )


def about(name: str, rows: pl.DataFrame) -> list[Finding]:
    """Return the findings.

    Parameters
    ----------
    rows
        As for ``emissions_checks.about_values``, with ``measured_share``.
    """
    return [f for f in (_missed(name, rows), _assumed(name, rows)) if f is not None]


def _missed(name: str, rows: pl.DataFrame) -> Finding | None:
    short = rows.filter(pl.col("measured_share") < LEAST_MEASURED).sort("line")
    if short.is_empty():
        return None
    first = short.row(0, named=True)
    share, line = float(first["measured_share"]), int(first["line"])
    return Finding(
        "tracker-missed-time", Severity.WARNING, name,
        f"{short.height} {'run was' if short.height == 1 else 'runs were'} measured for a part of the time only, first line {line}: "
        f"{share * first['duration_s']:.0f} of {first['duration_s']:.0f} s ({share:.1%}), as the energy of the memory tells, whose watts "
        "are constant. The machine slept or was too busy to measure: the energy lacks the rest, and a mean power from it is too low.",
        {"rows": short.height, "line": line, "measured_ratio": share},
    )  # fmt: skip


def _assumed(name: str, rows: pl.DataFrame) -> Finding | None:
    share, watts = pl.col("ram_j") / pl.col("total_j"), pl.col("ram_j") / pl.col("duration_s")
    judged = rows.filter((pl.col("total_j") > 0) & (pl.col("ram_j") > 0) & (pl.col("duration_s") > 0))
    large = judged.with_columns(share=share, watts=watts).filter(
        (pl.col("share") >= LARGE_SHARE) & (pl.col("share") <= 1) & (pl.col("watts") >= LARGE_W)
    )
    if large.is_empty():
        return None
    first = large.sort("line").row(0, named=True)
    without = (first["total_j"] - first["ram_j"]) / 3.6e6
    return Finding(
        "assumed-memory-power", Severity.WARNING, name,
        f"In {large.height} {'row' if large.height == 1 else 'rows'} the memory makes a quarter or more of the total, first line "
        f"{first['line']}: {first['watts']:.3g} W, {first['share']:.0%}. That is assumed from the size of the memory, not measured; on a "
        f"large host it is far too high. Without it the total of that row is {without:.4g} kWh.",
        {"rows": large.height, "line": int(first["line"]), "share_ratio": float(first["share"]), "memory_w": float(first["watts"])},
    )  # fmt: skip
