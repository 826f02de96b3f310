"""The energy of one device over one window from its cumulative counter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from joulebook import arrays, bridges, stretches, uncertainty
from joulebook.counter_walk import LIKELY_TOP_W
from joulebook.energy_device import DeviceEnergy, judged
from joulebook.stretches import Stretches

UNTOLD = "its counter was read, but what it counted between two readings is never sure"
"""Why there is no energy where each step may hide a wrap or a reset; findings of the counter say which."""


def measure_counter(
    deltas: pl.DataFrame, *, device: str, origin_us: int, length_s: float, quantum_j: float
) -> DeviceEnergy:
    """Return one device's energy from the differences of its counter; one that is not known is open.

    Parameters
    ----------
    deltas
        ``ts_utc``, ``span_s`` [s], ``energy_j`` [J] and ``kind`` of this device, in order of time.
    device, origin_us, length_s
        As for ``measure``.
    quantum_j
        Step of the counter [J].
    """
    known = deltas.filter((pl.col("span_s") > 0) & pl.col("energy_j").is_not_null())
    stamp, span = arrays.seconds(known["ts_utc"], origin_us), known["span_s"].to_numpy()
    power = known["energy_j"].to_numpy() / span
    read = arrays.seconds(deltas["ts_utc"], origin_us)
    period = bridges.median_step_s(read)
    whole = stretches.over_spans(stamp, span, power, limit_s=0.0)
    longer, held_s = stretches.extended(whole, length_s=length_s, reach_s=period or 0.0)
    inside = stretches.clip(longer, length_s=length_s)
    seen = slice(*np.searchsorted(stamp, (0.0, length_s), side="right"))  # spans that reach into the window …
    seen = slice(seen.start, min(seen.stop + 1, stamp.size))  # … and the one that its end cuts
    method = "difference of a counter" + (f", outer power held {held_s:.3g} s to the edges" if held_s else "")
    result = DeviceEnergy(
        device=device, stamp_s=stamp[seen], power_w=power[seen], stretches=inside, hole_start_s=np.zeros(0),
        hole_end_s=np.zeros(0), first_s=float(read[0]) if read.size else np.nan,
        last_s=float(read[-1]) if read.size else np.nan, period_s=period,
        n=int(((read >= 0) & (read <= length_s)).sum()), missing=0, method=method,
    )  # fmt: skip
    blur_s = float(np.hypot(_cut_span_s(whole, 0.0), _cut_span_s(whole, length_s)))
    result = judged(result, power_w=power, seen=seen, length_s=length_s, blur_s=blur_s, held_s=held_s)
    if not inside.start_s.size and result.n > 1:
        result = replace(result, reason=UNTOLD)
    doubtful = deltas.filter(pl.col("kind").is_in(["unknown", "glitch"]) & pl.col("energy_j").is_null())
    ends_s = arrays.seconds(doubtful["ts_utc"], origin_us)
    if result.peak_w is not None and np.any((ends_s > 0) & (ends_s <= length_s)):
        # The steps of the highest power are the first that may hide a wrap: those that are sure are no measure of them.
        open_w, open_s = max(result.peak_w, LIKELY_TOP_W), float((result.hole_end_s - result.hole_start_s).sum())
        result = replace(result, open_w=open_w, unknown_j=open_s * open_w)
    blocks = 1 + int(((result.hole_start_s > 0) & (result.hole_end_s < length_s)).sum())
    return replace(result, noise_j=0.0, resolution_j=uncertainty.quantum_j(quantum_j, blocks=blocks))


def _cut_span_s(whole: Stretches, at_s: float) -> float:
    """Return the length of the span that an instant cuts, 0 where it falls between spans."""
    i = int(np.searchsorted(whole.end_s, at_s, side="right"))
    if i < whole.end_s.size and whole.start_s[i] < at_s:
        return float(whole.end_s[i] - whole.start_s[i])
    return 0.0
