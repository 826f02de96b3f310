"""Energy, share and power of each phase; parts and remainder equal the whole."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import polars as pl

from joulebook import occupancy, phase_findings, phase_gaps, phase_parts, phase_regression, phase_sensor, phase_timeline
from joulebook.findings import Estimate, Finding, Severity
from joulebook.phase_parts import MIN_READINGS, Case, Part
from joulebook.phase_regression import Fit, Sensor
from joulebook.phase_timeline import OTHER, Timeline

CLOCK_ERROR_S = 0.8
"""Largest clock error between log and phases that is searched [s]: the limit that MLPerf's checker tolerates."""

MIN_STRETCHES = 20
"""Fewer stretches than this carry too little to fit a clock error [1]."""

MIN_REPEATS = 5.0
"""Phases have to come back so often, on average, for a clock error to be told from a change inside of phases [1]."""

RESCALE_RANGE = (0.97, 1.03)
"""Integral over fitted sum [1]: outside of it the fit does not describe the readings."""

SCHEMA = {
    "phase": pl.String, "energy_j": pl.Float64, "lo": pl.Float64, "hi": pl.Float64, "share_ratio": pl.Float64,
    "power_w": pl.Float64, "seconds": pl.Float64, "n": pl.Int64, "method": pl.String, "reason": pl.String,
}  # fmt: skip
"""Columns of the frame of an attribution."""


@dataclass(frozen=True)
class Attribution:
    """Where the energy of a window went.

    Parameters
    ----------
    frame
        One row a phase and one for ``other``: ``phase``, ``energy_j`` with ``lo`` and ``hi``, ``share_ratio``,
        ``power_w``, ``seconds``, ``n`` (readings that touch it), ``method``, ``reason``. Phases without a number have
        null and a reason; their energy is in ``other``. Energies of the rows add up to ``total``.
    total
        Energy of the window [J].
    shift
        Stamps of the readings minus those of the phases [s], where fitted.
    sensor
        Averaging window, lag and shift that the split used; ``None`` without readings.
    rescale_ratio
        Integral over the sum of the fitted energies.
    findings
        What the reader should know.
    """

    frame: pl.DataFrame
    total: Estimate
    shift: Estimate
    sensor: Sensor | None
    rescale_ratio: float
    findings: tuple[Finding, ...]


