"""Sensor models that the declarations of two logs leave open, and the likeliest of them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from joulebook import align_model
from joulebook.align_curve import Sensor
from joulebook.align_model import ALIKE, Fit
from joulebook.align_signal import COUNTER, INSTANT, Signal

SLOWER = 1.5
"""From this ratio of periods on, a window shorter than the slower log's period can be told from the whole of it."""

LAG_PERIOD_S = 2.5
"""Shortest period of a log that may be a lagging controller [s], where nothing tells that it is one: faster meters average,
they do not creep."""

LAGS_S = (2.0, 3.0, 4.5, 7.0, 10.0, 15.0, 22.0, 36.0)
"""Time constants tried for management controllers, which smooth over seconds to half a minute [s]."""

LAG_STEPS = (0.85, 0.92, 0.96, 1.04, 1.08, 1.17)
"""Factors tried around the best time constant, twice."""

SHORTER = (0.5, 0.25, 0.1)
"""Windows tried beside the whole period, as shares of it: many meters write less often than they average."""

LONGER, LONGEST_S = (1.6, 2.5, 5.0, 10.0), 15.0
"""Windows tried beside the whole period, as multiples of it, and the longest of them [s]: a meter may tell a moving mean of
several seconds each second."""

SMOOTH = 0.6
"""Least smoothness of a log that may be a moving mean; 1 is the middle between a mean and samples of a load without memory, and
loads that repeat themselves come nearer to samples."""

LEFT_SHARE = 0.5
"""Share of what shorter windows leave unexplained that a longer one may leave."""

WINDOW_STEPS = ((0.7, 0.84, 1.2, 1.4), (0.92, 0.96, 1.04, 1.08))
"""Factors tried around the best shorter window, coarse and then fine."""

MODEL_GAIN = 10.0
"""Log-likelihood that a lag or a shorter window must gain before it is believed instead of the plainest model."""

DECISIVE_GAIN = 200.0
"""Log-likelihood gain from which the plainest model is out of the question. Below it the interval reaches to what the
plainest model says, and to what points instead of means would say: with few edges they look alike."""

DECISIVE_EACH = 0.3
"""The same a sample, for logs of one pace of which nobody knows which are means and which are points: what lies between samples
is left unexplained whichever is right. Two logs of one kind gain 0.4 and more over the others, two of different kinds below 0.2."""

HELD_SHARE = 0.5
"""Share of the fast log's period from which its declared window is a mean over the step; a shorter one is a point of a curve."""


def late_s(fast: Signal, slow: Signal, sensor: Sensor) -> float:
    """Return by how much the model of two sensors takes the fast log's power for later than the slow log's [s].

    A mean is known for the middle of its window. The curve of the fast log takes its values for means over their steps, or
    for points; a sensor that averages over longer or shorter is polled before or after that. A window of the slow log that
    was found from the data is the shorter for what the fast sensor has smoothed already; squared widths add up.

    Parameters
    ----------
    fast, slow
        The logs, with the windows that are declared.
    sensor
        What the fit has used.

    Returns
    -------
    float
        0 where nothing is declared of the fast log.
    """
    if fast.kind == COUNTER or not fast.window_s:
        return 0.0
    late = (fast.window_s - (fast.period_s if sensor.held else 0.0)) / 2
    return late - (_whole_window_s(fast, slow, sensor) - sensor.window_s) / 2


def _whole_window_s(fast: Signal, slow: Signal, sensor: Sensor) -> float:
    """Return the window of the slow log [s]: what was found is the shorter for what the fast sensor has smoothed already."""
    if not fast.window_s or slow.window_s is not None or not sensor.window_s or not sensor.held:
        return sensor.window_s
    smoothed = max(fast.window_s**2 - fast.period_s**2, 0.0)
    return min(float(np.sqrt(sensor.window_s**2 + smoothed)), max(slow.period_s, sensor.window_s))


