"""Shifts tried one after the other, under the likeliest sensor model; the likelihood decides."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from joulebook import align_curve, align_model, align_noise, align_sensors
from joulebook.align_curve import Sensor
from joulebook.align_model import Fit
from joulebook.align_search import Candidates
from joulebook.align_signal import COUNTER, Floats, Signal

TRIAL_SAMPLES = 4000
"""Most slow samples on which sensor models and starts are compared."""

FINE_S = 1.0
"""Coarsest step of the finer search [s]."""

COUNTER_UNITS = 3.0
"""Units that a counter should advance over one difference, so that its rounding stays small in it."""

RIPPLE_S, RUNGS = 12.0, 12
"""How far around the best shift others are looked for [s], and how many: a load that repeats its steps agrees with itself
some steps away, and the coarse grid, which may pass the right shift at half of its own step, shows the others better."""

BESIDE = (-1.0, -0.5, 0.5, 1.0)
"""Starts beside the best shift, in periods of a fast log of its pace: where samples lie on each other a hill hides the right one."""

HILL_SHARE = 0.9
"""Share of the best likelihood from which a hill beside the best one widens the interval."""

LONGER_GAIN = 1.6
"""Likelihood a sample that a window longer than the step must have over the plain one: of two logs of one pace, neither of which
knows what lay between its samples, a longer mean leaves less unexplained without foretelling more."""

SURE_R2 = 0.98
"""Share of a log's variance from which a longer window of two logs of one pace is sure: a moving mean is foretold that well."""

LEAST_AGREEMENT = 0.3
"""Share of the best correlation from which a shift is worth a fit: between steps of a grid a right one is seen lower than it is."""

WORTH = 0.5
"""Share of the best likelihood in some of a log from which a shift is fitted to all of it; far below that of another answer."""

LEAST_SHOWN = 25.0
"""Log-likelihood from which a candidate shows a relation under a sensor."""

SAME_SHARE = 0.02
"""Share of the shorter period within which two fits came to the same shift."""


def refine(fast: Signal, slow: Signal, found: Candidates) -> tuple[list[Fit], float]:
    """Fit the candidates under the sensor model that explains the logs best.

    Parameters
    ----------
    fast, slow
        The logs.
    found
        Candidate shifts.

    Returns
    -------
    fits : list of Fit
        Best first; empty where none could be fitted.
    model_s : float
        By how much sensor models that are not clearly worse would move the shift [s].
    """
    few = _middle(slow)
    sensors, longer = align_sensors.left_open(fast, few), align_sensors.longer(fast, few)
    trials = _under_all_sensors(fast, few, found, sensors)
    if longer and not _shown(trials):
        wide = align_sensors.believable(_under_all_sensors(fast, few, found, [*sensors, *longer]))
        trials = wide if all(_is_sure(fast, slow, f) for f in wide if f.sensor in longer) else trials
    if not trials:
        return [], 0.0
    fits, model_s = _settled(fast, slow, found.shift_s, trials)
    smoothed = _smoothed(fast, few, fits[:1], longer)
    if smoothed:
        others, open_s = _settled(fast, slow, [max(smoothed, key=_each).shift_s], smoothed)
        if others and _each(others[0]) > LONGER_GAIN * _each(fits[0]):
            if _is_sure(fast, slow, others[0]):
                return others, open_s
            model_s = max(model_s, abs(others[0].sensor.window_s - fits[0].sensor.window_s) / 2)
    return fits, model_s


def _is_sure(fast: Signal, slow: Signal, longer: Fit) -> bool:
    """Tell whether a window longer than the step is sure: logs that miss what lay between their samples look smoother than they are."""
    return longer.r2 >= SURE_R2 or not align_model.alike(fast.period_s, slow)


def _settled(fast: Signal, slow: Signal, centres_s: Iterable[float], trials: list[Fit]) -> tuple[list[Fit], float]:
    """Return the fits under the likeliest sensor, best first, and by how much others would move the shift [s]."""
    few = _middle(slow)
    best = align_sensors.likeliest(fast, few, trials)
    model_s = align_sensors.open_s(best, trials)
    starts = _distinct(
        [s for shift in centres_s for s in scan(fast, few, best.sensor, float(shift))], slow.period_s / 2
    )
    fits = _fitted(fast, few, best.sensor, starts)
    if fits:
        near = scan(fast, few, best.sensor, fits[0].shift_s, most=RUNGS, reach_s=RIPPLE_S)
        known = [*starts, *(f.shift_s for f in fits)]
        fits += _fitted(fast, few, best.sensor, [s for s in near if min(abs(s - k) for k in known) > slow.period_s / 2])
        if align_model.alike(fast.period_s, slow):
            top = max(fits, key=_each)
            fits += _fitted(fast, few, best.sensor, [top.shift_s + k * fast.period_s for k in BESIDE])
    if few.time_s.size < slow.time_s.size:
        fits = _again(fast, slow, fits)
    fits.sort(key=lambda f: -_each(f))
    return fits, max(model_s, _hill_s(fits, slow))