def attribute(
    power: pl.DataFrame,
    phases: pl.DataFrame,
    *,
    start_utc: datetime,
    end_utc: datetime,
    window_s: float | None = None,
    total_j: float | None = None,
    clock_error_s: float = CLOCK_ERROR_S,
) -> Attribution:
    """Split the energy of a window over its phases.

    Each reading is the mean over a window and so a mix of phases. Powers by phase are fitted to the mixes, weighted by
    the time each reading stands for, with clock error and sensor lag; energy is power times time, and what is missing to
    the integral goes where the uncertainty is. Phases whose names differ by a number only are drawn towards their mean
    as far as readings cannot tell them apart. Inner phases have the time where phases are nested; time in several
    phases at once is a row of its own.

    Parameters
    ----------
    power
        Columns ``device``, ``ts_utc``, ``power_w``, optionally ``span_s``; one scope.
    phases
        Columns ``phase``, ``start_utc``, ``end_utc``.
    start_utc, end_utc
        Window, half-open.
    window_s
        Window that the sensor averages over [s]. Default: the median of ``span_s``, else found from the readings.
    total_j
        Energy of the window from elsewhere [J]; default: integral of the readings.
    clock_error_s
        Largest clock error to search [s]; 0 where the clocks are one.

    Returns
    -------
    Attribution
        Energies, total, sensor model, findings.

    Raises
    ------
    ValueError
        The window is empty, or an option is negative.

    References
    ----------
    Mukhanov et al. 2017, doi:10.1145/3050436. Lang and Rünger 2013, doi:10.1007/978-3-642-40047-6_28.

    Examples
    --------
    >>> from datetime import timedelta, timezone
    >>> t0 = datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> at = lambda s: t0 + timedelta(seconds=s)
    >>> power = pl.DataFrame({"device": "gpu:0", "ts_utc": [at(s) for s in range(101)],
    ...                       "power_w": [100.0] * 51 + [300.0] * 50})
    >>> marks = pl.DataFrame({"phase": ["load", "work"], "start_utc": [at(0), at(50)], "end_utc": [at(50), at(100)]})
    >>> split = attribute(power, marks, start_utc=t0, end_utc=at(100))
    >>> split.frame["phase"].to_list(), round(sum(split.frame["share_ratio"]), 9)
    (['load', 'work', 'other'], 1.0)
    """
    _check(start_utc, end_utc, window_s, clock_error_s)
    line = phase_timeline.cut(phases, start_utc=start_utc, end_utc=end_utc)
    margin = 2 * (max(window_s or 0.0, 1.0) + clock_error_s)
    data = occupancy.series(power, start_utc=start_utc, end_utc=end_utc, margin_s=margin)
    length = float(line.breaks_s[-1])
    data = tuple(d for d in data if np.count_nonzero((d.t_s >= 0) & (d.t_s <= length)) >= MIN_READINGS)
    if not data:
        return _unknown(line, "no device has two readings in the window")
    if window_s is None and "span_s" in power.columns and power["span_s"].null_count() < power.height:
        window_s = float(np.asarray(power["span_s"].drop_nulls().median(), dtype=float))
    period = max(d.period_s for d in data)
    declared = window_s is not None
    if window_s is not None:
        window_s = max(window_s, min(phase_sensor.WINDOW_PERIODS[0] * period, phase_sensor.INSTANT_S))
    repeats = line.stretches[line.seconds > 0]
    joint = clock_error_s > 0 and repeats.sum() >= max(MIN_STRETCHES, MIN_REPEATS * len(repeats))
    reach = clock_error_s if joint else 0.0
    found = phase_sensor.search(data, line, window_s=window_s, clock_error_s=reach, fit_lag=joint)
    if found.at_edge:
        agree = phase_sensor.search(data, line, window_s=window_s, clock_error_s=0.0, fit_lag=False)
        case = Case(line, data, agree.sensor, 0.0, found.rivals, unsure_s=phase_sensor.BEYOND * reach)
    else:
        case = Case(line, data, found.sensor, reach, found.rivals)
    if not phase_regression.whole(data, line, case.sensor):
        return _unknown(line, "no device has three readings of which all that they are a mean of lies in the window")
    return _split(case, total_j, declared=declared)


def _check(start: datetime, end: datetime, window_s: float | None, clock_error_s: float) -> None:
    if end <= start:
        raise ValueError(f"window: end_utc {end} must be after start_utc {start}")
    if window_s is not None and window_s < 0:
        raise ValueError(f"window_s is {window_s}: must be 0 (instantaneous) or positive")
    if clock_error_s < 0:
        raise ValueError(f"clock_error_s is {clock_error_s}: must be 0 or positive")


def _integral(case: Case, unseen: phase_gaps.Unseen) -> float:
    """Return the energy of the time in the window that readings speak for."""
    late = phase_gaps.late_s(case.sensor)
    ends = [occupancy.energy_at(d, np.array([late, float(case.line.breaks_s[-1]) + late])) for d in case.data]
    return float(sum(e[1] - e[0] for e in ends)) - unseen.energy_j(case.data, late)


def _split(case: Case, total_j: float | None, *, declared: bool) -> Attribution:
    """Fit, merge what cannot be told apart, refuse what is too little, and make the parts equal the whole."""
    unseen = phase_gaps.find(case.data, case.line, case.sensor)
    total = _integral(case, unseen) if total_j is None else total_j
    columns = np.flatnonzero(case.line.seconds > 0)
    fit = phase_regression.fit(case.data, case.line, case.sensor, columns=columns, reach_s=case.reach_s)
    # time that no reading saw is taken at the mean power, so that it does not scale up the rest
    seen_s = case.line.seconds[columns] - unseen.seconds[:, columns]
    level = np.where(fit.n > 0, fit.power_w, total / max(float(seen_s.sum()), 1e-9))
    raw = float((level * seen_s).sum())
    ratio = total / raw if raw > 0 else 1.0
    fits = RESCALE_RANGE[0] <= ratio <= RESCALE_RANGE[1]
    parts = phase_gaps.without(phase_parts.find(case, fit), fit, unseen, case.line)
    if not fits:
        why = f"the fitted sum is {1 / ratio:.3f} of the integral: the phases do not describe the readings"
        parts = tuple(replace(p, reason=p.reason or why) for p in parts)
    frame = _rows(case, _reconciled(parts, total - raw) if fits else parts, total)
    whole = Estimate(total, unit="J", n=fit.readings, method="integral")
    found = phase_findings.of_split(case, fit, parts, declared=declared)
    return Attribution(frame, whole, _shift(case, fit), case.sensor, ratio, found)