def trail_s(fast: Signal, slow: Signal, sensor: Sensor) -> float | None:
    """Return by how much readings of the slow log trail the power that they speak of, as the fit took it [s].

    Offset and delay are found together: energy that uses the one without the other would undo a part of it.

    Parameters
    ----------
    fast, slow
        The logs, with the windows that are declared.
    sensor
        What the fit has used.

    Returns
    -------
    float or None
        Half the window and all of the lag. ``None`` where it is declared, where the slow log is a counter, and for logs of
        one pace that do not say: that both are means, or both points, comes to the same offset.
    """
    silent = fast.window_s is None and slow.period_s < ALIKE * fast.period_s
    if slow.kind == COUNTER or slow.window_s is not None or silent:
        return None
    return _whole_window_s(fast, slow, sensor) / 2 + sensor.lag_s


def unsaid_s(fast: Signal, sensor: Sensor) -> float:
    """Return by how much the fast log's power may be of earlier times than taken [s]: points that may be means of a step.

    Parameters
    ----------
    fast
        The finer log.
    sensor
        What the fit has used.

    Returns
    -------
    float
        0 where the log says its window, or was taken for means.
    """
    said = fast.kind == COUNTER or fast.window_s is not None or sensor.held
    return 0.0 if said else fast.period_s / 2


def left_open(fast: Signal, slow: Signal) -> list[Sensor]:
    """Return the sensor models that the logs' declarations leave open, the plainest first.

    A fast log that does not say is taken as instantaneous. Of two logs of one pace that do not say, both are taken to
    report in the same manner: means of a period, or points, which predict each other alike. That the fast one reports
    points and the slow one means is tried beside it. A controller that is asked may lag at any pace.

    Parameters
    ----------
    fast, slow
        The logs.

    Returns
    -------
    list of Sensor
    """
    p = slow.period_s
    alike = p < ALIKE * fast.period_s
    known = fast.window_s is not None and fast.window_s >= HELD_SHARE * fast.period_s
    held = fast.kind == COUNTER or known or (alike and fast.window_s is None)
    if slow.kind == COUNTER:
        return [Sensor(0.0, 0.0, held)]
    if slow.window_s:
        return [Sensor(slow.window_s, 0.0, held)] + ([Sensor(slow.window_s, 0.0, False)] if alike and held else [])
    lags = [Sensor(0.0, lag, held, steps=slow.age_s == 0) for lag in (0.0, *LAGS_S)]
    if slow.kind == INSTANT:
        return lags
    creeps = p >= LAG_PERIOD_S or slow.age_s > 0
    if alike:
        half = [Sensor(SHORTER[0] * p, 0.0, held)] if p > SLOWER * fast.period_s else []
        points = [Sensor(p, 0.0, False)] if fast.window_s is None and held else []
        other = [Sensor(0.0, 0.0, held)] if points and not half and slow.window_s is None else []
        return [Sensor(p, 0.0, held), *half, *points, *other, *(lags[1:] if slow.age_s > 0 else ())]
    shorter = [Sensor(w, 0.0, held) for w in (*(s * p for s in SHORTER), fast.period_s) if fast.period_s <= w < p]
    return [Sensor(p, 0.0, held), *shorter, *(lags if creeps else lags[:1])]


def longer(fast: Signal, slow: Signal) -> list[Sensor]:
    """Return the sensor models of moving means, longer than the step of a log that does not say over what it averages.

    Parameters
    ----------
    fast, slow
        The logs.

    Returns
    -------
    list of Sensor
    """
    if slow.kind in (COUNTER, INSTANT) or slow.window_s:
        return []
    held = left_open(fast, slow)[0].held
    long = (k for k in LONGER if k * slow.period_s <= LONGEST_S)
    return [Sensor(k * slow.period_s, 0.0, held) for k in long if _is_smooth(slow, math.ceil(k))]


def _is_smooth(slow: Signal, steps: int) -> bool:
    """Tell whether a log may be a mean over so many of its steps.

    Each step of a moving mean takes in one step's worth of new power, so that its square is an even share of that over the
    window, for a load without memory. Samples of a load that changes faster than they are taken are as far from their
    neighbours as from any: ``steps`` times as much, and any smoothing foretells them better. The root is the middle of the two.
    """
    one, many = (float(np.mean((slow.value[k:] - slow.value[:-k]) ** 2)) for k in (1, steps))
    return SMOOTH * one * math.sqrt(steps) <= many