def _smoothed(fast: Signal, few: Signal, fits: list[Fit], longer: list[Sensor]) -> list[Fit]:
    """Return fits under longer windows, behind the plain one, where they leave far less unexplained than it does.

    They are asked only of where the plain sensor came to at last. Smoothing is seen from farther away: beside a plain fit that
    is stuck on its way, it would explain more without being true.
    """
    if not fits or fits[0].sensor.window_s >= min((s.window_s for s in longer), default=0.0):
        return []
    top, anchor = fits[0], _anchor(few)
    shift = top.shift_s + top.drift * (anchor - top.anchor_s)
    own = align_model.fit(fast, few, top.sensor, shift_s=shift, drift=top.drift, anchor_s=anchor)
    if own is None:
        return []
    tried = [own]
    for sensor in longer:
        middle = shift - top.sensor.lag_s + (sensor.window_s - top.sensor.window_s) / 2
        one = align_model.fit(fast, few, sensor, shift_s=middle, drift=top.drift, anchor_s=anchor)
        tried += [f for f in (one, _try(fast, few, sensor, middle)) if f is not None]
    believed = align_sensors.believable(tried)
    return believed if len(believed) > 1 else []


def _shown(trials: list[Fit]) -> bool:
    """Return whether any sensor explains anything."""
    return max((f.llr if f.gain > 0 else 0.0 for f in trials), default=0.0) >= LEAST_SHOWN


def _under_all_sensors(fast: Signal, few: Signal, found: Candidates, sensors: list[Sensor]) -> list[Fit]:
    """Return fits from the first candidate from which any sensor explains anything, else from the first.

    A lag puts a candidate off, and by chance another one, of logs that hardly overlap, may be higher.
    """
    tried = ([_try(fast, few, s, float(shift)) for s in sensors] for shift in found.shift_s)
    first: list[Fit] | None = None
    for some in tried:
        fits = [f for f in some if f is not None]
        if fits and _shown(fits):
            return fits
        first = fits if first is None else first
    return first or []


def _again(fast: Signal, slow: Signal, fits: list[Fit]) -> list[Fit]:
    """Fit again to all of a log what may be the best of it: of fits to some of it, those not far behind the best."""
    shares = (_each, plain)
    best = [max((share(f) for f in fits), default=0.0) for share in shares]
    worth = [f for f in fits if any(share(f) >= WORTH * b for share, b in zip(shares, best, strict=True))]
    anchor = _anchor(slow)
    again = (
        align_model.fit(
            fast, slow, f.sensor, shift_s=f.shift_s + f.drift * (anchor - f.anchor_s), drift=f.drift, anchor_s=anchor,
            bend_s=f.bend_s,
        )
        for f in _apart(worth, SAME_SHARE * min(fast.period_s, slow.period_s))
    )  # fmt: skip
    return [f for f in again if f is not None]


def _apart(fits: list[Fit], apart_s: float) -> list[Fit]:
    """Return the fits without those that came to the same shift as a better one."""
    out: list[Fit] = []
    for f in sorted(fits, key=lambda f: -_each(f)):
        if all(abs(f.shift_s - o.shift_s) > apart_s for o in out):
            out.append(f)
    return out


def plain(fit: Fit) -> float:
    """Return the log-likelihood ratio of each sample where neither log is foretold by its own past."""
    return -0.5 * float(np.log1p(-min(fit.r2, 1 - 1e-12)))


def _each(fit: Fit) -> float:
    """Return the log-likelihood ratio of each sample: shifts leave different numbers of them in common."""
    return fit.llr / fit.n


def _hill_s(fits: list[Fit], slow: Signal) -> float:
    """Return how far the farthest other hill, nearer than another shift would be, lies that explains nearly as much [s].

    Logs of one pace agree better than they should where their samples lie on each other, so the highest hill need not be
    the right one.
    """
    off = [abs(f.shift_s - fits[0].shift_s) for f in fits if _each(f) > HILL_SHARE * _each(fits[0])]
    return max((o for o in off if o <= distinct_s(slow)), default=0.0)


