"""What the reader of an energy should know about the log behind it: gaps, ends, lost devices, missing readings."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np

from joulebook import bridges
from joulebook.energy_counter import UNTOLD
from joulebook.energy_device import DeviceEnergy
from joulebook.findings import Finding, Severity
from joulebook.wording import counted, lasting

FULL_COVERAGE = 0.99
"""Below this covered share a total is called partial; published benchmark rules allow no more to be missing."""


def of(devices: list[DeviceEnergy], *, start_utc: datetime, length_s: float) -> tuple[Finding, ...]:
    """Return the findings of a window, in the order of devices.

    Parameters
    ----------
    devices
        Each device's energy over the window.
    start_utc, length_s
        The window's start and length [s].

    Examples
    --------
    >>> of([], start_utc=datetime(2026, 1, 1), length_s=1.0)[0].code
    'no-readings'
    """
    if not devices:
        return (
            Finding("no-readings", Severity.ERROR, "power", "There is no reading of power at all: no energy is given."),
        )
    found: list[Finding] = []
    ends = [d.last_s for d in devices if d.stretches.start_s.size]
    for d in devices:
        if d.refused:
            message = (
                f"No energy is given for {d.device}: {d.reason}. Log faster, or at a period that does not fit the step."
            )
            found.append(Finding("sampling-aliases-step", Severity.ERROR, d.device, message, {"period_s": d.period_s}))
            continue
        if d.stretches.start_s.size == 0:
            found.append(_no_readings(d))
            continue
        found += _gaps(d, start_utc, length_s)
        found += _ends(d, start_utc, length_s, latest_s=max(ends))
        found += _missing(d, devices)
    found += _partial(devices, length_s)
    return tuple(found)


def _text(start_utc: datetime, at_s: float) -> str:
    at = start_utc + timedelta(seconds=at_s)
    return at.isoformat(timespec="seconds" if at.microsecond == 0 else "milliseconds").replace("+00:00", "Z")


def _no_readings(d: DeviceEnergy) -> Finding:
    where = "the findings of its counter" if d.reason == UNTOLD else "the rejects of its source"
    message = f"{d.device} has no energy: {d.reason}. The total is without it; look at {where}."
    return Finding("no-readings", Severity.ERROR, d.device, message, {"readings": d.n})


def _gaps(d: DeviceEnergy, start_utc: datetime, length_s: float) -> list[Finding]:
    # A lone reading at an edge of the window ends the silence behind it as any other does.
    inner = ((d.hole_start_s > 0) | (d.first_s <= 0)) & ((d.hole_end_s < length_s) | (d.last_s >= length_s))
    if not inner.any():
        return []
    seconds = (d.hole_end_s - d.hole_start_s)[inner]
    longest = int(np.argmax(seconds))
    place = _text(start_utc, float(d.hole_start_s[inner][longest]))
    many = (
        "A gap" if seconds.size == 1 else f"{seconds.size} gaps, {lasting(float(seconds.sum()))} together; the longest,"
    )
    message = (
        f"{many} of {lasting(float(seconds[longest]))} from {place} is not bridged: its energy is not in the value and "
        f"widens the interval upwards by its length times {_at_most(d)}. Find out what stopped the log there."
    )
    evidence = {
        "gaps": int(seconds.size), "seconds": float(seconds.sum()), "longest_s": float(seconds[longest]),
        "longest_from": place,
    }  # fmt: skip
    return [Finding("gap-not-bridged", Severity.WARNING, d.device, message, evidence)]


def _at_most(d: DeviceEnergy) -> str:
    if d.open_w is None:
        return f"{d.peak_w or 0:.4g} W, the highest power seen"
    return f"{d.open_w:.4g} W, as steps that may hide a turn of the counter are those of the highest power"


SHORT_RATIO = 1e-3
"""A single reading over a span has no period; less than this share of the window is no silence either."""


def _ends(d: DeviceEnergy, start_utc: datetime, length_s: float, *, latest_s: float) -> list[Finding]:
    found = []
    covered_from, covered_to = float(d.stretches.start_s[0]), float(d.stretches.end_s[-1])
    # Less than a period is no silence: the next reading was not due yet.
    tolerance_s = max(bridges.STAMP_TOLERANCE_S, d.period_s or SHORT_RATIO * length_s)
    if covered_from > tolerance_s and d.first_s > 0:
        place = _text(start_utc, d.first_s)
        message = f"The log starts {lasting(covered_from)} after the window begins, at {place}; the time before is open. Start it earlier."
        found.append(Finding("log-starts-late", Severity.WARNING, d.device, message, {"seconds": covered_from}))
    short = length_s - covered_to
    if short <= tolerance_s or d.last_s >= length_s:
        return found
    last = _text(start_utc, d.last_s)
    evidence = {"last_reading": last, "seconds": short}
    if latest_s - d.last_s > bridges.limit_s(d.period_s):
        message = (
            f"{d.device} has no reading after {last} while other devices go on: it was lost. "
            f"Its last {lasting(short)} are open and the total there is that of the others."
        )
        found.append(Finding("device-lost", Severity.WARNING, d.device, message, evidence))
    else:
        message = (
            f"The last reading is of {last}, {lasting(short)} before the window ends; the time after is open. Stop the log later, "
            "or look at what was rejected at its end."
        )
        found.append(Finding("log-ends-early", Severity.WARNING, d.device, message, evidence))
    return found


def _missing(d: DeviceEnergy, devices: list[DeviceEnergy]) -> list[Finding]:
    if d.missing == 0:
        return []
    fewest, places = min(o.missing for o in devices), counted(d.missing, "place")
    if len(devices) > 1 and d.missing > fewest:
        message = f"In {places} {d.device} lacks a reading that others have; a straight line bridges it."
        return [Finding("short-tick", Severity.NOTE, d.device, message, {"places": d.missing})]
    message = f"In {places} a reading is missing, rejected or never written; a straight line bridges it."
    return [Finding("missing-readings", Severity.NOTE, d.device, message, {"places": d.missing})]


def _partial(devices: list[DeviceEnergy], length_s: float) -> list[Finding]:
    ratio = sum(d.covered_s for d in devices) / (len(devices) * length_s)
    if ratio >= FULL_COVERAGE:
        return []
    message = f"Readings cover {100 * ratio:.3g} % of the window: the value is that part, the interval holds the rest."
    return [Finding("partial-coverage", Severity.WARNING, "all devices", message, {"coverage_ratio": ratio})]
