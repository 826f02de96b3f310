"""What the reader of a split over phases should know."""

from __future__ import annotations

import numpy as np

from joulebook import phase_repeats
from joulebook.findings import Finding, Severity
from joulebook.phase_parts import Case, Part, largest_edge_j
from joulebook.phase_regression import Fit
from joulebook.phase_timeline import OTHER

NAMED_WINDOW_SHARE = 0.5
"""From this share of the reading interval on an averaging window moves energy over edges [1]."""

NAMED_DRAW = 0.05
"""From this share of the way to the mean of its repeats on it is said that a power was drawn there [1]."""

CLOCK_ERROR_S = 0.05
"""A fitted clock error from this on is worth a word [s]."""

NAMED_REACH = 0.05
"""From this share of a phase's energy on it is said that other sensors explain the readings as well [1]."""

ENOUGH_COVERAGE = 0.99
"""Below this covered share of the window it is said that energies of phases lack the rest [1]."""


def of_split(case: Case, fit: Fit, parts: tuple[Part, ...], *, declared: bool) -> tuple[Finding, ...]:
    """Return the findings of a split.

    Parameters
    ----------
    case
        What the split rests on.
    fit
        Powers by label.
    parts
        Parts with a number or a reason.
    declared
        Whether the averaging window was declared.

    Returns
    -------
    tuple of Finding
        Sensor, clock, nested and overlapping phases, merged and refused phases, gaps.
    """
    return (
        *_sensor(case, fit, declared=declared),
        *_rivals(case, parts),
        *_structure(case),
        *_parts(parts),
        *_gaps(case),
    )


def _rivals(case: Case, parts: tuple[Part, ...]) -> tuple[Finding, ...]:
    """Say where sensors that explain readings as well give phases another energy."""
    sums = np.array([[name in p.names for p in parts] for name in case.line.names], dtype=float)
    energy = np.array([p.energy_j for p in parts])
    far = case.rivals.reach_j(sums) > NAMED_REACH * energy
    if not far.any():
        return ()
    like = (case.sensor, *case.rivals.sensors)
    told = {
        f"{word}_s": (min(getattr(s, f"{word}_s") for s in like), max(getattr(s, f"{word}_s") for s in like))
        for word in ("window", "lag", "shift")
    }
    names = ", ".join(p.name for p, open_ in zip(parts, far.tolist(), strict=True) if open_)
    return (Finding(
        "phase-sensor-open", Severity.WARNING, names,
        f"Sensors that average over {_range(told['window_s'], '.3g')}, lag by {_range(told['lag_s'], '.2g')} and whose clock is off by "
        f"{_range(told['shift_s'], '+.2f')} explain these readings alike, with other powers: intervals hold what each makes of a phase. "
        "Sample at a pace that is no multiple of the step, or faster.", {key: list(span) for key, span in told.items()},
    ),)  # fmt: skip


def _range(ends: tuple[float, float], digits: str) -> str:
    """Return seconds in words: one number where both ends read alike."""
    low, high = (f"{end:{digits}}" for end in ends)
    return f"{low} s" if low == high else f"{low} to {high} s"


