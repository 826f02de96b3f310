"""Energy of a window of which readings of power leave a part open, where counters beside them know it."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from joulebook.energy_sum import Energy
from joulebook.findings import Finding, Severity
from joulebook.wording import lasting

LEAST_MORE = 1e-3
"""A counter is asked where it speaks for so much more of the window."""


def counted(by_power: Energy, by_counter: Energy) -> Energy:
    """Return the energy by counters where powers of the same log leave more open, else that by powers.

    A counter goes on while nobody reads it. It is believed where what it tells lies within what the powers allow: between
    the energy of the time that they cover and that of the highest power in the time that they do not.

    Parameters
    ----------
    by_power, by_counter
        The energy of one window by the two quantities of the same devices.

    Returns
    -------
    Energy
        The one that is known better; that by counters with the highest power that was read, and a finding.
    """
    ours, theirs = by_power.frame.row(0, named=True), by_counter.frame.row(0, named=True)
    if by_counter.frame["device"].sort().to_list() != by_power.frame["device"].sort().to_list():
        return by_power
    if theirs["energy_j"] is None or theirs["lo"] is None or theirs["hi"] is None:
        return by_power
    if ours["energy_j"] is not None and not _knows_more(ours, theirs):
        return by_power
    open_s = (1 - ours["coverage_ratio"]) * theirs["covered_s"]
    why = (
        "its powers cannot speak for the load"
        if ours["energy_j"] is None
        else f"its powers leave {lasting(open_s)} open"
    )
    method = f"{theirs['method']}, as {why}"
    peaks = by_power.frame.select("device", peak="peak_power_w")
    frame = by_counter.frame.join(peaks, on="device", how="left", maintain_order="left")
    frame = frame.with_columns(pl.col("peak").alias("peak_power_w"), pl.lit(method).alias("method")).drop("peak")
    found = Finding(
        "counter-speaks-for-gaps", Severity.NOTE, "all devices",
        f"The energy is that of the counter in the log, as {why}: a counter goes on while it is not read.",
        {"by_power_j": ours["energy_j"], "by_counter_j": theirs["energy_j"], "open_s": open_s},
    )  # fmt: skip
    total, mean = (replace(e, method=method) for e in (by_counter.total, by_counter.mean_power))
    return replace(by_counter, total=total, mean_power=mean, frame=frame, findings=(*by_counter.findings, found))


def _knows_more(ours: dict[str, float], theirs: dict[str, float]) -> bool:
    if theirs["coverage_ratio"] < ours["coverage_ratio"] + LEAST_MORE or ours["hi"] is None:
        return False
    half_j = (theirs["hi"] - theirs["lo"]) / 2
    allowed = ours["lo"] - half_j <= theirs["energy_j"] <= ours["hi"] + half_j
    return allowed and theirs["hi"] - theirs["lo"] < ours["hi"] - ours["lo"]