def _reconciled(parts: tuple[Part, ...], missing_j: float) -> tuple[Part, ...]:
    """Give each part what is missing to the integral, by how uncertain it is.

    What the intervals cannot explain is an error of all readings alike, and goes by energy.
    """
    half, energy = (np.array([getattr(p, name) for p in parts]) for name in ("half_width_j", "energy_j"))
    alike = max(missing_j**2 - float(half @ half), 0.0)
    weight = half**2 + alike * energy / max(float(energy.sum()), 1e-300)
    weight = weight if weight.sum() > 0 else np.maximum(energy, 1e-300)
    given = np.maximum(missing_j * weight / weight.sum(), -energy)
    left = energy + given
    given += (missing_j - given.sum()) * left / max(float(left.sum()), 1e-300)  # what would have gone below zero
    # a log in step with the load may err in its integral and not in its fit: the interval holds either
    return tuple(
        replace(p, energy_j=p.energy_j + g, half_width_j=p.half_width_j + abs(g))
        for p, g in zip(parts, given.tolist(), strict=True)
    )


def _shift(case: Case, fit: Fit) -> Estimate:
    """Return the fitted clock error, or why there is none."""
    if case.at_edge:
        return Estimate.refused("no best clock error within the search", unit="s", n=fit.readings)
    if case.reach_s <= 0:
        return Estimate.refused("too few repeats to fit a clock error", unit="s", n=fit.readings)
    s, u = case.sensor.shift_s, 1.96 * fit.shift_se_s
    return Estimate(s, s - u, s + u, unit="s", n=fit.readings, method="variable projection")


def _rows(case: Case, parts: tuple[Part, ...], total: float) -> pl.DataFrame:
    """Return one row a phase or merged phases, and the remainder."""
    rows: list[dict[str, object]] = []
    left, left_half, left_open, left_s, left_n = total, 0.0, 0.0, 0.0, 0
    spent = dict(zip(case.line.names, case.line.seconds.tolist(), strict=True))
    for part in parts:
        half = part.half_width_j
        if part.reason or OTHER in part.names:
            left_half, left_s, left_n = left_half + half, left_s + part.seconds, left_n + part.n
            left_open += part.open_j
            why = part.reason or f"cannot be told apart from {OTHER}"
            rows += [_row(name, spent[name], part.n, why) for name in part.names if name != OTHER]
            continue
        energy = part.energy_j
        left -= energy
        rows.append({
            **_row(part.name, part.seconds, part.n, ""), "energy_j": energy, "lo": max(energy - half, 0.0),
            "hi": energy + half + part.open_j, "method": "integration" if part.long else "regression",
        })  # fmt: skip
        if len(part.names) > 1:
            why = f"cannot be told apart: their energy is in the row {part.name}"
            rows += [_row(name, spent[name], part.n, why) for name in part.names]
    left = 0.0 if abs(left) < 1e-9 * abs(total) else left
    rows.append({**_row(OTHER, left_s, left_n, ""), "energy_j": left, "method": "remainder",
                 "lo": left - left_half, "hi": left + left_half + left_open})  # fmt: skip
    return pl.DataFrame(rows, schema=SCHEMA).with_columns(
        share_ratio=pl.col("energy_j") / total if total else pl.lit(None, pl.Float64),
        power_w=pl.when(pl.col("seconds") > 0).then(pl.col("energy_j") / pl.col("seconds")),
    )


def _row(phase: str, seconds: float, n: int, reason: str) -> dict[str, object]:
    return {"phase": phase, "seconds": float(seconds), "n": n, "reason": reason}


def _unknown(line: Timeline, reason: str) -> Attribution:
    """Return an attribution without numbers."""
    rows = [_row(p, s, 0, reason) for p, s in zip((*line.names[1:], OTHER), np.roll(line.seconds, -1), strict=True)]
    finding = Finding("phases-refused", Severity.ERROR, "phases", f"No phase energies: {reason}.", {})
    return Attribution(
        pl.DataFrame(rows, schema=SCHEMA), Estimate.refused(reason, unit="J"), Estimate.refused(reason, unit="s"),
        None, 1.0, (finding,),
    )  # fmt: skip
