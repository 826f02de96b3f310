"""When an alignment is to be refused, how wide its interval is, and what its reader should be told."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from joulebook import align_noise, align_trials, distributions
from joulebook.align_model import PRIOR_DRIFT, Fit
from joulebook.align_search import Candidates
from joulebook.align_signal import COUNTER, Signal
from joulebook.findings import Finding, Severity

LEAST_SAMPLES = 20
"""Fewest samples of either log."""

LEAST_LLR = 25.0
"""Least log-likelihood ratio against "no relation"; the best of 1e5 lags reaches about 12 by chance."""

LEAST_R2, LEAST_R2_COUNTER = 0.5, 0.25
"""Least share of the whitened variance that the relation explains, of meters and of counters, whose rounding hides
part of it."""

LEAST_R2_FOUND = 0.75
"""The same where a lag or a shorter window was chosen from the data: of nine models tried at every lag one fits logs
of two machines by chance to 0.6, while true pairs show 0.9."""

MOST_GAIN = 30.0
"""Largest believable ratio of the two logs' changes: parts of one machine that move together are within it; a watt of
a small board beside kilowatts of a server is another machine, or a wrong unit."""

LEAST_LEAD = 10.0
"""Least log-likelihood lead over the next distinct shift."""

MOST_RIVALS = 5
"""Most other peaks within 0.9 of the best correlation before a signal counts as periodic."""

MANY_RIVALS = 20
"""From so many on, one other shift that explains the logs about as well is enough: which samples happen to lie alike makes
one of the many stand out. Simulated training, whose steps differ, has ten at most."""

RIVAL_SHARE = 0.8
"""Share of the best likelihood at which another shift explains the logs as well as the best."""

LEAST_EDGES = 3.0
"""Fewest effective edges."""

LEAST_BEYOND, BEYOND_SE = 0.5, 3.0
"""Least gain outside the places that tell most, as a share of the whole gain, and how many standard errors it must be
short of the whole to count as missing. True pairs show 0.8 and more, two machines with loads of one length 0.2."""

SHOWN_SE = 2.0
"""How many standard errors the gain outside those places must be above nothing for a coarse counter, whose few effective
samples agree with a stranger's somewhere among thousands of shifts."""

MOST_DRIFT = 300e-6
"""Largest believable drift."""

FLAG_S = (0.4, 0.8)
"""Offsets at which MLPerf Power synchronises again, and at which its checker fails a session [s]."""

SLIP_S = 900.0
"""Time zones and daylight saving move clocks by whole quarters of an hour [s]."""

SLIP_REST_S = 300.0
"""Largest rest beside a whole number of hours that is taken for the clock's own error [s]; a fifth of it for odd
quarters of an hour."""

Z95 = 1.959964


def unusable(reading: Signal, reference: Signal) -> str:
    """Return why the logs cannot be aligned whatever they show, or nothing."""
    for name, s in (("reading", reading), ("reference", reference)):
        if s.time_s.size < LEAST_SAMPLES:
            return f"the {name} has {s.time_s.size} samples, fewer than {LEAST_SAMPLES}"
        if np.ptp(s.value) == 0:
            return f"the {name} is flat: no edge to align by"
    return ""


def slower(reading: Signal, reference: Signal) -> bool:
    """Return whether the reading is the coarser log: slower, or a counter, or, at equal pace, the larger power.

    The narrower of two scopes predicts the wider one, which has further loads of its own.
    """
    pace = reading.period_s / reference.period_s
    if abs(np.log(pace)) > np.log(1.3):
        return bool(pace > 1)
    if (reading.kind == COUNTER) != (reference.kind == COUNTER):
        return reading.kind == COUNTER
    if reading.kind == COUNTER:
        return True
    return bool(np.mean(reading.value) >= np.mean(reference.value))


def half_widths(fit: Fit, fast: Signal, slow: Signal, *, model_s: float = 0.0) -> tuple[float, float]:
    """Return the half widths of the 95 % intervals of offset [s] and drift [1e-6].

    Noise, the model's own error, and what the resolution of the stamps leaves open. Where stretches of the log
    scatter more than their standard errors say, the standard error grows with them (Birge). ``model_s`` is by how much
    a plainer sensor model, not clearly worse, would move the offset [s].
    """
    birge, z = 1.0, Z95
    if fit.local_s.size >= 4 and slow.kind != COUNTER:
        # the scatter is told by few stretches: Student's t
        z = float(distributions.student_quantile(0.975, fit.local_s.size - 2))
        birge = max(1.0, float(np.sqrt(np.sum((fit.local_s / fit.local_se) ** 2) / (fit.local_s.size - 2))))
    floor = align_noise.floor_s(fit.sensor, fast)
    noise = float(np.sqrt(fit.covariance[0, 0])) * birge
    half = z * np.hypot(noise, align_noise.undeclared_s(fit.sensor, fast))
    stamps = fast.stamp_s + slow.stamp_s
    lever = max(fit.spread, 1.0)
    rate = np.hypot(float(np.sqrt(fit.covariance[1, 1])) * birge, floor / lever / 2)
    rate = min(z * min(rate, PRIOR_DRIFT) + fast.stamp_rate + slow.stamp_rate, MOST_DRIFT)
    return float(np.hypot(half, stamps)) + model_s, float(rate * 1e6)


