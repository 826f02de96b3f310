"""Energy of a node or rack split over the jobs on it; the parts and the idle remainder equal the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from joulebook import estimates
from joulebook.findings import Estimate, Finding, Severity

IDLE = "idle"
"""Name of the remainder."""

SUM_TOLERANCE = 1e-6
"""Jobs may claim more than there is by so much of the whole before that is an error [1]."""


@dataclass(frozen=True)
class Shares:
    """Energy by job.

    Parameters
    ----------
    frame
        One row a job and one named ``idle``: ``job``, ``weight``, ``energy_j``, ``share_ratio``. Energies add up to the
        whole.
    method
        What the split is proportional to.
    findings
        Jobs that claim more than there is.
    """

    frame: pl.DataFrame
    method: str
    findings: tuple[Finding, ...] = ()


def by_accelerator_time(jobs: pl.DataFrame, *, total_j: float, accelerators: int, window_s: float) -> Shares:
    """Split energy by accelerators times time.

    Parameters
    ----------
    jobs
        Columns ``job``, ``accelerators``, ``seconds``; several rows a job add up.
    total_j
        Energy of the node or rack [J].
    accelerators
        Accelerators there are.
    window_s
        Length of the time that the energy covers [s].

    Returns
    -------
    Shares
        Accelerator time that no job had is ``idle``.

    Raises
    ------
    ValueError
        A number is negative, or there is no accelerator time.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job": ["a", "b"], "accelerators": [4, 2], "seconds": [3600.0, 3600.0]})
    >>> by_accelerator_time(jobs, total_j=8000.0, accelerators=8, window_s=3600.0).frame["energy_j"].to_list()
    [4000.0, 2000.0, 2000.0]
    """
    weights = jobs.select("job", weight=pl.col("accelerators") * pl.col("seconds").cast(pl.Float64))
    return _split(weights, accelerators * window_s, total_j, "accelerators x time")


def by_measured_energy(jobs: pl.DataFrame, *, total_j: float, boards_j: float) -> Shares:
    """Split energy by what the boards of each job drew.

    Parameters
    ----------
    jobs
        Columns ``job``, ``energy_j`` (energy of the job's boards while it had them [J]).
    total_j
        Energy of the node or rack [J]; the rest of the node is split like the boards.
    boards_j
        Energy of all boards in the same time [J]; what no job drew is ``idle``.

    Returns
    -------
    Shares
        Energy of the node by job.

    Raises
    ------
    ValueError
        A number is negative, or the boards drew nothing.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job": ["a", "b"], "energy_j": [600.0, 300.0]})
    >>> by_measured_energy(jobs, total_j=1500.0, boards_j=1000.0).frame["energy_j"].to_list()
    [900.0, 450.0, 150.0]
    """
    weights = jobs.select("job", weight=pl.col("energy_j").cast(pl.Float64))
    return _split(weights, boards_j, total_j, "measured board energy")


def by_cpu_time(jobs: pl.DataFrame, *, total_j: float, cores: int, window_s: float) -> Shares:
    """Split energy of processors by CPU time, as control groups count it.

    Parameters
    ----------
    jobs
        Columns ``job``, ``cpu_s`` (CPU time [s]).
    total_j
        Energy of the processors [J].
    cores
        Logical CPUs there are.
    window_s
        Length of the time that the energy covers [s].

    Returns
    -------
    Shares
        CPU time that no job had is ``idle``.

    Raises
    ------
    ValueError
        A number is negative, or there is no CPU time.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job": ["a"], "cpu_s": [16000.0]})
    >>> by_cpu_time(jobs, total_j=1000.0, cores=64, window_s=1000.0).frame["share_ratio"].to_list()
    [0.25, 0.75]
    """
    weights = jobs.select("job", weight=pl.col("cpu_s").cast(pl.Float64))
    return _split(weights, cores * window_s, total_j, "CPU time")


def combined(*parts: Shares) -> Shares:
    """Add up splits of different parts of a node, e.g. boards by measured energy and processors by CPU time.

    Parameters
    ----------
    parts
        Splits of disjoint energies.

    Returns
    -------
    Shares
        Energies by job; weights are the energies.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job": ["a"], "cpu_s": [500.0]})
    >>> half = by_cpu_time(jobs, total_j=100.0, cores=1, window_s=1000.0)
    >>> combined(half, half).frame["energy_j"].to_list()
    [100.0, 100.0]
    """
    both = pl.concat([p.frame for p in parts]).group_by("job", maintain_order=True).agg(pl.col("energy_j").sum())
    order = both.with_columns(last=pl.col("job") == IDLE).sort("last", maintain_order=True).drop("last")
    total = float(order["energy_j"].sum())
    frame = order.select("job", weight="energy_j", energy_j="energy_j", share_ratio=_ratio(total))
    return Shares(frame, " + ".join(p.method for p in parts), tuple(f for p in parts for f in p.findings))


def with_overhead(shares: Shares, *, pue: float) -> Shares:
    """Scale a split to the facility: overhead goes with energy.

    Parameters
    ----------
    shares
        Split of IT energy.
    pue
        Facility energy over IT energy [1], at least 1.

    Returns
    -------
    Shares
        Split of facility energy.

    Raises
    ------
    ValueError
        The PUE is below 1.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job": ["a"], "energy_j": [100.0]})
    >>> with_overhead(by_measured_energy(jobs, total_j=100.0, boards_j=100.0), pue=1.5).frame["energy_j"].to_list()
    [150.0, 0.0]
    """
    if pue < 1:
        raise ValueError(f"pue is {pue}: must be at least 1")
    return Shares(
        shares.frame.with_columns(pl.col("energy_j") * pue), f"{shares.method}, x PUE {pue:g}", shares.findings
    )


def bounded(shares: Shares, *, total: Estimate, boards: Estimate, drawn: Mapping[str, Estimate]) -> pl.DataFrame:
    """Return a split by measured energy with the intervals that its energies have from those that it is made from.

    Parameters
    ----------
    shares
        The split.
    total, boards
        Energy of the node or rack and of all its boards [J].
    drawn
        Energy of the boards of each job [J].

    Returns
    -------
    polars.DataFrame
        The frame of the split with ``energy_lo`` and ``energy_hi`` [J]; null where jobs claim more than there is. How the
        rest of the machine is divided is a rule, which no interval holds.

    Examples
    --------
    >>> jobs = {"a": Estimate(600.0, 594.0, 606.0), "b": Estimate(400.0, 400.0, 400.0)}
    >>> frame = pl.DataFrame({"job": list(jobs), "energy_j": [e.value for e in jobs.values()]})
    >>> split = by_measured_energy(frame, total_j=2000.0, boards_j=1000.0)
    >>> bounded(split, total=Estimate(2000.0, 1980.0, 2020.0), boards=Estimate(1000.0), drawn=jobs)["energy_hi"].round(1).to_list()
    [1217.0, 808.0, 12.0]
    """
    ends: list[tuple[float | None, float | None]] = []
    for job in shares.frame["job"]:
        if job == IDLE:
            part = estimates.combine(lambda w, b, *d: w * max(b - sum(d), 0.0) / b, total, boards, *drawn.values())
        else:
            part = estimates.combine(lambda w, b, d: w * d / b, total, boards, drawn[job])
        ends.append((None, None) if shares.findings else (part.lo, part.hi))
    lo, hi = (pl.Series(e, dtype=pl.Float64) for e in zip(*ends, strict=True))
    return shares.frame.with_columns(energy_lo=lo, energy_hi=hi)


def _split(jobs: pl.DataFrame, whole: float, total_j: float, method: str) -> Shares:
    """Split in proportion to weights out of a whole; what no job claims is idle."""
    if not (whole > 0 and total_j >= 0):
        raise ValueError(f"nothing to split: {whole:g} of {method} and {total_j:g} J, both must be positive")
    held = jobs.group_by("job", maintain_order=True).agg(pl.col("weight").sum())
    if held.height and float(np.min(held["weight"].to_numpy())) < 0:
        raise ValueError(f"{method} of job {held.sort('weight')['job'][0]!r} is negative")
    if IDLE in held["job"]:
        raise ValueError(f"a job is named {IDLE!r}, which is the name of the remainder")
    claimed = float(held["weight"].sum())
    found: tuple[Finding, ...] = ()
    if claimed > whole * (1 + SUM_TOLERANCE):
        found = (Finding(
            "jobs-claim-too-much", Severity.WARNING, "jobs",
            f"Jobs claim {claimed / whole:.3f} of the {method} there is: they overlap or are counted twice. The "
            "energy is split in proportion, nothing is left idle.", {"claimed": claimed, "whole": whole},
        ),)  # fmt: skip
    base = max(whole, claimed)
    energies = held["weight"].to_numpy() / base * total_j
    rest = max(total_j - float(energies.sum()), 0.0) if claimed < whole else 0.0
    frame = pl.concat([
        held.with_columns(energy_j=pl.Series(energies, dtype=pl.Float64)),
        pl.DataFrame({"job": [IDLE], "weight": [max(whole - claimed, 0.0)], "energy_j": [rest]}),
    ])  # fmt: skip
    return Shares(frame.with_columns(share_ratio=_ratio(total_j)), method, found)


def _ratio(total_j: float) -> pl.Expr:
    return pl.col("energy_j") / total_j if total_j else pl.lit(None, pl.Float64)