def _sensor(case: Case, fit: Fit, *, declared: bool) -> tuple[Finding, ...]:
    sensor, edge = case.sensor, largest_edge_j(case, fit)
    period = max(d.period_s for d in case.data)
    found = []
    evidence = {"window_s": sensor.window_s, "lag_s": sensor.lag_s, "shift_s": sensor.shift_s, "edge_j": edge}
    known = "declared" if declared else "found in the readings"
    if sensor.window_s >= NAMED_WINDOW_SHARE * period:
        fixed = "clock error fitted" if case.reach_s > 0 else "clocks taken to agree"
        found.append(Finding(
            "phase-trailing-mean", Severity.NOTE if case.reach_s > 0 else Severity.WARNING, "phases",
            f"Readings are means over the {sensor.window_s:.3g} s before their stamp ({known}); the split is corrected "
            f"for it ({fixed}). Without the correction each phase edge may be off by up to {edge:.4g} J.", evidence,
        ))  # fmt: skip
    elif case.reach_s <= 0 and edge > 0:
        found.append(Finding(
            "phase-edges", Severity.NOTE, "phases",
            f"Readings are {period:.3g} s apart and no clock error could be fitted: each phase edge may be off by up "
            f"to {edge:.4g} J; the intervals hold that.", evidence,
        ))  # fmt: skip
    if case.at_edge:
        found.append(Finding(
            "phase-clock-not-found", Severity.WARNING, "phases",
            "No clock error within the search explains the readings best: short phases have no number. Align the "
            "clocks or widen the search.", evidence,
        ))  # fmt: skip
    elif case.reach_s > 0 and abs(sensor.shift_s) >= CLOCK_ERROR_S:
        found.append(Finding(
            "phase-clock-error", Severity.NOTE, "phases",
            f"Stamps of the readings are {sensor.shift_s:+.3f} s against those of the phases; the split is corrected "
            "for it.", evidence,
        ))  # fmt: skip
    return tuple(found)


def _structure(case: Case) -> tuple[Finding, ...]:
    found = []
    if case.line.nested:
        found.append(Finding(
            "phases-nested", Severity.NOTE, ", ".join(case.line.nested),
            "Other phases lie inside of these: the inner phase has the time, so these keep what is their own.",
            {"phases": list(case.line.nested)},
        ))  # fmt: skip
    if case.line.overlapping:
        found.append(Finding(
            "phases-overlap", Severity.WARNING, ", ".join(case.line.overlapping),
            "These phases partly run at the same time: one reading cannot say which draws what, so the time they share "
            "is a row of its own.", {"phases": list(case.line.overlapping)},
        ))  # fmt: skip
    return tuple(found)


def _parts(parts: tuple[Part, ...]) -> tuple[Finding, ...]:
    merged = [p for p in parts if len(p.names) > 1 and not p.reason]
    refused = [p for p in parts if p.reason and p.names != (OTHER,)]
    drawn: dict[str, list[Part]] = {}
    for p in parts:
        if p.drawn_ratio >= NAMED_DRAW and not p.reason:
            drawn.setdefault(phase_repeats.stem(p.name), []).append(p)
    return (*(Finding(
        "phases-drawn-together", Severity.NOTE, stem,
        f"{len(like)} phases named alike differ by little more than readings can tell: each power was drawn "
        f"{like[0].drawn_ratio:.0%} of the way to their mean. The intervals are those of each by itself.",
        {"phases": [p.name for p in like], "drawn_ratio": like[0].drawn_ratio},
    ) for stem, like in drawn.items()), *(Finding(
        "phases-merged", Severity.WARNING, p.name,
        "The readings cannot tell these phases apart; they have one energy together. Sample faster or log longer.",
        {"phases": list(p.names)},
    ) for p in merged), *(Finding(
        "phase-refused", Severity.WARNING, p.name, f"No energy: {p.reason}. It is in the remainder.",
        {"seconds": p.seconds, "readings": p.n},
    ) for p in refused))  # fmt: skip


def _gaps(case: Case) -> tuple[Finding, ...]:
    length = float(case.line.breaks_s[-1])
    seen = []
    for d in case.data:
        step = np.diff(np.clip(d.t_s, 0, length))
        inside = float(np.minimum(step, 3 * d.period_s).sum())
        ends = max(float(d.t_s[0]), 0.0), max(length - float(d.t_s[-1]), 0.0)
        seen.append((inside + sum(min(e, d.period_s) for e in ends)) / length)
    covered = min(seen)
    if covered >= ENOUGH_COVERAGE:
        return ()
    return (Finding(
        "phase-gaps", Severity.WARNING, "phases",
        f"Readings cover {covered:.1%} of the window: energies of phases are those of the covered time, and what the rest may "
        "add is in their intervals.",
        {"coverage_ratio": covered},
    ),)  # fmt: skip