def least_r2(fit: Fit, slow: Signal) -> float:
    """Return the share of variance that a relation must explain."""
    if slow.kind == COUNTER:
        return LEAST_R2_COUNTER
    plain = fit.sensor.lag_s == 0 and fit.sensor.window_s == (slow.window_s or slow.period_s)
    return LEAST_R2 if plain or (slow.window_s is not None and fit.sensor.lag_s == 0) else LEAST_R2_FOUND


def related(fit: Fit, slow: Signal) -> bool:
    """Return whether a fit shows a relation at all."""
    return fit.gain > 0 and fit.llr > LEAST_LLR and fit.r2 >= least_r2(fit, slow)


def doubt(fit: Fit, rivals: list[Fit], found: Candidates, fast: Signal, slow: Signal) -> str:
    """Return why a fit is not believed, or nothing."""
    reasons = (
        (fit.gain <= 0, "the logs move against each other (gain not above 0)"),
        (
            fit.llr >= LEAST_LLR and not 1 / MOST_GAIN <= abs(fit.gain) <= MOST_GAIN,
            f"unrelated: one log changes {fit.gain:.3g} times as much as the other (another machine or a wrong unit)",
        ),
        (
            fit.llr < LEAST_LLR,
            f"no common edge: the logs explain each other no better than chance (log-likelihood {fit.llr:.0f})",
        ),
        (
            fit.r2 < least_r2(fit, slow),
            f"unrelated: one log explains {fit.r2:.1%} of the changes in the other",
        ),
        (
            _elsewhere_unlike(fit),
            "unrelated: the logs agree at a start or an end of load, and differ elsewhere",
        ),
        (
            slow.kind == COUNTER and bool(np.any(fit.beyond < SHOWN_SE * fit.beyond_se)),
            "no common edge: without the few places that tell most, the counter shows nothing of the other log",
        ),
        (fit.n_eff < LEAST_EDGES, f"too few edges: {fit.n_eff:.1f} effective, {LEAST_EDGES:.0f} needed"),
        (
            abs(fit.drift) > MOST_DRIFT,
            f"drift of {fit.drift * 1e6:.0f} ppm is beyond {MOST_DRIFT * 1e6:.0f} ppm",
        ),
    )
    plain = next((text for holds, text in reasons if holds), "")
    return plain or _ambiguous(rivals, found, slow) or _wide(fit, fast, slow)


def _elsewhere_unlike(fit: Fit) -> bool:
    """Return whether, without the few places that tell most, the one log hardly shows in the other.

    Two machines that ran jobs of one length share a start and an end; one machine shares what lies between as well.
    """
    missing = (1 - fit.beyond) / np.maximum(fit.beyond_se, 1e-9)
    return bool(np.any((fit.beyond_se > 0) & (fit.beyond < LEAST_BEYOND) & (missing > BEYOND_SE)))


def _ambiguous(rivals: list[Fit], found: Candidates, slow: Signal) -> str:
    """Return that other shifts explain the logs as well, or nothing."""
    shares: tuple[Callable[[Fit], float], ...] = (lambda f: f.llr / f.n,)
    if found.rivals > MOST_RIVALS:
        # A load that repeats itself is foretold by its own past, beside which no shift seems to tell anything.
        shares = (*shares, align_trials.plain)
    return next((text for share in shares if (text := _alike(rivals, share, found, slow))), "")


def _alike(rivals: list[Fit], share: Callable[[Fit], float], found: Candidates, slow: Signal) -> str:
    """Return that other shifts are as likely, by the likelihood of each sample, or nothing."""
    best, *rest = rivals
    others = [f for f in rest if abs(f.shift_s - best.shift_s) > align_trials.distinct_s(slow)]
    if others:
        other = max(others, key=share)
        if min(best.n, other.n) * (share(best) - share(other)) < LEAST_LEAD:
            return f"ambiguous: a shift of {other.shift_s - best.shift_s:+.1f} s fits as well"
        # what the past foretells, and what the other log does, may point to different shifts
        plainer = max(others, key=align_trials.plain)
        if min(best.n, plainer.n) * (align_trials.plain(plainer) - align_trials.plain(best)) > LEAST_LEAD:
            return f"ambiguous: a shift of {plainer.shift_s - best.shift_s:+.1f} s leaves less of the log unexplained"
    alike = sum(share(f) > RIVAL_SHARE * share(best) for f in others)
    if alike >= (1 if found.rivals > MANY_RIVALS else 2) and found.rivals > MOST_RIVALS:
        return f"periodic: {found.rivals} other shifts fit nearly as well"
    return ""


