"""Offset and drift between two clocks, from the power that two instruments saw of one machine.

True time = clock time - offset_s - drift_ppm * 1e-6 * (clock time - anchor_utc).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl

from joulebook import (
    align_checks,
    align_counter,
    align_fine,
    align_frame,
    align_grow,
    align_jumps,
    align_model,
    align_rows,
    align_search,
    align_sensors,
    align_trials,
    align_ways,
)
from joulebook.align_model import Fit
from joulebook.align_signal import COUNTER, Signal, build
from joulebook.findings import Finding, Severity

Z95 = 1.959964
"""Half width of a 95 % interval in standard errors."""


@dataclass(frozen=True)
class Alignment:
    """Offset and drift of a clock against a reference clock.

    Parameters
    ----------
    offset_s, offset_lo, offset_hi
        Clock minus true time at the anchor, with its 95 % interval [s]; ``None`` where refused.
    drift_ppm, drift_lo, drift_hi
        Rate error of the clock with its 95 % interval [1e-6].
    anchor_utc
        Middle of the overlap on the clock's own time.
    residual_s
        Root mean square by which stretches of the log deviate from the line [s].
    status
        ``aligned``, ``assumed`` (offset taken as 0, not measured) or ``refused``.
    reason
        Why it is so; for ``aligned`` what it rests on.
    gain
        Slow log's change per watt of the fast log's change.
    window_s, lag_s
        Averaging window and time constant of the slower log, as declared or found [s].
    reading_trail_s, reference_trail_s
        By how much readings of the one log or the other trail the power that they speak of, where the log does not say and
        the offset was found with it [s]; else ``None``.
    frame
        One row per sample of the slower log: ``ts_utc`` on the faster log's clock, ``measured_w``, ``before_w`` (what
        the faster log says without alignment), ``after_w`` (with it) and ``residual_w`` [W].
    steps
        Steps of the clock that were found: ``ts_utc``, ``step_s``.
    findings
        What the reader should know.
    """

    offset_s: float | None
    offset_lo: float | None
    offset_hi: float | None
    drift_ppm: float | None
    drift_lo: float | None
    drift_hi: float | None
    anchor_utc: datetime | None
    residual_s: float | None
    status: str
    reason: str
    gain: float | None
    window_s: float | None
    lag_s: float | None
    reading_trail_s: float | None
    reference_trail_s: float | None
    frame: pl.DataFrame
    steps: pl.DataFrame
    findings: tuple[Finding, ...]

    def _repr_html_(self) -> str:
        if self.offset_s is None:
            return f"<p>clock <b>{self.status}</b>: {self.reason}</p>"
        return (
            f"<p>clock <b>{self.status}</b>: offset {self.offset_s:.3f} s "
            f"[{self.offset_lo:.3f}, {self.offset_hi:.3f}], "
            f"drift {self.drift_ppm:.1f} ppm [{self.drift_lo:.1f}, {self.drift_hi:.1f}], {self.reason}</p>"
        )


def estimate(
    reading: pl.DataFrame,
    reference: pl.DataFrame,
    *,
    reading_window_s: float | None = None,
    reference_window_s: float | None = None,
    reading_age_s: float = 0.0,
    reference_age_s: float = 0.0,
    subject: str = "clock",
) -> Alignment:
    """Find how far the clock of one log is off the clock of another log of the same machine.

    The finer log is turned into an energy curve, the coarser one is predicted from it through its averaging window,
    lag or counter, and shift and drift are those that predict it best. The search covers every shift that leaves
    30 % in common, so wrong time zones are found; they are named in a finding.

    Parameters
    ----------
    reading
        Total power of the clock to be aligned: ``ts_utc``, ``power_w`` [W] and optionally ``span_s`` [s], or
        ``energy_counter_j`` [J].
    reference
        The same of the reference clock.
    reading_window_s, reference_window_s
        Averaging window of each sensor [s], 0 = instantaneous; default: the median of ``span_s``, and where that is
        empty it is found from the data.
    reading_age_s, reference_age_s
        How old a value may be when it is stamped [s]: a controller that is asked hands out its last value. The power
        cannot tell such a delay from a late clock; the interval covers both.
    subject
        Name of the clock for findings.

    Returns
    -------
    Alignment
        ``refused`` where the logs do not share enough edges, fit several shifts, are flat or unrelated.

    Raises
    ------
    ValueError
        A frame lacks its columns.

    References
    ----------
    Z. Yang, K. Adamek, W. Armour, Part-time power measurements, arXiv:2312.02741, for the sensor models.

    Examples
    --------
    >>> import numpy as np
    >>> from datetime import datetime, timedelta, timezone
    >>> rng, t0 = np.random.default_rng(1), datetime(2026, 1, 1, tzinfo=timezone.utc)
    >>> watts = np.repeat(rng.uniform(100, 400, 200), rng.integers(3, 40, 200))[:3000]
    >>> def log(late_s, noise_w):
    ...     stamps = [t0 + timedelta(seconds=i + late_s) for i in range(3000)]
    ...     return pl.DataFrame({"ts_utc": stamps, "power_w": watts + rng.normal(0, noise_w, 3000)})
    >>> found = estimate(log(7.0, 3.0), log(0.0, 1.0))
    >>> found.status, round(found.offset_s, 1)
    ('aligned', 7.0)
    """
    refs = build(reference, window_s=reference_window_s, age_s=reference_age_s)
    reads = build(reading, window_s=reading_window_s, age_s=reading_age_s, epoch_us=refs[0].epoch_us)
    early = align_checks.unusable(reads[0], refs[0])
    if early:
        return refused(early, subject=subject)
    slow_is_reading = align_checks.slower(reads[0], refs[0])
    fasts, slows = (refs, reads) if slow_is_reading else (reads, refs)
    fast, slow = fasts[0], slows[0]
    part = align_rows.liveliest(slow)
    found = align_search.find(fast, part, apart_s=1.5 * slow.period_s)
    if found.shift_s.size == 0:
        return refused("no common edge: at least one log is flat or they do not overlap", subject=subject)
    fits, model_s = align_trials.refine(fast, part, found)
    if not fits:
        return refused("no shift under which the logs explain each other", subject=subject)
    if fasts[1] is not None or slows[1] is not None:
        fast, slow = align_ways.likeliest(fasts, slows, fits[0])
        part = align_rows.liveliest(slow)
        fits, model_s = align_trials.refine(fast, part, found)
    if not fits:
        return refused("no shift under which the logs explain each other", subject=subject)
    few = align_rows.thin(slow)
    whole = align_grow.whole(fast, slow, few, part, fits[0])
    if slow.kind == COUNTER:
        whole = align_counter.weigh(fast, slow, whole)
    doubt = align_checks.doubt(whole, fits, found, fast, slow)
    steps = align_jumps.find(fast, slow, few, whole)
    if doubt and steps.is_empty():
        return refused(doubt, subject=subject)
    whole = align_fine.refit(fast, few, whole)
    return _result(fast, slow, whole, slow_is_reading=slow_is_reading, steps=steps, model_s=model_s, subject=subject)


def refused(reason: str, *, subject: str = "clock") -> Alignment:
    """Return the refusal of an alignment: no numbers, only the reason.

    Parameters
    ----------
    reason
        Why.
    subject
        Name of the clock.

    Returns
    -------
    Alignment

    Examples
    --------
    >>> refused("flat power").status
    'refused'
    """
    finding = Finding(
        "clock-not-aligned", Severity.WARNING, subject, f"The clock could not be aligned: {reason}.", {"reason": reason}
    )
    return Alignment(
        None, None, None, None, None, None, None, None, "refused", reason, None, None, None, None, None,
        align_frame.NONE, align_jumps.NONE, (finding,),
    )  # fmt: skip


def assumed(anchor_utc: datetime, *, reason: str) -> Alignment:
    """Return an alignment that takes a clock as right without having measured it.

    Parameters
    ----------
    anchor_utc
        Where the offset is meant.
    reason
        Why the clock is believed.

    Returns
    -------
    Alignment
        Offset and drift 0 without an interval.

    Examples
    --------
    >>> assumed(datetime(2026, 1, 1, tzinfo=UTC), reason="same host").offset_s
    0.0
    """
    return Alignment(
        0.0, None, None, 0.0, None, None, anchor_utc, None, "assumed", reason, None, None, None, None, None,
        align_frame.NONE, align_jumps.NONE, (),
    )  # fmt: skip


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _result(
    fast: Signal, slow: Signal, fit: Fit, *, slow_is_reading: bool, steps: pl.DataFrame, model_s: float, subject: str
) -> Alignment:
    """Turn a fit into the contract's numbers: offset and drift of the reading's clock."""
    sign = -1.0 if slow_is_reading else 1.0
    anchor_s = fit.anchor_s if slow_is_reading else fit.anchor_s + fit.shift_s
    offset, drift = sign * (fit.shift_s - align_sensors.late_s(fast, slow, fit.sensor)), sign * fit.drift * 1e6
    half, half_ppm = align_checks.half_widths(fit, fast, slow, model_s=model_s)
    unsaid_s = fast.early_s + align_sensors.unsaid_s(fast, fit.sensor)
    early, late = (slow.early_s, unsaid_s) if slow_is_reading else (unsaid_s, slow.early_s)
    thin = align_checks.drift_doubt(fit, slow)
    if thin:
        drift, half_ppm = 0.0, max(half_ppm, Z95 * align_model.PRIOR_DRIFT * 1e6)
    epoch = slow.epoch_us
    anchor = _EPOCH + timedelta(microseconds=epoch + round(anchor_s * 1e6))
    base = f"{slow.time_s.size} samples, {fit.n_eff:.0f} effective edges"
    status, reason = "aligned", f"{base}; {thin}" if thin else base
    trail_s = align_sensors.trail_s(fast, slow, fit.sensor)
    lo_hi = offset - half - early, offset + half + late
    result = Alignment(
        offset, *lo_hi, drift, drift - half_ppm, drift + half_ppm, anchor,
        float(np.sqrt(np.average(fit.local_s**2, weights=fit.local_se**-2))) if fit.local_s.size else None,
        status, reason, fit.gain, None if slow.kind == COUNTER else fit.sensor.window_s, fit.sensor.lag_s,
        trail_s if slow_is_reading else None, None if slow_is_reading else trail_s,
        align_frame.beside(fast, slow, fit), steps,
        align_checks.flags(offset, lo_hi, drift, steps=steps, subject=subject),
    )  # fmt: skip
    if len(steps):
        what = ", ".join(f"{s:+.2f} s at {t:%Y-%m-%d %H:%M:%S}" for t, s in steps.iter_rows())
        reason = f"the clock stepped ({what}): one offset does not fit; split the source there"
        none = dict.fromkeys(("offset_s", "offset_lo", "offset_hi", "drift_ppm", "drift_lo", "drift_hi"))
        return replace(result, status="refused", reason=reason, **none)  # pyrefly: ignore[bad-argument-type]
    return result
