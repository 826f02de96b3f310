"""Pictures of comparisons: sweeps, campaigns, what power varies with, what loss cost, days."""

from __future__ import annotations

import polars as pl

from joulebook import plots
from joulebook_pipelines.report.blocks import Picture
from joulebook_pipelines.report.pictures import Budget, draw, slug
from joulebook_pipelines.report.source import Source

DRIVERS_DRAWN = 6
"""Devices whose drivers are drawn; the table has all."""


def sweep(source: Source, budget: Budget, name: str) -> Picture | None:
    """Return the curves of a sweep."""
    rows = source.rows("sweeps").filter(pl.col("sweep") == name)
    spots = source.rows("sweet_spots").filter(pl.col("sweep") == name)
    words = (
        f"Curves of sweep {name}",
        f"Sweep {name}: step time, energy per token and tokens to the target, and below them the energy to the target, "
        "which is the product of the last two. The band is the 95 % interval of the best setting.",
        "; ".join(
            f"{o}: {s} {x if x is not None else ''}" for o, s, x in spots.select("objective", "status", "x").iter_rows()
        ),
    )
    return draw(budget, lambda ax: plots.sweet_spot(rows, spots, ax=ax), slug("sweep", name), words, (7.0, 5.0))


def changes(source: Source, budget: Budget, name: str) -> Picture | None:
    """Return the waterfall of a campaign."""
    rows = source.rows("changes").filter(pl.col("campaign") == name)
    words = (
        f"Effects of campaign {name}",
        f"Campaign {name}: each bar runs from the value before a change to the value after it; the thin line is the "
        "95 % interval of the value after. The axis does not begin at nought. Hollow bars were refused.",
        "; ".join(f"{c} at the {s}: {v}" for c, s, v in rows.select("change", "scope", "verdict").iter_rows()),
    )
    height = 0.62 * max(rows["position"].n_unique(), 2) + 0.5
    return draw(budget, lambda ax: plots.campaign(rows, ax=ax), slug("campaign", name), words, (7.6, height))


def decomposition(source: Source, budget: Budget, name: str) -> Picture | None:
    """Return what the effects of a campaign are made of."""
    rows = source.rows("decompositions").filter(pl.col("campaign") == name)
    if rows["effect_ratio"].is_null().all():
        return None
    words = (
        f"Parts of the effects of campaign {name}",
        f"Campaign {name}: how much of each effect comes from the time taken and how much from the power drawn. Left of "
        "zero saves energy; the parts add up to the effect.",
        "; ".join(
            f"{c} at the {s}: {p} {100 * e:.1f} %"
            for c, s, p, e in rows.drop_nulls("effect_ratio")
            .select("change", "scope", "part", "effect_ratio")
            .iter_rows()
        ),
    )
    height = 0.62 * max(rows["position"].n_unique(), 2) + 0.5
    return draw(budget, lambda ax: plots.decomposition(rows, ax=ax), slug("parts-of", name), words, (7.6, height))


def convergence(source: Source, budget: Budget, run: str, stop_j: float | None) -> Picture | None:
    """Return loss against energy of a run, and what a unit of loss cost below."""
    rows = source.rows("convergence").filter(pl.col("run_id") == run)
    scope = rows["scope"][0]
    line = " The line marks the energy after which a unit of loss never got cheaper again." if stop_j else ""
    words = (
        f"Loss against energy of run {run}",
        f"Run {run}: loss against the energy spent so far at the {scope}; below, the energy of one unit of loss, with "
        f"its 95 % interval. A triangle means that the loss may not have fallen at all.{line}",
        f"Loss from {rows['loss'][0]:.3g} to {rows['loss'][-1]:.3g} over {rows.height} stretches of equal energy.",
    )
    return draw(
        budget, lambda ax: plots.convergence(rows, stop_j=stop_j, ax=ax), slug("loss", run), words, (7.6, 3.6)
    )  # fmt: skip


def drivers(source: Source, budget: Budget) -> Picture | None:
    """Return the shares of the drivers of the first devices."""
    rows = source.rows("drivers").drop_nulls("share_ratio")
    if rows.is_empty():
        return None
    first = rows.select("run_id", "device").unique(maintain_order=True).head(DRIVERS_DRAWN)
    rows = rows.join(first, on=["run_id", "device"], maintain_order="left")
    words = (
        "What power varies with",
        "How much of the up and down of a device's power goes with each quantity that was logged beside it, within the "
        "longest steady stretch of the run. The thin line is the 95 % interval.",
        "; ".join(
            f"{r} {d}: {q} {100 * s:.0f} %"
            for r, d, q, s in rows.select("run_id", "device", "driver", "share_ratio").iter_rows()
        ),
    )
    lines = -(-first.height // 3)
    return draw(budget, lambda ax: plots.drivers(rows, ax=ax), "drivers-shares", words, (7.6, 1.9 * lines))


def days(rows: pl.DataFrame, budget: Budget) -> Picture | None:
    """Return efficiency day by day."""
    words = (
        "Efficiency by day",
        "Change since the first day of MFU (share of the accelerators' peak arithmetic that was used) and of tokens per "
        "joule. Lines that part tell different stories: busier accelerators are not the same as less energy.",
        f"{rows['day'].n_unique()} days.",
    )
    return draw(budget, lambda ax: plots.days(rows, ax=ax), "days-board", words, (7.6, 2.4))


def shares(rows: pl.DataFrame, budget: Budget, host: str, at: int) -> Picture | None:
    """Return the bar of a shared machine."""
    parts = rows.select(part=pl.col("run_id"), energy_j=pl.col("energy_j"))
    words = (
        f"Energy of host {host} by run",
        f"Energy of host {host} while runs shared it, split over them.",
        "; ".join(f"{r} {100 * s:.0f} %" for r, s in rows.select("run_id", "share_ratio").iter_rows()),
    )
    return draw(budget, lambda ax: plots.energy_bar(parts, ax=ax), slug("shared", host, str(at)), words, (8.2, 1.25))