def believable(trials: list[Fit]) -> list[Fit]:
    """Return the fits without those under windows longer than the period that do not leave far less unexplained.

    A moving mean explains what a mean of a period cannot. Logs that fit ill, after a step of a clock say, are fitted a little
    better by any smoothing.

    Parameters
    ----------
    trials
        Fits from one start, that under the plainest model first.

    Returns
    -------
    list of Fit
    """
    if not trials:
        return trials
    period_s = trials[0].sensor.window_s
    least = min(1.0 - f.r2 for f in trials if f.sensor.window_s <= period_s)
    return [f for f in trials if f.sensor.window_s <= period_s or (f.gain > 0 and 1.0 - f.r2 <= LEFT_SHARE * least)]


def likeliest(fast: Signal, few: Signal, trials: list[Fit]) -> Fit:
    """Return the fit under the likeliest sensor model, its time constant or window refined; trials are added to.

    Of logs of one pace that do not say, points beside means are never taken, however likely: where the logs differ in more
    than that, they foretell by a sample too far off. The interval reaches to what they would say.
    """
    silent = fast.window_s is None and few.window_s is None and few.period_s < ALIKE * fast.period_s
    taken = [f for f in trials if not (silent and _points(f.sensor))] or trials
    best = max(taken, key=lambda f: f.llr if f.gain > 0 else -1.0)
    if best.llr < trials[0].llr + MODEL_GAIN:
        return trials[0]
    sensor = best.sensor
    if sensor.lag_s:
        for factors in (LAG_STEPS, LAG_STEPS):
            lags = [replace(best.sensor, lag_s=best.sensor.lag_s * f) for f in factors]
            best = _better(fast, few, best, lags, trials)
    elif sensor.window_s not in (0, trials[0].sensor.window_s):
        least, most = (0.0, few.period_s) if sensor.window_s < few.period_s else (few.period_s, LONGEST_S)
        for around in WINDOW_STEPS:
            windows = [min(max(best.sensor.window_s * f, least), most) for f in around]
            best = _better(fast, few, best, [replace(best.sensor, window_s=w) for w in windows], trials)
    return best


def _better(fast: Signal, few: Signal, best: Fit, sensors: list[Sensor], trials: list[Fit]) -> Fit:
    """Return the likeliest of a fit and of those under other sensors, started where the middle of both is the same."""
    for sensor in sensors:
        start = best.shift_s + sensor.lag_s - best.sensor.lag_s + (sensor.window_s - best.sensor.window_s) / 2
        one = align_model.fit(fast, few, sensor, shift_s=start, drift=best.drift, anchor_s=best.anchor_s)
        if one is not None and one.gain > 0:
            trials.append(one)
    return max(best, *trials, key=lambda f: f.llr if f.gain > 0 else -1.0)


def open_s(best: Fit, trials: list[Fit]) -> float:
    """Return by how much sensor models that are not clearly worse would move the shift [s]."""
    alike = [f for f in trials if f.gain > 0 and f.llr > best.llr - MODEL_GAIN]
    alike += [
        f for f in trials if best.llr < f.llr + DECISIVE_GAIN and (f is trials[0] or f.sensor.held != best.sensor.held)
    ]
    if any(_points(f.sensor) for f in trials[1:]):
        decisive = max(DECISIVE_GAIN, DECISIVE_EACH * best.n)
        alike += [f for f in trials if best.llr < f.llr + decisive and (not f.sensor.held or _points(f.sensor))]
    return max((abs(f.shift_s - best.shift_s) for f in alike if f.gain > 0 or f is trials[0]), default=0.0)


def _points(sensor: Sensor) -> bool:
    """Return whether the slow log is taken for points beside means of the fast one."""
    return sensor.held and sensor.window_s == 0 and sensor.lag_s == 0
