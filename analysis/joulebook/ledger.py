"""Estimates on the back of an envelope for a cluster, and one node's energy split between the jobs that shared it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from joulebook import carbon
from joulebook.findings import Estimate

DAY_S = 86400.0


@dataclass(frozen=True)
class Cluster:
    """What a cluster draws and yields, from nameplates.

    Parameters
    ----------
    it_power, facility_power
        Power of the nodes and of the facility [W].
    energy_per_day, energy
        Facility energy a day and over all days [J].
    flops
        Model FLOP/s reached.
    flops_per_token
        Model FLOP a token.
    tokens_per_s, tokens_per_j
        Throughput, and tokens per joule at the facility.
    frame
        The same as ``quantity``, ``value``, ``unit``.
    """

    it_power: Estimate
    facility_power: Estimate
    energy_per_day: Estimate
    energy: Estimate
    flops: Estimate
    flops_per_token: Estimate
    tokens_per_s: Estimate
    tokens_per_j: Estimate
    frame: pl.DataFrame


def cluster(
    *,
    cards: int,
    node_power_per_card_w: float,
    pue: float,
    days: float,
    peak_flops_per_card: float,
    mfu_ratio: float,
    flops_per_token: float,
) -> Cluster:
    """Return what a cluster draws and yields.

    Parameters
    ----------
    cards
        Accelerators.
    node_power_per_card_w
        Power of a node divided by its cards [W]; about 1.3 × the card's own.
    pue
        Facility energy / IT energy.
    days
        Length of the run [d].
    peak_flops_per_card
        Peak rate of a card [FLOP/s].
    mfu_ratio
        Share of the peak that the model's own arithmetic reaches.
    flops_per_token
        As ``efficiency.flops_per_token`` gives it.

    Raises
    ------
    ValueError
        PUE is below 1, or another number is not positive.

    Examples
    --------
    >>> c = cluster(cards=1000, node_power_per_card_w=1000, pue=1.2, days=30, peak_flops_per_card=400e12, mfu_ratio=0.4,
    ...             flops_per_token=6 * 70e9)
    >>> round(c.tokens_per_s.value), round(c.tokens_per_j.value, 3), round(c.energy.value / 3.6e9)
    (380952, 0.317, 864)
    """
    given = {
        "cards": cards, "node_power_per_card_w": node_power_per_card_w, "days": days,
        "peak_flops_per_card": peak_flops_per_card, "mfu_ratio": mfu_ratio, "flops_per_token": flops_per_token,
    }  # fmt: skip
    for name, value in given.items():
        if not value > 0:
            raise ValueError(f"{name}: {value} is not positive")
    how = "from nameplates"
    it_w = cards * node_power_per_card_w
    facility = carbon.facility_energy(Estimate(it_w * DAY_S, unit="J"), pue).value
    assert facility is not None
    flops = cards * peak_flops_per_card * mfu_ratio
    tokens_per_s = flops / flops_per_token
    values = {
        "it_power": (it_w, "W"), "facility_power": (facility / DAY_S, "W"), "energy_per_day": (facility, "J"),
        "energy": (facility * days, "J"), "flops": (flops, "1/s"), "flops_per_token": (flops_per_token, ""),
        "tokens_per_s": (tokens_per_s, "1/s"), "tokens_per_j": (tokens_per_s * DAY_S / facility, "1/J"),
    }  # fmt: skip
    rows = [(name, value, unit) for name, (value, unit) in values.items()]
    frame = pl.DataFrame(rows, schema={"quantity": pl.String, "value": pl.Float64, "unit": pl.String}, orient="row")
    made = {name: Estimate(value, unit=unit, method=how) for name, (value, unit) in values.items()}
    return Cluster(frame=frame, **made)


def split(energy: Estimate, jobs: pl.DataFrame, *, capacity_s: float) -> pl.DataFrame:
    """Return one node's energy split between jobs by their device-seconds, with the idle remainder as its own line.

    Parameters
    ----------
    energy
        Energy of the node [J].
    jobs
        ``job`` and ``device_s``: accelerators times the time they were held [s].
    capacity_s
        Accelerators of the node times the time that the energy covers [s].

    Returns
    -------
    pl.DataFrame
        ``job`` (``'idle'`` = held by none), ``share_ratio``, ``energy_j``, ``lo``, ``hi`` [J]; they sum to the node's.

    Raises
    ------
    ValueError
        Jobs held more than there is, a column is missing, or the energy was refused.

    Examples
    --------
    >>> jobs = pl.DataFrame({"job": ["a", "b"], "device_s": [300.0, 500.0]})
    >>> split(Estimate(1000.0, 990.0, 1010.0), jobs, capacity_s=1000.0)["energy_j"].round(6).to_list()
    [300.0, 500.0, 200.0]
    """
    missing = [c for c in ("job", "device_s") if c not in jobs.columns]
    if missing:
        raise ValueError(f"jobs: no column {', '.join(missing)}; it has {', '.join(jobs.columns)}")
    if energy.value is None:
        raise ValueError(f"energy: it was refused ({energy.reason}); a split needs a value")
    held = float(jobs["device_s"].sum())
    if held > capacity_s * (1 + 1e-9):
        raise ValueError(f"jobs: they hold {held:g} device-seconds of {capacity_s:g}; no device is held twice")
    rest = pl.DataFrame({"job": ["idle"], "device_s": [max(0.0, capacity_s - held)]})
    frame = pl.concat([jobs.select("job", pl.col("device_s").cast(pl.Float64)), rest])
    share = pl.col("device_s") / capacity_s
    ends = [pl.lit(e, dtype=pl.Float64) for e in (energy.value, energy.lo, energy.hi)]
    named = zip(ends, ("energy_j", "lo", "hi"), strict=True)
    return frame.select("job", share.alias("share_ratio"), *((share * e).alias(c) for e, c in named))
