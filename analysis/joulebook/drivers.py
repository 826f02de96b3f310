"""What power varies with: the share of its variance that goes with each logged quantity, and what none explains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from joulebook import serial, totals
from joulebook.findings import Estimate, Finding, Severity

Array = npt.NDArray[np.float64]

BIN_S: Final = 10.0
"""Averaging window [s]: longer than the lag of power and temperature sensors of a board."""

MAX_DRIVERS: Final = 12
"""Drivers that all subsets are tried of; there are 2 to that power."""

MIN_N_EFF_PER_DRIVER: Final = 10.0
"""Independent bins needed for each driver."""

MAX_INFLATION: Final = 30.0
"""Variance inflation above which two drivers cannot be told apart."""

MIN_EXPLAINED_RATIO: Final = 0.1
"""Explained share below which no driver explains the variance."""

RESAMPLES: Final = 500
"""Moving-block resamples for the intervals."""

DOWNSTREAM: Final = ("temperature_c", "memory_temperature_c", "fan_ratio", "fan_speed_rpm")
"""Quantities that power itself changes."""


@dataclass(frozen=True)
class Drivers:
    """Shares of the variance of power.

    Parameters
    ----------
    frame
        One row a driver: ``driver``, ``share_ratio``, ``share_lo``, ``share_hi`` (of all variance), ``inflation``.
    explained
        Share that all drivers explain together.
    unexplained
        The rest.
    findings
        How to read it, or why there is none.
    """

    frame: pl.DataFrame
    explained: Estimate
    unexplained: Estimate
    findings: tuple[Finding, ...] = field(default=())


def explained_shares(correlation: npt.ArrayLike) -> Array:
    """Split the explained variance among drivers, averaged over all orders of entering them (LMG).

    Parameters
    ----------
    correlation
        Correlation matrices, target first: shape ``(..., p + 1, p + 1)``.

    Returns
    -------
    numpy.ndarray
        Shares of the variance of the target, shape ``(..., p)``; they add up to the explained ratio.

    References
    ----------
    Grömping, J. Stat. Softw. 17(1) (2006), doi:10.18637/jss.v017.i01.

    Examples
    --------
    >>> explained_shares([[1.0, 0.6, 0.5], [0.6, 1.0, 0.0], [0.5, 0.0, 1.0]]).round(2).tolist()
    [0.36, 0.25]
    """
    matrix = np.asarray(correlation, dtype=np.float64)
    p = matrix.shape[-1] - 1
    explained: dict[tuple[int, ...], Array] = {(): np.zeros(matrix.shape[:-2])}
    for size in range(1, p + 1):
        for subset in combinations(range(p), size):
            index = np.array(subset) + 1
            inner = matrix[..., index[:, None], index[None, :]]
            with_target = matrix[..., 0, index]
            weights = np.linalg.solve(inner, with_target[..., None])[..., 0]
            explained[subset] = np.sum(weights * with_target, axis=-1)
    shares = np.zeros((*matrix.shape[:-2], p))
    for subset, value in explained.items():
        weight = (
            math.factorial(len(subset)) * math.factorial(p - len(subset) - 1) / math.factorial(p)
            if len(subset) < p
            else 0
        )
        for driver in range(p):
            if driver not in subset:
                shares[..., driver] += weight * (explained[tuple(sorted((*subset, driver)))] - value)
    return shares


def _binned(readings: pl.DataFrame, target: str, names: Sequence[str], bin_s: float) -> Array:
    """Return the bin means of target and drivers, bins with a missing one left out; devices are put end to end."""
    every = f"{round(bin_s * 1e6)}us"
    devices = [rows for _, rows in totals.by_device(readings)] if "device" in readings.columns else [readings]
    means = [
        rows.select("ts_utc", target, *names).group_by_dynamic("ts_utc", every=every).agg(pl.col(target, *names).mean())
        for rows in totals.in_time(devices)
    ]
    whole = pl.concat([m.select(target, *names) for m in means]).drop_nulls()
    return np.asarray(whole.to_numpy(), dtype=np.float64)


def _correlation_time(values: Array) -> int:
    """Return the lag at which the autocorrelation falls below 1/e [bins]."""
    reach = min(values.size // 4, 500)
    low = np.flatnonzero(serial.autocorrelation(values, reach) < math.exp(-1.0))
    return int(low[0]) if low.size else reach


def _resampled(table: Array, seed: int) -> Array:
    """Return correlation matrices of moving-block resamples."""
    n = table.shape[0]
    block = int(np.clip(2 * max(_correlation_time(table[:, k]) for k in range(table.shape[1])), 1, max(n // 5, 1)))
    rng = np.random.default_rng(seed)
    starts = rng.integers(0, n - block + 1, size=(RESAMPLES, math.ceil(n / block)))
    offsets = np.arange(block)
    out = [np.corrcoef(table[(row[:, None] + offsets).ravel()[:n]], rowvar=False) for row in starts]
    matrices = np.array(out)
    return np.asarray(matrices[np.isfinite(matrices).all(axis=(1, 2))])


def _refused(reason: str, n: int) -> Drivers:
    estimate = Estimate.refused(reason, n=n, method="LMG")
    columns = ("share_ratio", "share_lo", "share_hi", "inflation")
    frame = pl.DataFrame(schema={"driver": pl.String, **{c: pl.Float64 for c in columns}})
    finding = Finding("drivers-unknown", Severity.NOTE, "power", f"What power varies with is not known: {reason}.")
    return Drivers(frame, estimate, estimate, (finding,))


def _problem(table: Array, names: Sequence[str]) -> tuple[str, Array]:
    """Return why the data cannot answer, '' where they can, and the variance inflation of each driver."""
    p = len(names)
    none = np.full(p, math.nan)
    if table.shape[0] < MIN_N_EFF_PER_DRIVER * p:
        return f"{table.shape[0]} bins for {p} drivers, {MIN_N_EFF_PER_DRIVER:.0f} a driver are needed", none
    constant = [name for name, values in zip(names, table[:, 1:].T, strict=True) if np.ptp(values) == 0.0]
    if np.ptp(table[:, 0]) == 0.0 or constant:
        return f"{', '.join(constant) or 'power'} does not vary", none
    n_eff = serial.effective_n(table[:, 0])
    if n_eff < MIN_N_EFF_PER_DRIVER * p:
        return (
            f"{table.shape[0]} bins are worth {n_eff:.0f} independent ones, {10 * p} are needed for {p} drivers",
            none,
        )
    inner = np.corrcoef(table[:, 1:], rowvar=False).reshape(p, p)
    inflation = (
        np.diag(np.linalg.pinv(inner, hermitian=True))
        if np.linalg.det(inner) < 1e-12
        else np.diag(np.linalg.inv(inner))
    )
    singular = np.linalg.det(inner) < 1e-12
    if singular or inflation.max() > MAX_INFLATION:
        off = np.abs(inner - np.eye(p))
        a, b = np.unravel_index(int(np.argmax(off)), off.shape)
        return f"{names[int(a)]} and {names[int(b)]} move together and cannot be told apart: leave one out", inflation
    return "", inflation


def explain(
    readings: pl.DataFrame, *, drivers: Sequence[str], target: str = "power_w", bin_s: float = BIN_S, seed: int = 0
) -> Drivers:
    """Split the variance of power among quantities logged beside it.

    Parameters
    ----------
    readings
        ``ts_utc``, the target and the drivers, perhaps ``device``; best of one stable segment.
    drivers
        Names of the driver columns, at most 12.
    target
        Name of the explained column.
    bin_s
        Averaging window [s].
    seed
        Seed of the resampling.

    Returns
    -------
    Drivers
        Shares with 95 % intervals; refused where drivers cannot be told apart or explain less than a tenth.

    Raises
    ------
    ValueError
        Where a column is missing, or there are no drivers or too many.

    References
    ----------
    Grömping, J. Stat. Softw. 17(1) (2006), doi:10.18637/jss.v017.i01.

    Examples
    --------
    >>> from datetime import UTC, datetime, timedelta
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> load, heat = rng.uniform(0.5, 1.0, 900), rng.normal(60.0, 2.0, 900)
    >>> stamps = [datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=10 * s) for s in range(900)]
    >>> watts = 100.0 + 400.0 * load + rng.normal(0.0, 20.0, 900)
    >>> table = pl.DataFrame({"ts_utc": stamps, "power_w": watts, "load": load, "heat_c": heat})
    >>> explain(table, drivers=["load", "heat_c"]).frame["share_ratio"].round(1).to_list()
    [0.9, 0.0]
    """
    missing = [name for name in ("ts_utc", target, *drivers) if name not in readings.columns]
    if missing:
        raise ValueError(f"readings: column {', '.join(missing)} is missing; there are {', '.join(readings.columns)}")
    if not 1 <= len(drivers) <= MAX_DRIVERS:
        raise ValueError(f"drivers: {len(drivers)} are given; 1 to {MAX_DRIVERS} are allowed")
    table = _binned(readings, target, drivers, bin_s)
    n = int(table.shape[0])
    problem, inflation = _problem(table, drivers)
    if problem:
        return _refused(problem, n)
    shares = explained_shares(np.corrcoef(table, rowvar=False))
    total = float(shares.sum())
    if total < MIN_EXPLAINED_RATIO:
        return _refused(f"all drivers together explain {total:.0%} of the variance", n)
    sampled = explained_shares(_resampled(table, seed))
    lo, hi = np.quantile(sampled, (0.025, 0.975), axis=0)
    total_lo, total_hi = (float(q) for q in np.quantile(sampled.sum(axis=-1), (0.025, 0.975)))
    frame = pl.DataFrame(
        {"driver": list(drivers), "share_ratio": shares, "share_lo": lo, "share_hi": hi, "inflation": inflation}
    )
    explained = Estimate(total, total_lo, total_hi, n=n, method="LMG, moving-block bootstrap")
    unexplained = Estimate(1.0 - total, 1.0 - total_hi, 1.0 - total_lo, n=n, method=explained.method)
    return Drivers(frame, explained, unexplained, (_caution(drivers),))


def _caution(drivers: Sequence[str]) -> Finding:
    caused = [name for name in drivers if name in DOWNSTREAM]
    text = "Shares are associated variance, not causes."
    if caused:
        text += f" Power itself changes {', '.join(caused)}."
    return Finding("shares-are-not-causes", Severity.NOTE, "power", text, {"downstream": caused})
