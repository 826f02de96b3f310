"""What the rejects of a whole source mean: devices that give no power at all, rows whose stamps name no time."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import polars as pl

from joulebook.findings import Finding, Severity
from joulebook.wording import counted
from joulebook_pipelines import tally
from joulebook_pipelines.logs.contract import Channel

WITHOUT_POWER, NO_SUCH_TIME, ZERO_DURATION = "device-without-power", "no-such-time", "zero-duration"
SECOND = "several-under-one-time"
TOO_LARGE = "powers-too-large"
_SECOND = ("second-under-one-stamp", "second-of-its-device")

_POWER_COLUMN = re.compile(r"(?i)pow|pwr|watt|energy|consum|totec|leistung|\[\w?w\]|\(\w?w\)")
"""Titles of columns that hold power or energy."""

_ABSENT = ("no-value", "empty", "not-a-number")
_BEYOND = ("beyond-physical", "beyond-limit")
_RULES = (*_ABSENT, *_BEYOND, "error-code", "zero-power", "negative-power")
"""Rules that say why a cell of power is none; what sets energies of runs aside is told where that is done."""

MANY = 10
"""So many powers beyond what a device can draw are told of, where others are kept; fewer are glitches."""

MOST_NAMED = 8
"""Devices of one kind that are named one by one; of more, the number is told."""


INSIDE_MS, FEWEST_ROUNDS, MOST_OF_ROUND, EXACT = 50, 10, 16, 0.02
"""Steps inside a round of lines are shorter [ms]; how many rounds must be seen, of how many lines at most, and how exact their number."""

APART = 5.0
"""Steps between rounds are so many times as long as those inside."""


def rounds(name: str, steps: pl.DataFrame) -> list[Finding]:
    """Return the doubt whether readings of one device are of several, where they come so many at a time, round after round.

    A logger that is faster than its stamps does not hit the same number each time.

    Parameters
    ----------
    name
        The file.
    steps
        ``device, step_ms, count``: how often each step between stamps occurs.
    """
    if steps["device"].n_unique() != 1:
        return []
    inside, between = steps.filter(pl.col("step_ms") < INSIDE_MS), steps.filter(pl.col("step_ms") >= INSIDE_MS)
    of_rounds = int(between["count"].sum()) + 1
    if inside.is_empty() or of_rounds < FEWEST_ROUNDS:
        return []
    each = int(inside["count"].sum()) / of_rounds
    inside_s, between_s = (tally.median_s(some.sort("step_ms")) or 0.0 for some in (inside, between))
    lines, apart = round(each) + 1, between_s >= APART * max(inside_s, 1e-3)
    if not (1 < lines <= MOST_OF_ROUND and apart and abs(each - (lines - 1)) <= EXACT * (lines - 1)):
        return []
    device = str(steps["device"][0])
    return [Finding(
        "lines-in-rounds", Severity.WARNING, name,
        f"The readings of {device!r} come {lines} at a time, round after round. If they are of {lines} devices in turn that no column "
        "and no word tells apart, their power is the sum of a round, and what was read is the mean of them: log again with the number "
        'of the device in each line. If they are of one, say so: device = "…" in this [[source]].', {"lines": lines},
    )]  # fmt: skip


def about(
    name: str,
    rejects: pl.DataFrame,
    *,
    channels: Mapping[str, Channel],
    powered: Collection[str],
    told: Collection[str],
    zone: str,
) -> list[Finding]:
    """Return what the rejects of a source say about the whole of it.

    Parameters
    ----------
    name
        The file.
    rejects
        One row per ``device, column_name, rule``: ``n, first_line, raw`` of the first one.
    channels
        What is known of the devices.
    powered
        Devices with at least one power or energy that was kept.
    told
        Devices that another finding of the source is about.
    zone
        Zone of the stamps, ``""`` where they have their own.
    """
    return [
        *_unpowered(name, rejects, channels, powered, told),
        *_too_large(name, rejects, powered),
        *_untimed(name, rejects, zone),
        *_momentary(name, rejects),
        *_second(name, rejects),
    ]


def _unpowered(
    name: str,
    rejects: pl.DataFrame,
    channels: Mapping[str, Channel],
    powered: Collection[str],
    told: Collection[str],
) -> list[Finding]:
    scopes = {d: c.scope for d, c in channels.items()}
    # A device that never gave anything has no channel; a part of another is named behind a slash.
    scopes |= {d: "?" for d in rejects["device"].drop_nulls().unique() if d not in scopes and "/" not in d}
    silent = [d for d, scope in scopes.items() if scope not in {"", "part"} and d not in powered and d not in told]
    power = pl.col("column_name").str.contains(_POWER_COLUMN.pattern)
    mine = rejects.filter(pl.col("device").is_in(silent) & pl.col("rule").is_in(list(_RULES)) & power)
    most = mine.sort(pl.col("n"), pl.col("first_line"), descending=[True, False]).unique("device", keep="first")
    alone = not any(channels[d].scope not in {"", "part"} for d in powered if d in channels)
    found = []
    for rows in most.sort("first_line").partition_by("rule", maintain_order=True):
        devices = sorted(rows["device"])
        shown = ", ".join(devices) if len(devices) <= MOST_NAMED else counted(len(devices), "device")
        first = rows.row(0, named=True)
        found.append(Finding(
            WITHOUT_POWER, Severity.ERROR if alone else Severity.WARNING, name,
            f"{shown}: {_why(first)} No energy of {'it' if len(devices) == 1 else 'them'} is given, and no total holds "
            f"{'it' if len(devices) == 1 else 'them'}.",
            {"devices": devices, "rule": first["rule"], "cells": int(rows["n"].sum()), "line": first["first_line"], "raw": first["raw"]},
        ))  # fmt: skip
    return found


def _too_large(name: str, rejects: pl.DataFrame, powered: Collection[str]) -> list[Finding]:
    """Say of devices with powers that many more lie beyond what they can draw: one is a glitch, many may be another unit."""
    power = pl.col("column_name").str.contains(_POWER_COLUMN.pattern)
    large = rejects.filter(pl.col("device").is_in(list(powered)) & pl.col("rule").is_in(_BEYOND) & power).sort(
        "first_line"
    )
    many = large.group_by("device", maintain_order=True).agg(pl.col("n").sum(), pl.col("first_line", "raw").first())
    many = many.filter(pl.col("n") >= MANY)
    if many.is_empty():
        return []
    devices, first, cells = many["device"].sort().to_list(), many.row(0, named=True), int(many["n"].sum())
    shown = ", ".join(devices) if len(devices) <= MOST_NAMED else counted(len(devices), "device")
    return [Finding(
        TOO_LARGE, Severity.WARNING, name,
        f"{counted(cells, 'power')} of {shown} set aside: beyond what such a device can draw (first line {first['first_line']}: "
        f"{str(first['raw']).strip()!r}). Error codes, or another unit than before.{_smaller(str(first['raw']).strip())} They are in no "
        "number. If the unit changed there, put the lines from there on into a file of their own, with its units in [[source]].",
        {"devices": devices, "cells": cells, "line": first["first_line"], "raw": first["raw"]},
    )]  # fmt: skip


def _smaller(raw: str) -> str:
    number = re.match(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", raw)
    if not number:
        return ""
    return f" A unit a thousand times smaller would make it {float(number[0]) / 1000:g}; nothing was changed."


def _why(row: Mapping[str, object]) -> str:
    """Say in a sentence why no cell is a power, and what would help."""
    rule, raw = str(row["rule"]), str(row["raw"]).strip()
    where = f"(first line {row['first_line']}: {raw!r})"
    if rule in _ABSENT:
        return f"no line holds a power {where}. The device, its driver or the logger's rights cannot give one, or its cells are damaged."
    if rule == "zero-power":
        return f"every power is exactly 0 {where}, which nothing that is switched on draws: they are no measurements; look at the driver."
    if rule == "negative-power":
        return f"every power is negative {where}: a consumer never gives power back."
    return f"every power lies beyond what such a device can draw {where}: an error code or a wrong unit.{_smaller(raw)}"


def _untimed(name: str, rejects: pl.DataFrame, zone: str) -> list[Finding]:
    mine = rejects.filter(pl.col("rule") == NO_SUCH_TIME).sort("first_line")
    if mine.is_empty():
        return []
    first, rows = mine.row(0, named=True), max(mine["n"].to_list())
    column = f" in {first['column_name']}" if first["column_name"] else ""
    zoned = (
        f" If it is the hour that summer time skips, the log does not keep the time of {zone}: correct timezone."
        if zone not in {"", "UTC", "Etc/UTC"}
        else ""
    )
    return [Finding(
        NO_SUCH_TIME, Severity.WARNING, name,
        f"{counted(rows, 'row')} set aside: what stands{column} names no time (first line "
        f"{first['first_line']}: {str(first['raw'])[:60]!r}). What they measured is in no number.{zoned}",
        {"rows": rows, "line": first["first_line"], "raw": str(first["raw"])[:60]},
    )]  # fmt: skip


def _second(name: str, rejects: pl.DataFrame) -> list[Finding]:
    mine = rejects.filter(
        pl.col("rule").is_in(list(_SECOND)) & pl.col("raw").str.contains(r"\d") & pl.col("column_name").str.contains(_POWER_COLUMN.pattern)
    ).sort("first_line")  # fmt: skip
    if mine.is_empty():
        return []
    values, first = int(mine["n"].sum()), mine.row(0, named=True)
    return [Finding(
        SECOND, Severity.WARNING, name,
        f"{counted(values, 'power')} set aside: under one time {first['device']} is read more than once (first line {first['first_line']}: "
        f"{str(first['raw'])[:60]!r}). These are dumps of several machines in one file, or several sensors of one name. Give each machine "
        "a file of its own, with its host in [[source]]; what was set aside is in no number.",
        {"values": values, "line": first["first_line"]},
    )]  # fmt: skip


def _momentary(name: str, rejects: pl.DataFrame) -> list[Finding]:
    mine = rejects.filter(pl.col("rule") == ZERO_DURATION).sort("first_line")
    if mine.is_empty():
        return []
    rows, line = max(mine["n"].to_list()), int(mine["first_line"][0])
    return [Finding(
        ZERO_DURATION, Severity.WARNING, name,
        f"{counted(rows, 'row')} set aside: {'it lasts' if rows == 1 else 'they last'} no time (duration 0, first line {line}), so there "
        "is no power to give and no run: too short for the tracker, or for its clock.",
        {"rows": rows, "line": line},
    )]  # fmt: skip
