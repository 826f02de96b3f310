"""From the fit of a stretch to the fit of the whole log."""

from __future__ import annotations

from joulebook import align_checks, align_model
from joulebook.align_model import Fit
from joulebook.align_signal import Floats, Signal

LEAST_GAIN_ASKED, LEAST_GAIN = 20.0, 5.0
"""Log-likelihood that a drift beyond what can be must gain over one that can, of controllers that are asked, and of all
others: there it is what chance gives once in a thousand times. Simulated controllers without drift show less
than 15, clocks that run away by twice what can be more than 30."""


def whole(fast: Signal, log: Signal, slow: Signal, part: Signal, first: Fit) -> Fit:
    """Widen a fit step by step from a stretch to the whole log, so that drift never slips a whole edge.

    Parameters
    ----------
    fast, log
        The logs.
    slow
        The rows of the slower log that fits rest on: all, or some of a long log.
    part
        The stretch of the slow log that was fitted.
    first
        Its fit.

    Returns
    -------
    Fit
        Its anchor is the middle of what the logs have in common.
    """
    t = slow.time_s
    start, end = float(part.time_s[0]), float(part.time_s[-1])
    fit = first
    while start > t[0] or end < t[-1]:
        reach = end - start
        start, end = start - reach, end + reach
        inside = (t >= start) & (t <= end)
        if not inside.all():
            fit = _again(fast, slow.part(inside), fit, over=t[inside]) or fit
    fit = _again(fast, slow, fit, over=log.time_s) or fit
    return _doubted(fast, slow, fit) if abs(fit.drift) > align_checks.MOST_DRIFT else fit


def _doubted(fast: Signal, slow: Signal, fit: Fit) -> Fit:
    """Return a fit with a drift that can be, where it explains the logs as well as one with more.

    A few edges between which the load hardly changes say little of drift, and a sensor that is not quite what it is taken
    for then looks like a clock that runs away. Of controllers, whose ways are known, much is put down to that; of means of a
    meter that is taken for another one the shift would be wrong by half a window.
    """
    believed = align_model.fit(
        fast, slow, fit.sensor, shift_s=fit.shift_s, drift=0.0, anchor_s=fit.anchor_s, bend_s=fit.bend_s, doubted=True
    )
    if believed is None or not believed.converged or abs(believed.drift) > align_checks.MOST_DRIFT:
        return fit
    return believed if fit.llr - believed.llr < (LEAST_GAIN_ASKED if slow.age_s > 0 else LEAST_GAIN) else fit


def _again(fast: Signal, slow: Signal, fit: Fit, *, over: Floats) -> Fit | None:
    """Fit again with the anchor in the middle of the overlap."""
    u = over + fit.shift_s + fit.drift * (over - fit.anchor_s)
    common = over[(u >= fast.time_s[0]) & (u <= fast.time_s[-1])]
    if common.size < 16:
        return None
    anchor = float(common[0] + common[-1]) / 2
    shift = fit.shift_s + fit.drift * (anchor - fit.anchor_s)
    return align_model.fit(fast, slow, fit.sensor, shift_s=shift, drift=fit.drift, anchor_s=anchor, bend_s=fit.bend_s)