def _wide(fit: Fit, fast: Signal, slow: Signal) -> str:
    """Return that the interval is too wide to be of use, or nothing."""
    window = slow.period_s if slow.kind == COUNTER else max(fit.sensor.window_s, slow.period_s)
    most = max(0.1 * window, 0.25, 1.2 * align_noise.floor_s(fit.sensor, fast))
    se = float(np.sqrt(fit.covariance[0, 0]))
    return f"too uncertain: standard error {se:.2f} s, at most {most:.2f} s" if se > most else ""


def drift_doubt(fit: Fit, slow: Signal) -> str:
    """Return why no drift is given, or nothing: the edges must be spread over at least a quarter of the log."""
    span = float(np.ptp(slow.time_s))
    # edges spread evenly over a share of the log have a standard deviation of that share over sqrt(12)
    return (
        "too short for drift: its edges lie in less than a quarter of the log"
        if (fit.spread * np.sqrt(12) < 0.25 * span)
        else ""
    )


def flags(
    offset_s: float, lo_hi_s: tuple[float, float], drift_ppm: float, *, steps: pl.DataFrame, subject: str
) -> tuple[Finding, ...]:
    """Return what the reader of an alignment should know."""
    out: list[Finding] = []
    turns = round(offset_s / SLIP_S)
    rest = offset_s - turns * SLIP_S
    if turns and abs(rest) <= (SLIP_REST_S if turns % 4 == 0 else SLIP_REST_S / 5):
        hours = turns / 4
        out.append(Finding(
            "clock-zone-slip", Severity.WARNING, subject,
            f"The clock is off by {hours:+g} h and {rest:+.2f} s: a time zone or daylight-saving slip. "
            "Declare the right timezone of its sources.",
            {"slip_s": turns * SLIP_S, "rest_s": rest, "offset_s": offset_s},
        ))  # fmt: skip
    out += _off(abs(rest) if out else abs(offset_s), offset_s, lo_hi_s, subject, sure=bool(out))
    for when, size in steps.iter_rows():
        out.append(Finding(
            "clock-stepped", Severity.ERROR, subject,
            f"The clock stepped by {size:+.2f} s at {when:%Y-%m-%d %H:%M:%S} UTC. Split the source there.",
            {"step_s": size, "ts_utc": when.isoformat()},
        ))  # fmt: skip
    if drift_ppm and abs(drift_ppm) > PRIOR_DRIFT * 1e6:
        out.append(Finding(
            "clock-drift", Severity.NOTE, subject,
            f"The clock drifts by {drift_ppm:.0f} ppm, more than quartz does when it is well.",
            {"drift_ppm": drift_ppm},
        ))  # fmt: skip
    return tuple(out)


def _off(off_s: float, offset_s: float, lo_hi_s: tuple[float, float], subject: str, *, sure: bool) -> list[Finding]:
    """Say how far a clock is off beside whole quarters of an hour, or that it may be right."""
    if off_s <= FLAG_S[0]:
        return []
    evidence = {"offset_s": offset_s, "offset_lo_s": lo_hi_s[0], "offset_hi_s": lo_hi_s[1]}
    if not sure and lo_hi_s[0] <= 0 <= lo_hi_s[1]:
        return [Finding(
            "clock-uncertain", Severity.NOTE, subject,
            f"The clock may be right: its offset is only known to be {lo_hi_s[0]:.2f} to {lo_hi_s[1]:.2f} s. {offset_s:.2f} s, the "
            "most likely, are corrected here; a log that samples faster, or more starts and ends of load, would tell.", evidence,
        )]  # fmt: skip
    limit = FLAG_S[1] if off_s > FLAG_S[1] else FLAG_S[0]
    return [Finding(
        f"clock-off-{limit:g}s".replace(".", ""), Severity.WARNING if off_s > FLAG_S[1] else Severity.NOTE, subject,
        f"The clock is off by {offset_s:.2f} s ({lo_hi_s[0]:.2f} to {lo_hi_s[1]:.2f} s), more than {limit:g} s. It is "
        "corrected here; synchronise it at the source.", {**evidence, "limit_s": limit},
    )]  # fmt: skip
