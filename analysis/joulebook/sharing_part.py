"""What one run took of a machine that it shared."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from joulebook.findings import Estimate
from joulebook.sharing import IDLE


@dataclass(frozen=True)
class Part:
    """What one job took of a machine.

    Parameters
    ----------
    energy
        Its energy [J].
    others
        The jobs that it shared the machine with.
    """

    energy: Estimate
    others: tuple[str, ...]


def part_of(shares: pl.DataFrame, run_id: str, *, scope: str) -> Part | None:
    """Return what a run took of the machine that it shared, ``None`` where it shared none.

    Parameters
    ----------
    shares
        Rows of table ``shares``: ``host, scope, start_utc, end_utc, run_id, energy_j, energy_lo, energy_hi, method``.
    run_id
        The run.
    scope
        The boundary that was split.

    Returns
    -------
    Part or None
        Energy of the run, and the other runs of the same split.
    """
    rows = shares.filter(pl.col("scope") == scope)
    mine = rows.filter((pl.col("run_id") == run_id) & pl.col("energy_j").is_not_null())
    if mine.is_empty():
        return None
    row = mine.row(0, named=True)
    beside = rows.filter(pl.col("host") == row["host"], pl.col("start_utc") == row["start_utc"])["run_id"].to_list()
    energy = Estimate(row["energy_j"], row["energy_lo"], row["energy_hi"], "J", method=row["method"] or "")
    return Part(energy, tuple(r for r in beside if r not in (run_id, IDLE)))
