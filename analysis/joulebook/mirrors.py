"""Devices that say the same all along: two names of one sensor, whose sum would count it twice."""

from __future__ import annotations

import polars as pl

from joulebook import totals
from joulebook.findings import Finding, Severity

LEAST_READINGS = 10
LEAST_VALUES = 5
"""Two sensors that rest agree by chance; so many readings with so many values do not."""

MOST_DEVICES = 32
"""Pairs are compared one by one; a rack of cards has other doubts."""

_TELLING = ("energy_counter_j", "power_w")


def find(power: pl.DataFrame, *, scope: str) -> list[Finding]:
    """Return a finding for the devices whose readings are equal, stamp by stamp.

    Parameters
    ----------
    power
        ``device``, ``ts_utc`` and ``energy_counter_j`` [J] or ``power_w`` [W], in order of device and time.
    scope
        Their boundary, for the message.

    Examples
    --------
    >>> from datetime import datetime, timezone
    >>> rows = [(d, datetime(2026, 1, 1, 0, 0, i, tzinfo=timezone.utc), 40.0 + i) for d in ("cpu:0", "cpu:1") for i in range(12)]
    >>> frame = pl.DataFrame(rows, schema=["device", "ts_utc", "power_w"], orient="row")
    >>> [f.code for f in find(frame, scope="package")]
    ['mirrored-devices']
    """
    value = next((c for c in _TELLING if c in power.columns and power[c].null_count() < power.height), None)
    if value is None:
        return []
    told = power.select("device", "ts_utc", value)
    series = dict(totals.by_device(told.drop_nulls(value) if told[value].null_count() else told))
    if len(series) not in range(2, MOST_DEVICES + 1):
        return []
    groups: list[list[str]] = []
    for device in sorted(series):
        same = next((g for g in groups if _same(series[g[0]], series[device], value)), None)
        if same is None:
            groups.append([device])
        else:
            same.append(device)
    return [_finding(names, series[names[0]].height, scope) for names in groups if len(names) > 1]


def _finding(names: list[str], n: int, scope: str) -> Finding:
    return Finding(
        "mirrored-devices", Severity.WARNING, scope,
        f"{', '.join(names)} say the same in each of {n} readings: they are names of one sensor (dies of one processor, two exports), and "
        f"the sum at the {scope} counts it {len(names)} times. Read one of them: devices = ['{names[0]}'] in [[run]], or take the other "
        "columns out.", {"devices": names, "readings": n},
    )  # fmt: skip


def _same(one: pl.DataFrame, other: pl.DataFrame, value: str) -> bool:
    if one.height < LEAST_READINGS or one.height != other.height or not one["ts_utc"].equals(other["ts_utc"]):
        return False
    return one[value].equals(other[value]) and one[value].head(10_000).n_unique() >= LEAST_VALUES
