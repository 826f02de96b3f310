"""From the energy of a scope to the facility's energy, its carbon and its cost, by constants or by hourly curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from joulebook import estimates
from joulebook.findings import Estimate, Finding, Severity
from joulebook.schema import UTC

J_PER_KWH = 3.6e6

SHIFTED_SCHEMA = {
    "shift_hours": pl.Float64, "value": pl.Float64, "lo": pl.Float64, "hi": pl.Float64, "change_ratio": pl.Float64,
    "reason": pl.String,
}  # fmt: skip


@dataclass(frozen=True)
class Priced:
    """An amount by a curve.

    Parameters
    ----------
    total
        Sum over the bins, in the curve's unit times kWh.
    frame
        ``start_utc``, ``end_utc``, ``energy_j``, ``factor`` (null where the curve says nothing), ``amount``.
    findings
        What the reader should know.
    """

    total: Estimate
    frame: pl.DataFrame
    findings: tuple[Finding, ...]


def facility_energy(it_energy: Estimate, pue: float | Estimate) -> Estimate:
    """Return the energy of the facility: that of the IT equipment times PUE [J].

    Parameters
    ----------
    it_energy
        Energy of the IT equipment [J].
    pue
        Facility energy / IT energy, with an interval where it has one.

    Raises
    ------
    ValueError
        PUE is below 1: the facility contains its IT equipment.

    Examples
    --------
    >>> round(facility_energy(Estimate(1.743 * 3.6e6), 1.3).value / 3.6e6, 3)
    2.266
    """
    given = pue if isinstance(pue, Estimate) else estimates.exactly(pue)
    if given.value is not None and given.value < 1:
        raise ValueError(f"pue: {given.value} is below 1; it is facility energy / IT energy")
    return estimates.combine(lambda e, p: e * p, it_energy, given, unit="J", method=f"PUE {given.value:g} · IT energy")


def per_kwh(energy: Estimate, factor: float | Estimate, *, unit: str = "kg") -> Estimate:
    """Return energy times a constant factor per kWh: carbon by grid intensity, or cost by tariff.

    Parameters
    ----------
    energy
        Energy at the facility [J].
    factor
        Amount per kWh, e.g. kg CO2e/kWh.
    unit
        Of the amount.

    Examples
    --------
    >>> round(per_kwh(Estimate(1.743 * 3.6e6), 0.581).value, 3)
    1.013
    """
    given = factor if isinstance(factor, Estimate) else estimates.exactly(factor)
    return estimates.combine(
        lambda e, f: e / J_PER_KWH * f, energy, given, unit=unit, method=f"energy · {given.value:g} {unit}/kWh"
    )


def by_curve(bins: pl.DataFrame, curve: pl.DataFrame, *, unit: str = "kg") -> Priced:
    """Return the amount for an energy by bins of time under a curve of factors.

    Parameters
    ----------
    bins
        ``start_utc``, ``end_utc``, ``energy_j`` and, optionally, ``lo`` and ``hi`` [J], as ``energy.by_bin`` returns
        them. Energy is spread evenly within a bin where the curve changes inside it.
    curve
        ``start_utc`` and ``value`` (per kWh), each valid until the next; the last for as long as the usual step.
    unit
        Of the amount.

    Returns
    -------
    Priced
        Total and the pieces it is made of. The total is refused where the curve says nothing about some energy.

    Raises
    ------
    ValueError
        A column is missing, or the curve is empty.

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> t = [datetime(2026, 1, 1, h, tzinfo=timezone.utc) for h in range(3)]
    >>> bins = pl.DataFrame({"start_utc": t[:2], "end_utc": t[1:], "energy_j": [3.6e6, 7.2e6]})
    >>> curve = pl.DataFrame({"start_utc": t[:2], "value": [0.5, 0.25]})
    >>> round(by_curve(bins, curve).total.value, 9)
    1.0
    """
    pieces = _pieces(_bins(bins), _curve(curve))
    bare = pieces.filter(pl.col("factor").is_null() & (pl.col("energy_j") != 0))
    frame = pieces.select("start_utc", "end_utc", "energy_j", "factor", pl.col("amount"))
    if bare.height:
        hours = (
            float(bare.select((pl.col("end_utc") - pl.col("start_utc")).dt.total_microseconds().sum()).item()) / 3.6e9
        )
        reason = f"the curve says nothing about {hours:.4g} h from {bare['start_utc'][0]:%Y-%m-%dT%H:%M}Z"
        finding = Finding(
            "curve-too-short", Severity.ERROR, "curve", f"No amount is given: {reason}.", {"hours": hours}
        )
        return Priced(Estimate.refused(reason, unit=unit, method="by curve"), frame, (finding,))
    factor = pl.col("factor").fill_null(0.0) / J_PER_KWH
    value, lo, hi = pieces.select(
        pl.col("amount").sum(), *((pl.col(c) * factor).sum().alias(c) for c in ("lo", "hi"))
    ).row(0)  # fmt: skip
    if pieces["lo"].null_count() or pieces["hi"].null_count():
        lo = hi = None
    return Priced(Estimate(value, lo, hi, unit=unit, method="by curve"), frame, ())


def _require(frame: pl.DataFrame, name: str, *columns: str) -> None:
    missing = [c for c in columns if c not in frame.columns]
    if missing:
        raise ValueError(f"{name}: no column {', '.join(missing)}; it has {', '.join(frame.columns)}")


def _bins(bins: pl.DataFrame) -> pl.DataFrame:
    _require(bins, "bins", "start_utc", "end_utc", "energy_j")
    ends = [(pl.col(c) if c in bins.columns else pl.lit(None)).cast(pl.Float64).alias(c) for c in ("lo", "hi")]
    times = [pl.col(c).cast(UTC) for c in ("start_utc", "end_utc")]
    return bins.select(*times, pl.col("energy_j").cast(pl.Float64), *ends).drop_nulls("energy_j").sort("start_utc")


def _curve(curve: pl.DataFrame) -> pl.DataFrame:
    _require(curve, "curve", "start_utc", "value")
    frame = curve.select(pl.col("start_utc").cast(UTC), pl.col("value").cast(pl.Float64)).drop_nulls("start_utc")
    frame = frame.sort("start_utc").unique("start_utc", keep="first", maintain_order=True)
    if frame.is_empty():
        raise ValueError("curve: it has no rows; at least one start_utc with a value is needed")
    step = frame["start_utc"].diff().median()
    until = pl.col("start_utc") + pl.lit(
        step if step is not None else pl.Series([3600_000_000]).cast(pl.Duration("us"))[0]
    )
    return frame.with_columns(pl.col("start_utc").shift(-1).fill_null(until).alias("until_utc"))


def _pieces(bins: pl.DataFrame, curve: pl.DataFrame) -> pl.DataFrame:
    """Return the bins cut where the curve changes, each piece with its factor and its share of energy."""
    cuts = pl.concat([bins["start_utc"], bins["end_utc"], curve["start_utc"], curve["until_utc"]]).unique().sort()
    grid = pl.DataFrame({"start_utc": cuts}).with_columns(pl.col("start_utc").shift(-1).alias("end_utc")).drop_nulls()
    named = bins.rename({"start_utc": "bin_start", "end_utc": "bin_end"})
    grid = grid.join_asof(named, left_on="start_utc", right_on="bin_start").filter(
        pl.col("start_utc") < pl.col("bin_end")
    )
    grid = grid.join_asof(curve.rename({"start_utc": "from_utc"}), left_on="start_utc", right_on="from_utc")
    share = (pl.col("end_utc") - pl.col("start_utc")) / (pl.col("bin_end") - pl.col("bin_start"))
    factor = pl.when(pl.col("start_utc") < pl.col("until_utc")).then("value")
    grid = grid.with_columns(*(pl.col(c) * share for c in ("energy_j", "lo", "hi")), factor.alias("factor"))
    return grid.with_columns((pl.col("energy_j") / J_PER_KWH * pl.col("factor")).alias("amount"))


def shifted(bins: pl.DataFrame, curve: pl.DataFrame, *, hours: Sequence[float]) -> pl.DataFrame:
    """Return what the same load would have come to, had it run some hours later or earlier.

    Parameters
    ----------
    bins, curve
        As for ``by_curve``.
    hours
        Shifts [h]; positive is later.

    Returns
    -------
    pl.DataFrame
        ``shift_hours``, ``value`` with ``lo`` and ``hi`` where the bins have them, ``change_ratio`` (against no shift,
        −1 to …), ``reason`` where the curve does not reach.

    Raises
    ------
    ValueError
        As ``by_curve``.

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> t = [datetime(2026, 1, 1, h, tzinfo=timezone.utc) for h in range(3)]
    >>> bins = pl.DataFrame({"start_utc": t[:1], "end_utc": t[1:2], "energy_j": [3.6e6]})
    >>> shifted(bins, pl.DataFrame({"start_utc": t, "value": [0.5, 0.25, 0.3]}), hours=[0, 1])["change_ratio"].to_list()
    [0.0, -0.5]
    """
    now = by_curve(bins, curve).total
    rows = []
    for hour in hours:
        by = pl.duration(microseconds=round(hour * 3.6e9))
        then = by_curve(bins.with_columns(pl.col("start_utc") + by, pl.col("end_utc") + by), curve).total
        change = None if then.value is None or not now.value else then.value / now.value - 1
        rows.append((float(hour), then.value, then.lo, then.hi, change, then.reason))
    return pl.DataFrame(rows, schema=SHIFTED_SCHEMA, orient="row")