def distinct_s(slow: Signal) -> float:
    """Return from where on another shift is another answer, not an uncertainty of the same [s]."""
    return max(0.75 * slow.period_s, 0.5)


def _fitted(fast: Signal, slow: Signal, sensor: Sensor, starts: list[float]) -> list[Fit]:
    """Return the fits from some starts, best first."""
    anchor = _anchor(slow)
    fits = (align_model.fit(fast, slow, sensor, shift_s=s, drift=0.0, anchor_s=anchor) for s in starts)
    return sorted((f for f in fits if f is not None), key=lambda f: -_each(f))


def scan(
    fast: Signal, slow: Signal, sensor: Sensor, centre_s: float, *, most: int = 2, reach_s: float = 0.0
) -> list[float]:
    """Return the shifts around a coarse peak at which the changes of both logs agree best.

    The coarse grid cannot tell shifts within its own step apart, and a step of training may be hardly longer.

    Parameters
    ----------
    fast, slow
        The logs.
    sensor
        How the slow log sees the fast one.
    centre_s
        Coarse shift [s]; a lag or window delays the slow log, so the true shift may be larger by it.
    most
        How many local maxima are returned.
    reach_s
        How far around the centre to look at least [s].

    Returns
    -------
    list of float
        Shifts [s], best first.
    """
    reach = max(1.5 * slow.period_s + 1.5, reach_s)
    step = max(min(slow.period_s / 5, FINE_S), fast.period_s / 5)
    longer_s = max(sensor.window_s - slow.period_s, 0.0)
    shifts = np.arange(centre_s - reach, centre_s + reach + sensor.lag_s + longer_s + step, step)
    c = align_curve.curve(fast, sensor, since_s=slow.time_s[0] + shifts[0], until_s=slow.time_s[-1] + shifts[-1])
    y = _changes(slow.value, slow)
    score = np.array([_agreement(align_curve.predict(c, slow, sensor, slow.time_s + s), y, slow) for s in shifts])
    padded = np.concatenate([[-1.0], score, [-1.0]])
    least = max(LEAST_AGREEMENT * float(score.max()), 0.0)
    tops = np.flatnonzero((score >= padded[:-2]) & (score >= padded[2:]) & (score > least))
    return [float(shifts[i]) for i in tops[np.argsort(-score[tops], kind="stable")][:most]]


def _changes(v: Floats, slow: Signal) -> Floats:
    """Return what common slow drifts do not touch: differences, of a counter less their mean and over enough steps."""
    if slow.kind != COUNTER:
        return np.diff(v)
    pace = max(float(np.abs(np.diff(slow.value)).mean()), 1e-9)
    m = int(np.clip(np.ceil(COUNTER_UNITS * align_noise.unit_j(slow) / pace), 1, max(slow.value.size // 8, 1)))
    d = v[m:] - v[:-m]
    return np.asarray(d - np.nanmean(d))


def _agreement(f: Floats, y: Floats, slow: Signal) -> float:
    """Return the correlation of changes."""
    keep = np.isfinite(f)
    if keep.sum() < 32:
        return -1.0
    d = _changes(f, slow)
    keep = np.isfinite(d)
    a, b = d[keep], y[keep]
    norm = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / norm if norm > 0 else -1.0


def _middle(slow: Signal) -> Signal:
    """Return the middle of a log."""
    m = slow.time_s.size // 2
    return slow.part(slice(max(0, m - TRIAL_SAMPLES // 2), m + TRIAL_SAMPLES // 2))


def _anchor(s: Signal) -> float:
    return float(s.time_s[0] + s.time_s[-1]) / 2


def _try(fast: Signal, few: Signal, sensor: Sensor, centre_s: float) -> Fit | None:
    """Fit from the best start near a coarse shift."""
    starts = scan(fast, few, sensor, centre_s, most=1)
    if not starts:
        return None
    return align_model.fit(fast, few, sensor, shift_s=starts[0], drift=0.0, anchor_s=_anchor(few))


def _distinct(shifts: list[float], apart_s: float) -> list[float]:
    """Return the shifts without near repeats, in order."""
    out: list[float] = []
    for s in shifts:
        if all(abs(s - o) > apart_s for o in out):
            out.append(s)
    return out
